"""Both real sides on one recording, at tiny widths: alike as they are, and planted faults named.

A fault is one changed setting of one side. It must be named by a metric that it acts on, and no
later than it can show.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from diagnose.departures import Departure
from diagnose.matched import EXACT, Options, judge
from diagnose.recording import Recording, Wanted, obtain
from diagnose.sides import Answer, Sides
from launch.environments import ensure
from shared.errors import UserError
from shared.matched_case import Case, Run
from shared.obtain import obtain_checkout
from shared.protocol import SIDES, Side
from tests.inside import NO_SKIP, ROOT, SLOW, out_of_reach

#: Whether the faults that take minutes are planted too.
_SLOW = "1" in (os.environ.get(SLOW), os.environ.get(NO_SKIP))
#: Updates of the runs without a fault; those with one may do fewer.
UPDATES = 60 if _SLOW else 12
FORMS = (Run("exact", "exact"), Run("literal", "literal"))
CONTROL = Run("control", "exact", shaken=True)


@dataclass(frozen=True)
class Fault:
    """One changed setting: metrics that may name it first, and by which update one must."""

    side: Side
    key: str
    value: str
    named: tuple[str, ...]
    by: int
    #: Takes a minute or more beyond the runs that are there.
    slow: bool = True

    def __str__(self) -> str:
        return f"{self.side}.{self.key}={self.value}"


FAULTS = (
    Fault("ajax", "rep_scale", "0.2", ("opt_loss", "opt_grad_norm"), 1, slow=False),
    Fault("reference", "retnorm.rate", "0.02", ("retnorm/low", "retnorm/high"), 1, slow=False),
)


@pytest.fixture(scope="module")
def sides() -> Sides:
    try:
        python = {side: ensure(side) for side in SIDES}
        checkout = obtain_checkout()
    except UserError as error:
        out_of_reach(str(error))
    return Sides(python, {"reference": ("--checkout", str(checkout.root))})


@pytest.fixture(scope="module")
def recording(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return obtain(sides, Wanted(0, True, UPDATES), tmp_path_factory.mktemp("recording"))


def case(recording: Recording, *runs: Run, **changes: str) -> Case:
    return Case(True, UPDATES, 0, runs, changes, recording.parameters, recording.batches)


@pytest.fixture(scope="module")
def plain(sides: Sides, recording: Recording) -> dict[Side, Answer]:
    """Both sides as they are."""
    whole = case(recording, *FORMS).arrays()
    shaken = case(recording, *FORMS, CONTROL).arrays()
    return sides.ask_both("matched", {"reference": whole, "ajax": shaken}, cached=True)

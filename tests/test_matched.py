"""Both real sides on one recording, at tiny widths: alike as they are, and planted faults named.

A fault is one changed setting of one side. It must be named by a metric that it acts on, and no
later than it can show.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from diagnose.departures import METRICS, Departure, family
from diagnose.findings import Claim
from diagnose.form_claims import EXACT
from diagnose.matched import Options, judge
from diagnose.recording import Recording, Wanted, obtain
from diagnose.sides import Answer, Sides
from launch.environments import ensure
from shared.errors import UserError
from shared.probes.matched_case import Case, Run
from shared.protocol import SIDES, Side
from shared.provenance.obtain import obtain_checkout
from shared.records.arrays import below
from tests.inside import NO_SKIP, ROOT, SLOW, out_of_reach

# In one process: what the fixtures of this module hold takes minutes to compute.
pytestmark = [pytest.mark.sides, pytest.mark.xdist_group("matched")]

#: Whether the faults that take minutes are planted too.
_SLOW = "1" in (os.environ.get(SLOW), os.environ.get(NO_SKIP))
#: Updates of every run.
UPDATES = 100 if _SLOW else 12
EXACT_RUN = Run("exact", "exact")
LITERAL = (Run("literal", "literal"),) if _SLOW else ()
CONTROL = Run("control", "exact", shaken=True)


@dataclass(frozen=True)
class Fault:
    """One changed setting, the families of metrics that may name it first, and by which update.

    ``slow``: takes a minute or more beyond the runs that are there.
    """

    side: Side
    key: str
    value: str
    named: tuple[str, ...]
    by: int
    slow: bool = True

    def __str__(self) -> str:
        return f"{self.side}.{self.key}={self.value}"


RETURNS = ("ret", "ret_normed", "adv", "td_error", "retnorm", "actor_loss", "critic_loss")
REPLAYED = ("replay_ret", "replay_critic_loss")
FAULTS = (
    # At once; before the third update every prediction is zero.
    Fault("ajax", "rep_scale", "0.2", ("opt_loss", "opt_grad_norm"), 1, slow=False),
    Fault("reference", "retnorm.rate", "0.02", ("retnorm",), 4, slow=False),
    Fault("ajax", "lam", "0.9", RETURNS, 4),
    Fault("reference", "return_lambda", "0.9", RETURNS, 4),
    Fault("ajax", "agc", "0.03", ("opt_update_norm",), 4),
    Fault("reference", "opt.agc", "0.03", ("opt_update_norm",), 4),
    Fault("ajax", "retnorm_rate", "0.02", ("retnorm",), 4),
    Fault("ajax", "slow_rate", "0.03", ("slow_critic",), 4),
    Fault("reference", "slow_critic_fraction", "0.03", ("slow_critic",), 4),
    # Off by one in a thousand: the first update has a learning rate of 0.
    Fault("ajax", "warmup", "1001", ("opt_update_norm", "slow_critic"), 3),
    Fault("reference", "opt.warmup", "999", ("opt_update_norm", "slow_critic"), 3),
    # Late: as long as critic and returns are near zero, either bootstraps alike.
    Fault("reference", "replay_critic_bootstrap", "critic", REPLAYED, 70),
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


def case(recording: Recording, *runs: Run, changes: Mapping[str, str] | None = None) -> Case:
    parts = recording.parameters, recording.batches
    return Case(True, UPDATES, 0, runs, changes or {}, *parts)


@pytest.fixture(scope="module")
def plain(sides: Sides, recording: Recording) -> dict[Side, Answer]:
    """Both sides as they are, in both forms where there is time."""
    runs: dict[Side, tuple[Run, ...]] = {
        "reference": (EXACT_RUN, *LITERAL),
        "ajax": (EXACT_RUN, CONTROL, *LITERAL),
    }
    asked = {side: case(recording, *each).arrays() for side, each in runs.items()}
    return sides.ask_both("matched", asked, cached=True)


def only_where_there_is_time() -> None:
    if not _SLOW:
        pytest.skip(f"takes minutes: set {SLOW}=1 to run it")


def exact_only(answer: Answer) -> Answer:
    kept = {name: each for name, each in answer.arrays.items() if not name.startswith("literal/")}
    return Answer(kept, answer.ran)


def departures(answers: Mapping[Side, Answer]) -> list[Departure]:
    record = judge(answers, Options(updates=UPDATES, tiny=True)).data["departures"]
    return [Departure(**each) for each in record[" / ".join(" ".join(arm) for arm in EXACT)]]


def test_the_sides_as_they_are_do_not_depart(plain: dict[Side, Answer]) -> None:
    assert departures(plain) == []
    for side, form in EXACT:
        run = below(plain[side].arrays, form)
        assert run.keys() >= {*METRICS}
        assert (run["opt_grad_steps"] == range(1, UPDATES + 1)).all()


def claim_of(plain: dict[Side, Answer], start: str) -> Claim:
    finding = judge(plain, Options(updates=UPDATES, tiny=True))
    return next(claim for claim in finding.claims if claim.text.startswith(start))


def test_both_sides_were_given_the_same(plain: dict[Side, Answer]) -> None:
    same = claim_of(plain, "every run of both sides was given the same")
    assert same.holds, same.measured


@pytest.mark.parametrize("metric", ["ret/std", "val/std"])
def test_what_follows_the_form_is_seen(metric: str, plain: dict[Side, Answer]) -> None:
    only_where_there_is_time()
    follows = claim_of(plain, f"{metric} follows the form")
    assert follows.holds, follows.measured


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_named(
    fault: Fault, sides: Sides, recording: Recording, plain: dict[Side, Answer]
) -> None:
    if fault.slow:
        only_where_there_is_time()
    runs = (EXACT_RUN, CONTROL) if fault.side == "ajax" else (EXACT_RUN,)
    asked = case(recording, *runs, changes={fault.key: fault.value})
    changed = sides.ask(fault.side, "matched", asked.arrays(), cached=True)
    answers = {side: exact_only(answer) for side, answer in plain.items()}
    answers[fault.side] = changed
    found = departures(answers)
    assert found, "nothing departed"
    assert family(found[0].metric) in fault.named, found[0].text
    assert found[0].update <= fault.by, found[0].text


def test_the_command_names_a_fault(sides: Sides, recording: Recording, tmp_path: Path) -> None:
    only_where_there_is_time()
    flags = [part for side in SIDES for part in (f"--{side}-python", sides.python[side])]
    checkout = ["--reference-checkout", sides.options["reference"][1]]
    given = ["--batches", recording.path, "--updates", "6", "--change", "ajax.lam=0.9"]
    given += ["--out", tmp_path, *flags, *checkout]
    done = subprocess.run(
        [sys.executable, "-m", "diagnose.run", "matched", "--tiny", *given],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("matched: verdict: departs first: ")
    assert last.endswith("; changed: ajax.lam: 0.95 -> 0.9")
    stem = "matched-tiny-updates=6-ajax.lam=0.9"
    record = json.loads((tmp_path / "matched" / f"{stem}.json").read_text())
    assert record["changes"] == ["ajax.lam: 0.95 -> 0.9"]

"""Published levels of the early differences (protocol section 11), and whether four runs meet them.

A published level is the mean over three seeds of a metric's mean over one window of training. Here
the windows are those of the reference: the updates that it does between its rows 0 and 2000, and
2000 and 4000.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from diagnose.findings import Claim, number
from diagnose.form_claims import CELLS, Cell, Runs, label
from shared.protocol import WINDOW_ROWS, updates

REFERENCE_LITERAL: Cell = ("reference", "literal")
REFERENCE_EXACT: Cell = ("reference", "exact")
AJAX_LITERAL: Cell = ("ajax", "literal")
AJAX_EXACT: Cell = ("ajax", "exact")


@dataclass(frozen=True)
class Level:
    """One metric in the window that ends at ``rows``; of arms without a figure none is published.

    ``factor`` or ``apart`` is the tolerance of a run's own mean: a ratio, or a difference. Both
    were fixed before any matched run was as long as a window.
    """

    metric: str
    rows: int
    published: Mapping[Cell, float]
    factor: float | None = None
    apart: float = 0.0

    @property
    def window(self) -> slice:
        """Its updates, as indices of a series."""
        return slice(max(0, updates(self.rows - WINDOW_ROWS) - 1), updates(self.rows) - 1)

    @property
    def within(self) -> str:
        """The tolerance in words."""
        return f"a factor of {self.factor:g}" if self.factor else f"{self.apart:g}"

    def met(self, cell: Cell, found: float) -> bool:
        """Whether a run's mean is near enough to the published one."""
        published = self.published[cell]
        if self.factor:
            return bool(published / self.factor <= found <= published * self.factor)
        return abs(found - published) <= self.apart


#: Standard deviations: published seeds of an arm lie within a sixth of their mean, and the batches
#: here are those of one arm for all four. Entropy: little more than half of what the form does to
#: it (0.027). ``rew/min``: a sixth again. Which arm is like which is for the claims of the forms.
LEVELS = (
    Level(
        "ret/std",
        2000,
        {
            REFERENCE_LITERAL: 0.1351,
            REFERENCE_EXACT: 0.0085,
            AJAX_LITERAL: 0.1365,
            AJAX_EXACT: 0.0099,
        },
        factor=1.25,
    ),
    Level(
        "adv/std",
        2000,
        {
            REFERENCE_LITERAL: 0.1603,
            REFERENCE_EXACT: 0.0086,
            AJAX_LITERAL: 0.1615,
            AJAX_EXACT: 0.0101,
        },
        factor=1.25,
    ),
    Level("val/std", 4000, {REFERENCE_LITERAL: 0.052, AJAX_EXACT: 0.003}, factor=1.25),
    Level("rew/min", 4000, {REFERENCE_LITERAL: -0.111, AJAX_EXACT: 0.0}, apart=0.02),
    Level(
        "ent/action/mean",
        4000,
        {
            REFERENCE_LITERAL: 0.5135,
            REFERENCE_EXACT: 0.4591,
            AJAX_LITERAL: 0.5087,
            AJAX_EXACT: 0.4565,
        },
        apart=0.03,
    ),
)


def level_claims(runs: Runs) -> Iterator[Claim]:
    """A claim for each level whose window lies within the runs."""
    length = len(runs[CELLS[0]][LEVELS[0].metric])
    for level in LEVELS:
        if level.window.stop > length:
            continue
        found = {
            cell: float(np.mean(runs[cell][level.metric][level.window])) for cell in level.published
        }
        yield Claim(
            f"{level.metric} is at its published level: its mean over updates "
            f"{level.window.start + 1} to {level.window.stop} within {level.within}",
            ", ".join(
                f"{label(cell)} {number(each)} ({number(level.published[cell])})"
                for cell, each in found.items()
            ),
            all(level.met(cell, each) for cell, each in found.items()),
            "a mean that is further away (published in brackets; of other batches, three seeds)",
        )

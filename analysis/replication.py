"""How a run's window means lie beside the published seed ranges of the same arm.

Early training of the reference is nearly the same from machine to machine, so that its first
windows tell whether a setup is right long before a round ends (protocol section 11).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.checks import Check
from analysis.data import SideData, WindowTable
from analysis.published import load_windows
from shared.metrics import TABLE_METRICS
from shared.protocol import AJAX_PUBLISHED_COMMIT, AJAX_RELEASE, Side

#: (side, arm) -> the published comparison whose windows are that arm's.
PUBLISHED_ARMS: dict[tuple[Side, str], str] = {
    ("reference", "stock"): "round1",
    ("reference", "exact"): "pairE",
    ("ajax", "stock"): "round1",
    ("ajax", "literal"): "pairR",
}
#: Published as a mean alone, without seed ranges (prereg/DIAGNOSIS.md).
PUBLISHED_MEANS: dict[tuple[Side, str, int, str], float] = {
    ("reference", "stock", 4_000, "val/std"): 0.052,
    ("ajax", "stock", 4_000, "val/std"): 0.003,
    ("reference", "stock", 4_000, "rew/min"): -0.111,
    ("ajax", "stock", 4_000, "rew/min"): 0.000,
}
#: Which Ajax ran in the published rounds.
PUBLISHED_AJAX = f"commit {AJAX_PUBLISHED_COMMIT[:7]}"
#: What another Ajax than the published one means for a value outside; counted in prereg/ROUND4.md.
OTHER_AJAX = (
    f"The release {AJAX_RELEASE} is not the published Ajax: of its stock arm's 30 window means at "
    f"2000 rows, seeds 0 to 2, 15 lie outside the seed range of {PUBLISHED_AJAX}. A value of "
    "another Ajax outside is therefore no sign that a setup is wrong."
)
#: A value this close to the published range, relative to its bound, counts as near.
NEAR = 0.01
#: Published window means are rounded to four decimals.
ROUNDING = 5e-5


@dataclass(frozen=True)
class Beside:
    """One metric in one window: this run's seed range, and the published one."""

    rows: int
    metric: str
    low: float
    high: float
    published_low: float
    published_high: float

    @property
    def excess(self) -> float:
        """How far a seed lies outside the published range, relative to the nearer bound."""
        return max(
            (self.published_low - self.low - ROUNDING) / (abs(self.published_low) or 1.0),
            (self.high - self.published_high - ROUNDING) / (abs(self.published_high) or 1.0),
            0.0,
        )

    @property
    def word(self) -> str:
        """``inside``, ``near`` (within 1 %) or ``outside``."""
        return "inside" if self.excess == 0 else "near" if self.excess <= NEAR else "outside"


def beside_published(side: SideData, windows: WindowTable | None) -> Iterator[Beside]:
    """Every metric and window that both a run of full width and the publication have."""
    comparison = PUBLISHED_ARMS.get((side.side, side.arm or ""))
    if comparison is None or windows is None or side.published:
        return
    published = load_windows()[comparison][side.side]
    for rows in sorted(set(windows) & set(published)):
        for metric in TABLE_METRICS:
            if metric in windows[rows] and metric in published[rows]:
                _, low, high = windows[rows][metric]
                yield Beside(rows, metric, low, high, *published[rows][metric][1:])


def published_window(side: Side, arm: str, rows: int, metric: str) -> tuple[float, ...] | None:
    """What was published of an arm: (mean, lowest, highest seed), a mean alone, or ``None``."""
    comparison = PUBLISHED_ARMS.get((side, arm))
    if comparison is None:
        return None
    found = load_windows()[comparison][side].get(rows, {}).get(metric)
    alone = PUBLISHED_MEANS.get((side, arm, rows, metric))
    return found if found or alone is None else (alone,)


def published_seeds(side: Side, arm: str, rows: int, metric: str) -> tuple[float, ...] | None:
    """Three seeds of a published window, ascending; ``None`` without their range.

    Of three seeds the mean and both ends give the middle one, to the rounding of the table.
    """
    found = published_window(side, arm, rows, metric)
    if found is None or len(found) < 3:
        return None
    mean, low, high = found
    return low, 3 * mean - low - high, high


def which_ajax(checks: Iterable[Check]) -> str:
    """The Ajax that ran, as the check of its identity says."""
    return next((each.detail for each in checks if each.name == "ajax identity"), "not recorded")


def ajax_line(checks: Iterable[Check]) -> list[str]:
    """:func:`which_ajax` as a line of a table's head; none without Ajax."""
    found = list(checks)
    there = any(each.name == "ajax identity" for each in found)
    return [f"Ajax that ran: {which_ajax(found)}."] if there else []


def ajax_note(here: str) -> str:
    """Which Ajax the published windows are of; ``here`` is :func:`which_ajax` of a run."""
    note = f"Published Ajax: {PUBLISHED_AJAX}. Ajax here: {here}."
    return note if AJAX_PUBLISHED_COMMIT in here else f"{note} {OTHER_AJAX}"

"""From two sources to a finished comparison: check, compute. Writes nothing."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from analysis.checked import Checked, check
from analysis.checks import Check
from analysis.checks_ajax import S2Audit
from analysis.comparison import Comparison, compare_sides, withhold
from analysis.sources import Loaded, Request
from shared.protocol import SIDE_LABEL, SIDES, Round

#: (reference arm, Ajax arm) -> what the comparison is called.
TITLES: dict[tuple[str, str], str] = {
    ("stock", "stock"): "Round 1: both sides as they are",
    ("exact", "literal"): "Round 2's own two sides (pre-registered are the pairs E and R)",
    ("exact", "stock"): "Pair E: the exact expectation on both sides",
    ("stock", "literal"): "Pair R: the literal expectation on both sides",
    ("exact-seeded", "stock"): "Round 3: exact expectation on both sides, seeded sampler",
}


@dataclass(frozen=True)
class Study:
    """A comparison with the checks of its sides."""

    comparison: Comparison
    checked: Checked

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks of both sides."""
        return self.checked.checks

    @property
    def audits(self) -> dict[int, S2Audit]:
        """The audit of S2 by seed."""
        return self.checked.audits

    @property
    def directories(self) -> tuple[Path | None, ...]:
        """Where the sides were read; ``None`` for published figures."""
        return tuple(self.checked.loaded.request.sources[side].directory for side in SIDES)

    @property
    def failed(self) -> list[Check]:
        """The checks that failed, first those that say that the data cannot be right."""
        return self.checked.failed


def study(request: Request, *, recompute: bool = False) -> Study:
    """Load both sides, check them, and compute everything."""
    return compared(check(request), recompute=recompute)


def compared(checked: Checked, *, recompute: bool = False) -> Study:
    """Compute everything about sides that have been checked.

    No rule is applied to data that cannot be right, but to ``recompute`` what is on record: there
    a changed figure has to show as a difference.
    """
    loaded = checked.loaded
    sides = loaded.sides
    with warnings.catch_warnings():
        # A side whose seeds are all at the cap has no spread, which is no loss of precision.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        comparison = compare_sides(
            title_of(loaded),
            loaded.chosen.number,
            loaded.sizes["reference" if sides["reference"].seeds else "ajax"],
            sides["reference"],
            sides["ajax"],
            smoke=loaded.request.smoke,
        )
    first = next(iter(checked.failed), None)
    if first is not None and first.impossible and not recompute:
        comparison = withhold(comparison, f"{first.name}: {first.detail}")
    return Study(comparison, checked)


def title_of(loaded: Loaded) -> str:
    """What the comparison is called, by the arms that ran."""
    return f"{_title(loaded)} (smoke)" if loaded.request.smoke else _title(loaded)


def _title(loaded: Loaded) -> str:
    chosen, sides = loaded.chosen, loaded.sides
    arms = sides["reference"].arm or "", sides["ajax"].arm or ""
    if chosen.part and all(
        data.arm == chosen.arm(side).name for side, data in sides.items() if data.seeds
    ):
        return _part_title(chosen)
    if arms in TITLES or not all(data.seeds for data in sides.values()):
        return TITLES.get(arms, f"Round {chosen.name}")
    named = (f"{SIDE_LABEL[side]} ({data.arm_label})" for side, data in sides.items())
    return f"Round {chosen.name}: {' and '.join(named)}"


def _part_title(chosen: Round) -> str:
    """Of a part of a series; its arms alone could be a pair's."""
    block = f", block {chosen.part}" if chosen.whole else ""
    form = chosen.arm("reference").expectation
    return f"Round {chosen.number}{block}: the {form} expectation on both sides"

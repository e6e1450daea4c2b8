"""The rules of prereg/ROUND4.md: does a statistic follow the form of the expectation, or the side?

Exactly the rules of that document, as a table and pure functions. A sample has one value a seed,
``[seeds]``, for each side and form; the order of the seeds is of no consequence.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.statistics import ranges_overlap
from shared.protocol import FORMS, SIDE_LABEL, SIDES, Form, Side, arm

#: A side with one of the forms: a cell of the two by two.
Cell = tuple[Side, Form]
#: In the order in which tables and figures show them: equal forms stand together.
CELLS: tuple[Cell, ...] = (
    ("reference", "literal"),
    ("ajax", "literal"),
    ("ajax", "exact"),
    ("reference", "exact"),
)
#: The reference as it is and Ajax as it is.
AS_THEY_ARE: tuple[Cell, ...] = tuple((side, arm(side, "stock").expectation) for side in SIDES)

#: Cell -> values over seeds ``[seeds]``.
Sample = Mapping[Cell, Sequence[float]]


@dataclass(frozen=True)
class Measure:
    """One pre-registered statistic: the mean of ``metric`` over the window ending at ``window``."""

    metric: str
    window: int
    #: On the scale of the logarithm, or as it is.
    logarithm: bool
    #: +1 where the literal form is expected to be higher, -1 where lower.
    sign: Literal[1, -1]
    #: The smallest effect of the form: a factor on the logarithm's scale, else a difference.
    smallest: float
    #: Whether it must differ between the sides as they are, for there to be something to explain.
    to_explain: bool = False

    @property
    def name(self) -> str:
        """``ret/std 2000``."""
        return f"{self.metric} {self.window}"

    @property
    def threshold(self) -> float:
        """The smallest effect on the statistic's scale."""
        return math.log(self.smallest) if self.logarithm else self.smallest

    def scaled(self, value: float) -> float:
        """``value`` on the statistic's scale; NaN where it has none."""
        if not self.logarithm:
            return value
        return math.log(value) if value > 0 else math.nan

    def written(self, effect: float) -> str:
        """An effect or remainder as a reader takes it: a factor, or a difference."""
        if not math.isfinite(effect):
            return "-"
        return f"factor {math.exp(effect):.3f}" if self.logarithm else f"{effect:.4f}"


MEASURES: tuple[Measure, ...] = (
    Measure("ret/std", 2_000, logarithm=True, sign=1, smallest=5.0, to_explain=True),
    Measure("adv/std", 2_000, logarithm=True, sign=1, smallest=5.0),
    Measure("val/std", 4_000, logarithm=True, sign=1, smallest=3.0),
    Measure("ent/action/mean", 4_000, logarithm=False, sign=1, smallest=0.02, to_explain=True),
    Measure("rew/min", 4_000, logarithm=False, sign=-1, smallest=0.05),
)

#: Negative controls: losses that the form should leave alone.
CONTROLS: tuple[str, ...] = ("rec_loss", "rew_loss", "con_loss", "dyn_loss")
CONTROL_WINDOW = 2_000
#: By which the means of the two forms may differ, relative to the literal form's.
CONTROL_TOLERANCE = 0.01


def mean(values: Sequence[float]) -> float:
    """Mean over seeds, the same in any order; NaN without any, or where one is not finite."""
    return math.fsum(values) / len(values) if _all_finite(values) else math.nan


def effect(measure: Measure, literal: Sequence[float], exact: Sequence[float]) -> float:
    """Effect of the form on one side, of two ``[seeds]``: positive in the expected direction."""
    return measure.sign * (_scaled_mean(measure, literal) - _scaled_mean(measure, exact))


def remainder(measure: Measure, reference: Sequence[float], ajax: Sequence[float]) -> float:
    """What is left between the sides at one form, of two ``[seeds]``: never negative."""
    return abs(_scaled_mean(measure, reference) - _scaled_mean(measure, ajax))


def half_the_smaller(effects: Mapping[Side, float]) -> float:
    """Half the smaller of the two sides' effects; NaN where a side has none."""
    values = list(effects.values())
    return min(values) / 2 if _all_finite(values) else math.nan


def _scaled_mean(measure: Measure, values: Sequence[float]) -> float:
    return mean([measure.scaled(value) for value in values])


# --- one statistic --------------------------------------------------------------------------

Word = Literal["follows the form", "follows the side", "unsettled"]


@dataclass(frozen=True)
class Finding:
    """What the rules say of one statistic; effects are on its scale, NaN where there are none."""

    measure: Measure
    sample: Sample
    effects: Mapping[Side, float]
    remainders: Mapping[Form, float]
    #: Whether all literal seeds lie on the expected side of all exact ones; ``None``: not known.
    apart: bool | None
    word: Word
    #: Why it does not follow the form; empty where it does.
    faults: tuple[str, ...]

    @property
    def differs(self) -> bool | None:
        """Whether the seed ranges of the sides as they are are disjoint; ``None``: not known."""
        first, second = (self.sample[cell] for cell in AS_THEY_ARE)
        return _disjoint(first, second) if _all_finite(first) and _all_finite(second) else None


def judge(measure: Measure, sample: Sample) -> Finding:
    """Apply the rules to one statistic."""
    effects = {
        side: effect(measure, sample[side, "literal"], sample[side, "exact"]) for side in SIDES
    }
    remainders = {
        form: remainder(measure, sample["reference", form], sample["ajax", form]) for form in FORMS
    }
    unusable = _unusable(measure, sample)
    if unusable is not None:
        return Finding(measure, sample, effects, remainders, None, "unsettled", (unusable,))
    apart = _apart(measure, sample)
    faults = (
        *_apart_faults(measure, apart),
        *_effect_faults(measure, effects),
        *_remainder_faults(measure, effects, remainders),
    )
    word: Word = "unsettled" if faults else "follows the form"
    if _follows_side(sample, effects, remainders):
        word = "follows the side"
    return Finding(measure, sample, effects, remainders, apart, word, faults)


def _unusable(measure: Measure, sample: Sample) -> str | None:
    """Why nothing can be said of a sample: a value is missing, or its scale has no place for it."""
    for cell in CELLS:
        if not sample[cell]:
            return f"{cell_name(cell)} has no value"
        for value in sample[cell]:
            if not math.isfinite(value):
                return f"a value of {cell_name(cell)} is not finite"
            if not math.isfinite(measure.scaled(value)):
                return f"{value:g} ({cell_name(cell)}) has no logarithm"
    return None


def _apart(measure: Measure, sample: Sample) -> bool:
    literal, exact = (
        [measure.sign * value for side in SIDES for value in sample[side, form]] for form in FORMS
    )
    return min(literal) > max(exact)


def _apart_faults(measure: Measure, apart: bool) -> Iterator[str]:
    if not apart:
        where = "above" if measure.sign > 0 else "below"
        yield f"not every literal seed lies {where} every exact seed"


def _effect_faults(measure: Measure, effects: Mapping[Side, float]) -> Iterator[str]:
    for side, found in effects.items():
        if found < measure.threshold:
            yield (
                f"the form's effect on {SIDE_LABEL[side]} ({measure.written(found)}) is smaller "
                f"than {measure.written(measure.threshold)}"
            )


def _remainder_faults(
    measure: Measure, effects: Mapping[Side, float], remainders: Mapping[Form, float]
) -> Iterator[str]:
    half = half_the_smaller(effects)
    for form, found in remainders.items():
        if found >= half:
            yield (
                f"the remainder at the {form} form ({measure.written(found)}) is not less than "
                f"half the smaller effect ({measure.written(half)})"
            )


def _follows_side(
    sample: Sample, effects: Mapping[Side, float], remainders: Mapping[Form, float]
) -> bool:
    disjoint = all(_disjoint(sample["reference", form], sample["ajax", form]) for form in FORMS)
    return disjoint and min(effects.values()) < min(remainders.values()) / 2


def _disjoint(first: Sequence[float], second: Sequence[float]) -> bool:
    return not ranges_overlap((min(first), max(first)), (min(second), max(second)))


def _all_finite(values: Sequence[float]) -> bool:
    return bool(values) and all(map(math.isfinite, values))


def cell_name(cell: Cell) -> str:
    """``Reference, literal``."""
    side, form = cell
    return f"{SIDE_LABEL[side]}, {form}"


# --- one control ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Control:
    """One negative control: each side's change from the literal form to the exact one."""

    metric: str
    sample: Sample
    #: Relative to the literal form's mean; NaN where there is none.
    changes: Mapping[Side, float]
    holds: bool


def control(metric: str, sample: Sample) -> Control:
    """Whether the means of the two forms agree within 1 % on each side."""
    changes: dict[Side, float] = {}
    holds = True
    for side in SIDES:
        literal, exact = (mean(sample[side, form]) for form in FORMS)
        changes[side] = (exact - literal) / abs(literal) if literal else math.nan
        # Not by the quotient: a mean of zero has none, and NaN must not hold.
        holds &= abs(exact - literal) <= CONTROL_TOLERANCE * abs(literal)
    return Control(metric, sample, changes, holds)


# --- the round ------------------------------------------------------------------------------

Outcome = Literal["confirmed", "refuted", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """What the round shows, and what made it so."""

    word: Outcome
    reasons: tuple[str, ...]


def verdict(
    findings: Sequence[Finding], controls: Sequence[Control], failed_checks: Sequence[str] = ()
) -> Verdict:
    """Confirmed, refuted or undecided; ``failed_checks`` are those of the four arms, in words."""
    if failed_checks:
        return Verdict("undecided", tuple(f"failed check: {each}" for each in failed_checks))
    refuted = [
        f"{each.measure.name} follows the side"
        for each in findings
        if each.word == "follows the side"
    ] + [
        f"the seed ranges of {each.measure.name} overlap between the sides as they are, which "
        "the rule reads as no early difference to explain"
        for each in findings
        if each.measure.to_explain and each.differs is False
    ]
    if refuted:
        return Verdict("refuted", tuple(refuted))
    open_ones = [
        f"{each.measure.name} is unsettled: {'; '.join(each.faults)}"
        for each in findings
        if each.word == "unsettled"
    ] + [
        f"the control {each.metric} does not hold ({_changes(each)})"
        for each in controls
        if not each.holds
    ]
    return Verdict("undecided" if open_ones else "confirmed", tuple(open_ones))


def _changes(found: Control) -> str:
    return ", ".join(f"{SIDE_LABEL[side]} {found.changes[side]:+.2%}" for side in SIDES)

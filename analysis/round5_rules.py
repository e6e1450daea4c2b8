"""The rules of prereg/ROUND5.md: is the form the cause of the early entropy, and is anything left?

Exactly the tests and the table of that document, as pure functions of window means. The tests take
arrays ``[..., seeds]`` and work along the last axis, so that a simulation of many rounds runs the
same code as the round itself. Entropies are in nats, as the sides log them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.round4_rules import MEASURES, Cell, Measure, effect
from shared.protocol import FORMS, N_ACTIONS, SIDE_LABEL, SIDES, Form, Side

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
#: Side -> values ``[..., seeds]``.
BySide: TypeAlias = Mapping[Side, Floats]
#: Cell -> seed -> value.
BySeed: TypeAlias = Mapping[Cell, Mapping[int, float]]

#: The outcome: the mean of this metric over the window of 2000 rows that ends at this row.
OUTCOME, OUTCOME_WINDOW = "ent/action/mean", 4_000
#: The entropy of a policy that takes both actions alike.
MOST_ENTROPY = math.log(N_ACTIONS)
#: Seeds that run with both forms; seeds of the exact form; seeds whose exact runs are repeated.
PAIRED_SEEDS = tuple(range(20, 29))
EXACT_SEEDS = tuple(range(20, 32))
PLACEBO_SEEDS = (20, 21, 22)
#: P1: both effects must exceed this, each at this one-sided level; "refuted" has the same two.
SMALLEST_EFFECT, EFFECT_LEVEL = 0.02, 0.025
#: P2 and P3: a difference is shown to lie within plus or minus the margin at this level.
MARGIN, EQUAL_LEVEL = 0.03, 0.05
#: Two-sided level at which the rest between the sides is told from 0.
REST_LEVEL = 0.05
#: Metrics that read the form's noise directly, and what each pair must show of it.
MANIPULATIONS: tuple[Measure, ...] = tuple(
    measure for measure in MEASURES if measure.metric != OUTCOME
)

# --- statistics -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A mean with its confidence interval, each ``[...]``; NaN where there is none."""

    mean: Floats
    low: Floats
    high: Floats


def paired_effects(literal: Floats, exact: Floats) -> Floats:
    """Each seed's literal value minus its exact one, ``[..., pairs]``.

    The first ``pairs`` seeds of ``exact`` are those of ``literal``, in the same order.
    """
    return literal - exact[..., : literal.shape[-1]]


def mean_estimate(values: Floats, confidence: float = 0.95) -> Estimate:
    """Mean of ``[..., seeds]`` with Student's interval."""
    return _estimate(values.mean(-1), stats.ttest_1samp(values, 0, axis=-1), confidence)


def difference_estimate(first: Floats, second: Floats, confidence: float = 0.95) -> Estimate:
    """Mean of ``first`` minus that of ``second``, unpaired, with Welch's interval."""
    test = stats.ttest_ind(first, second, axis=-1, equal_var=False)
    return _estimate(first.mean(-1) - second.mean(-1), test, confidence)


def log_ratios(literal: Floats, exact: Floats) -> Floats:
    """Log of literal over exact by seed, ``[..., pairs]``; NaN where a value is not positive.

    Secondary, of the entropies and of their distances from :data:`MOST_ENTROPY`.
    """
    both = np.stack([literal, exact[..., : literal.shape[-1]]])
    logs = np.log(np.where(both > 0, both, np.nan))
    return np.asarray(logs[0] - logs[1])


def effect_p(effects: Floats, alternative: Literal["greater", "less"]) -> Floats:
    """One-sided p of the paired t-test that the mean of ``[..., pairs]`` is the smallest effect."""
    test = stats.ttest_1samp(effects, SMALLEST_EFFECT, axis=-1, alternative=alternative)
    return np.asarray(test.pvalue)


def equivalence_p(first: Floats, second: Floats) -> Floats:
    """p of two one-sided Welch tests (TOST) that the means differ by less than the margin."""
    above = stats.ttest_ind(first + MARGIN, second, axis=-1, equal_var=False, alternative="greater")
    below = stats.ttest_ind(first - MARGIN, second, axis=-1, equal_var=False, alternative="less")
    return np.asarray(np.maximum(above.pvalue, below.pvalue))


def rest_p(reference: Floats, ajax: Floats) -> Floats:
    """Two-sided Welch p of no difference between the sides at the exact form."""
    return np.asarray(stats.ttest_ind(reference, ajax, axis=-1, equal_var=False).pvalue)


def _estimate(mean: Floats, test: Any, confidence: float) -> Estimate:
    interval = test.confidence_interval(confidence)
    return Estimate(mean, interval.low, interval.high)


# --- what each test says --------------------------------------------------------------------

Flag: TypeAlias = Literal["complete", "refuted", "P1", "P2", "P3", "rest"]
FLAGS: tuple[Flag, ...] = ("complete", "refuted", "P1", "P2", "P3", "rest")
#: Of every round ``[...]``, whether it holds.
Flags: TypeAlias = Mapping[Flag, Bools]


def flags(literal: BySide, exact: BySide, *, checks_passed: bool = True) -> Flags:
    """What each test says of rounds ``[...]``, from the entropies of both forms.

    A value that is missing or not finite is NaN: the round is then not complete, nor is it after a
    failed check. Every other flag is the outcome of its test alone.
    """
    effects = {side: paired_effects(literal[side], exact[side]) for side in SIDES}
    finite = [np.isfinite(form[side]).all(-1) for form in (literal, exact) for side in SIDES]
    greater = [effect_p(effects[side], "greater") <= EFFECT_LEVEL for side in SIDES]
    less = [effect_p(effects[side], "less") <= EFFECT_LEVEL for side in SIDES]
    return {
        "complete": np.logical_and.reduce(finite) & checks_passed,
        "refuted": np.logical_or.reduce(less),
        "P1": np.logical_and.reduce(greater),
        "P2": equivalence_p(effects["reference"], effects["ajax"]) <= EQUAL_LEVEL,
        "P3": equivalence_p(exact["reference"], exact["ajax"]) <= EQUAL_LEVEL,
        "rest": rest_p(exact["reference"], exact["ajax"]) <= REST_LEVEL,
    }


# --- one reading for every outcome ----------------------------------------------------------

Reading: TypeAlias = Literal[
    "the cause, and nothing else beyond 0.03",
    "a further cause",
    "a cause, the rest open",
    "refuted",
    "undecided",
]


@dataclass(frozen=True)
class Row:
    """One line of the table: a reading, and the flags it needs; a flag that it lacks may be any."""

    reading: Reading
    needs: Mapping[Flag, bool]

    def matches(self, found: Flags) -> Bools:
        """Of every round ``[...]``, whether this line is the one that applies."""
        needed = [found[flag] == value for flag, value in self.needs.items()]
        return np.asarray(np.logical_and.reduce(needed))


_SHOWN: Mapping[Flag, bool] = {"complete": True, "refuted": False, "P1": True}
#: Of any outcome exactly one line applies.
TABLE: tuple[Row, ...] = (
    Row("undecided", {"complete": False}),
    Row("refuted", {"complete": True, "refuted": True}),
    Row("undecided", {"complete": True, "refuted": False, "P1": False}),
    Row("the cause, and nothing else beyond 0.03", {**_SHOWN, "P2": True, "P3": True}),
    Row("a further cause", {**_SHOWN, "P2": True, "P3": False, "rest": True}),
    Row("a further cause", {**_SHOWN, "P2": False, "rest": True}),
    Row("a cause, the rest open", {**_SHOWN, "P2": True, "P3": False, "rest": False}),
    Row("a cause, the rest open", {**_SHOWN, "P2": False, "rest": False}),
)


def readings(found: Flags) -> NDArray[np.str_]:
    """The reading of every round ``[...]``."""
    lines = [row.matches(found) for row in TABLE]
    return np.select(lines, [row.reading for row in TABLE], default="")


# --- the round itself -----------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """How the round is read, what each test said, and why it is not complete if it is not."""

    reading: Reading
    flags: Mapping[Flag, bool]
    faults: tuple[str, ...]


def by_side(values: BySeed, form: Form, seeds: Sequence[int]) -> dict[Side, Floats]:
    """The values of one form, each ``[seeds]``; NaN for a seed that has no finite one."""
    found = {
        side: np.array([values[side, form].get(seed, math.nan) for seed in seeds]) for side in SIDES
    }
    return {side: np.where(np.isfinite(row), row, math.nan) for side, row in found.items()}


def verdict(
    values: BySeed,
    failed_checks: Sequence[str] = (),
    paired_seeds: Sequence[int] = PAIRED_SEEDS,
    exact_seeds: Sequence[int] = EXACT_SEEDS,
) -> Verdict:
    """Read the round from its entropies; ``failed_checks`` hold what failed, in words.

    Fewer seeds than the registered ones are given only where an amendment closed the round early;
    ``exact_seeds`` begin with ``paired_seeds``.
    """
    seeds: dict[Form, Sequence[int]] = {"literal": paired_seeds, "exact": exact_seeds}
    if tuple(exact_seeds[: len(paired_seeds)]) != tuple(paired_seeds):
        raise ValueError("the seeds of the exact form must begin with those that are paired")
    sample = {form: by_side(values, form, seeds[form]) for form in FORMS}
    faults = [f"failed check: {check}" for check in failed_checks] + [
        f"{SIDE_LABEL[side]}, {form}, seed {seed}: no finite value"
        for form in FORMS
        for side in SIDES
        for seed, value in zip(seeds[form], sample[form][side], strict=True)
        if not math.isfinite(value)
    ]
    found = flags(sample["literal"], sample["exact"], checks_passed=not failed_checks)
    reading = cast(Reading, str(readings(found)))
    return Verdict(reading, {flag: bool(found[flag]) for flag in FLAGS}, tuple(faults))


def manipulation_faults(measure: Measure, values: BySeed, paired_seeds: Sequence[int]) -> list[str]:
    """The pairs in which ``measure`` does not show the form's noise: failed checks, in words."""
    faults: list[str] = []
    for side in SIDES:
        for seed in paired_seeds:
            pair = [values[side, form].get(seed, math.nan) for form in FORMS]
            shown = effect(measure, pair[:1], pair[1:])
            if not shown >= measure.threshold:
                faults.append(
                    f"{measure.name}, {SIDE_LABEL[side]}, seed {seed}: the forms differ by "
                    f"{measure.written(shown)}, at least {measure.written(measure.threshold)} "
                    "is needed"
                )
    return faults


@dataclass(frozen=True)
class Placebo:
    """Repeats minus first runs of the same seeds of one side in the exact form, ``[seeds]``."""

    differences: Floats

    @property
    def spread(self) -> float:
        """Root mean square: their standard deviation about 0, which a repeat should differ by."""
        return float(np.sqrt(np.mean(self.differences**2)))

    @property
    def identical(self) -> bool:
        """Whether every repeat gave the same value, bit for bit."""
        return bool((self.differences == 0).all())

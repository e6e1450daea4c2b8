"""Round 4, each seed against itself: the form's effect with intervals. Not pre-registered.

A seed starts from the same parameters in both forms of its side, so that its two runs are a pair.
Everything is on the statistic's scale (its logarithm, or as it is).
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from analysis.companions import CONFIDENCE
from analysis.comparison import ENTROPY
from analysis.formats import DASH, markdown_table
from analysis.round4_rules import AS_THEY_ARE, Finding, Measure, effect
from analysis.sections import UNREGISTERED
from shared.protocol import FORMS, SIDE_LABEL, SIDES, Side

#: Side -> seed -> the form's effect on it, on the statistic's scale.
Effects = Mapping[Side, Mapping[int, float]]


@dataclass(frozen=True)
class Estimate:
    """A difference with its 95 % interval by Student's or Welch's t, and p of no difference."""

    value: float
    low: float
    high: float
    p: float

    def written(self, measure: Measure) -> str:
        """``0.0581 [0.0469, 0.0694]``; of a logarithm the factor that it stands for."""
        found = [self.value, self.low, self.high]
        if not measure.logarithm:
            return "{:.4f} [{:.4f}, {:.4f}]".format(*found)
        # Of few seeds a bound can be too far out for a factor.
        return "factor {:.4g} [{:.4g}, {:.4g}]".format(*(np.exp(np.clip(found, -700, 700))))


#: Name in JSON documents -> what a table calls it.
WHAT: Mapping[str, str] = {
    "reference": f"effect on {SIDE_LABEL['reference']}",
    "ajax": f"effect on {SIDE_LABEL['ajax']}",
    "pooled": "effect, both sides pooled",
    "between_sides": "the reference's effect minus Ajax's",
    "left_exact": "left between the sides, exact form",
    "left_literal": "left between the sides, literal form",
    "as_they_are": "the sides as they are",
}
METHOD = """\
A seed's effect is its literal run against its exact run, positive (a factor above 1) in the
expected direction. Effect on a side: one-sample t over its seeds. Pooled: the mean of both sides'
effects, with the variance within the sides in common; the sides' effects against each other:
Student's t with the same variance. What is left, and the sides as they are (reference literal, Ajax
exact): Welch's t, reference against Ajax. All intervals are 95 %, two-sided, for one statistic."""


def seed_effects(
    finding: Finding, seeds: Mapping[tuple[Side, str], Sequence[int]]
) -> dict[Side, dict[int, float]]:
    """Side -> seed that ran in both forms -> the form's effect on it."""
    effects: dict[Side, dict[int, float]] = {}
    for side in SIDES:
        literal, exact = (
            dict(zip(seeds[side, form], finding.sample[side, form], strict=True)) for form in FORMS
        )
        effects[side] = {
            seed: effect(finding.measure, [literal[seed]], [exact[seed]])
            for seed in literal
            if seed in exact
        }
    return effects


def estimates(finding: Finding, effects: Effects) -> dict[str, Estimate | None]:
    """Every entry of :data:`WHAT`; ``None`` without two seeds, a value, or any spread."""
    measure = finding.measure
    reference, ajax = (list(effects[side].values()) for side in SIDES)
    scaled = {cell: list(map(measure.scaled, values)) for cell, values in finding.sample.items()}
    pooled = _two(reference, [-value for value in ajax], equal=True)
    return {
        "reference": _one(reference),
        "ajax": _one(ajax),
        # The sum of both means over two: Student's test against the other side's negative.
        "pooled": pooled and Estimate(pooled.value / 2, pooled.low / 2, pooled.high / 2, pooled.p),
        "between_sides": _two(reference, ajax, equal=True),
        **{
            f"left_{form}": _two(scaled["reference", form], scaled["ajax", form])
            for form in ("exact", "literal")
        },
        "as_they_are": _two(*(scaled[cell] for cell in AS_THEY_ARE)),
    }


def _one(values: Sequence[float]) -> Estimate | None:
    if not _spread(values):
        return None
    return _estimate(float(np.mean(values)), lambda: stats.ttest_1samp(values, 0.0))


def _two(
    first: Sequence[float], second: Sequence[float], *, equal: bool = False
) -> Estimate | None:
    if min(len(first), len(second)) < 2 or not (_spread(first) or _spread(second)):
        return None
    value = float(np.mean(first) - np.mean(second))
    return _estimate(value, lambda: stats.ttest_ind(first, second, equal_var=equal))


def _spread(values: Sequence[float]) -> bool:
    """Whether seeds differ by more than the rounding of their logarithms."""
    return len(values) > 1 and bool(np.ptp(values) > 1e-12 * np.max(np.abs(values)))


def _estimate(value: float, test: Callable[[], Any]) -> Estimate | None:
    with warnings.catch_warnings():
        # scipy warns of a sample without spread, which one of two may be.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = test()
    bounds = result.confidence_interval(CONFIDENCE)
    found = Estimate(value, float(bounds.low), float(bounds.high), float(result.pvalue))
    return found if all(map(math.isfinite, (value, found.low, found.high, found.p))) else None


# --- as Markdown ----------------------------------------------------------------------------


def section(findings: Sequence[Finding], effects: Sequence[Effects]) -> list[str]:
    """What leads the page: the entropy first, then the others, each with its intervals."""
    found = [
        (finding.measure, estimates(finding, own), own)
        for finding, own in zip(findings, effects, strict=True)
    ]
    lead = [each for each in found if each[0].metric == ENTROPY]
    others = [each for each in found if each[0].metric != ENTROPY]
    return [
        f"## Each seed against itself ({UNREGISTERED})",
        "",
        *(_sentence(measure, values) for measure, values, _ in lead),
        "",
        *_table(lead),
        "",
        *METHOD.splitlines(),
        "",
        "The other statistics, in the same way:",
        "",
        *_table(others),
    ]


def _table(
    found: Sequence[tuple[Measure, Mapping[str, Estimate | None], Effects]],
) -> list[str]:
    """A row for each entry of :data:`WHAT`, and the effect on every seed; a column a statistic."""
    rows = [
        [what, *(_told(measure, values[name]) for measure, values, _ in found)]
        for name, what in WHAT.items()
    ]
    for side in SIDES:
        cells = [", ".join(map(m.written, own[side].values())) or DASH for m, _, own in found]
        rows.append([f"each seed of {SIDE_LABEL[side]}, in their order", *cells])
    head = [f"`{measure.metric}`, window {measure.window}" for measure, *_ in found]
    return markdown_table(["difference [95 %], p", *head], rows)


def _told(measure: Measure, value: Estimate | None) -> str:
    return f"{value.written(measure)}, p {value.p:.2g}" if value else DASH


def _sentence(measure: Measure, found: Mapping[str, Estimate | None]) -> str:
    def told(name: str) -> str:
        value = found[name]
        return f"{value.written(measure)} (p {value.p:.2g})" if value else "not known"

    return (
        f"The literal form moves `{measure.metric}` (window ending at {measure.window} rows) by "
        f"{told('pooled')} over both sides: by {told('reference')} on the reference and by "
        f"{told('ajax')} on Ajax. The reference's effect minus Ajax's is {told('between_sides')}. "
        f"Left between the sides at the exact form is {told('left_exact')}. As they are, the sides "
        f"differ by {told('as_they_are')}. An interval that holds 0 neither shows a difference nor "
        "excludes one."
    )

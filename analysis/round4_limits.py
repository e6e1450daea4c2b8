"""What round 4's registered rule cannot tell: the chance that seed ranges overlap by themselves."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from analysis.companions import overlap_by_chance
from analysis.comparison import ENTROPY
from analysis.formats import markdown_table, number
from analysis.replication import published_seeds
from analysis.round4 import PARTS, Round4, paired_effects
from analysis.round4_paired import estimates
from analysis.round4_rules import AS_THEY_ARE, CELLS, Cell, Finding, cell_name
from shared.protocol import FORMS

RULE = """\
This is the outcome by the rules as they were registered. They take overlapping seed ranges for no
difference, and so cannot tell a small difference from none: the more seeds, the likelier the ranges
overlap."""


def lines(found: Round4) -> list[str]:
    """The rule's limits, with the spread of the entropy's seeds behind them."""
    shown = RULE.splitlines()
    for finding in found.findings:
        if finding.measure.metric == ENTROPY:
            shown += ["", *_chances(found, finding), "", *_spread_table(finding)]
    return shown


def _chances(found: Round4, finding: Finding) -> list[str]:
    pooled = estimates(finding, paired_effects(found, finding))["pooled"]
    here, both = (_spreads(finding, published=published) for published in (False, True))
    if pooled is None or here is None or both is None:
        return ["How often they overlap by chance is not known: a value is missing."]
    seeds = len(finding.sample[AS_THEY_ARE[0]]), len(finding.sample[AS_THEY_ARE[1]])
    first, second = (overlap_by_chance(pooled.value, each, seeds) for each in (both, here))
    return [
        f"Were the true difference between the sides as they are as large as the pooled effect, "
        f"{finding.measure.written(pooled.value)}, the ranges of {seeds[0]} and {seeds[1]} normal "
        f"seeds would overlap by chance in {first:.0%} of rounds with the spread of the published "
        f"seeds and these together, and in {second:.0%} with the spread of these alone.",
    ]


def _spreads(finding: Finding, *, published: bool) -> tuple[float, float] | None:
    """Standard deviation of each side as it is; with ``published`` over all arms known of it."""
    found: list[float] = []
    for side, form in AS_THEY_ARE:
        cells = [(side, each) for each in FORMS] if published else [(side, form)]
        seen = [deviation(finding.sample[cell]) for cell in cells]
        if published:
            seen += [deviation(_published(finding, cell)) for cell in cells]
        known = [value for value in seen if value is not None]
        if not known or len(known) < len(seen) or not any(known):
            return None
        found.append(sqrt(sum(value**2 for value in known) / len(known)))
    return found[0], found[1]


def deviation(values: Sequence[float] | None) -> float | None:
    """Standard deviation over seeds; ``None`` without two seeds, or where one is not finite."""
    if values is None or len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(np.std(values, ddof=1))


def _published(finding: Finding, cell: Cell) -> tuple[float, ...] | None:
    side, form = cell
    measure = finding.measure
    return published_seeds(side, PARTS[form].arm(side).name, measure.window, measure.metric)


def _spread_table(finding: Finding) -> list[str]:
    rows = [
        [
            cell_name(cell),
            *(
                number(deviation(each), 4)
                for each in (_published(finding, cell), finding.sample[cell])
            ),
        ]
        for cell in CELLS
    ]
    head = ["standard deviation over seeds", "published", "round 4"]
    return [
        *markdown_table(head, rows),
        "",
        "Three normal seeds know their standard deviation to a factor of 0.52 to 6.3 (95 %).",
    ]

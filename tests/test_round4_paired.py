"""Round 4 with each seed against itself: intervals by hand, published spreads, and the extremes."""

import json
import math
from math import sqrt

import numpy as np
import pytest

from analysis.replication import published_seeds
from analysis.round4_limits import deviation
from analysis.round4_paired import WHAT, Effects, estimates, section, seed_effects
from analysis.round4_rules import CELLS, MEASURES, Finding, Measure, Sample, judge
from shared.protocol import SIDES
from shared.provenance.roots import REPO

RET, _, _, ENTROPY, REW = MEASURES
SEEDS = dict.fromkeys(CELLS, (10, 11, 12))
#: Window means of round 4's records; what follows from them was first computed elsewhere.
READING = json.loads((REPO / "results" / "round4" / "reading.json").read_text())
SEEN = READING["statistics"][ENTROPY.name]["seeds"]
SAMPLE: Sample = {cell: [SEEN[" ".join(cell)][str(seed)] for seed in SEEDS[cell]] for cell in CELLS}


def of(measure: Measure, sample: Sample, seeds=SEEDS) -> tuple[Finding, Effects]:
    finding = judge(measure, sample)
    return finding, seed_effects(finding, seeds)


def shown(measure: Measure, sample: Sample, seeds=SEEDS) -> dict[str, str]:
    found = estimates(*of(measure, sample, seeds))
    assert list(found) == list(WHAT)
    return {name: value.written(measure) if value else "-" for name, value in found.items()}


def test_round_4s_entropy_to_the_printed_digit() -> None:
    assert shown(ENTROPY, SAMPLE) == {
        "reference": "0.0643 [0.0447, 0.0840]",
        "ajax": "0.0520 [0.0231, 0.0808]",
        "pooled": "0.0581 [0.0469, 0.0694]",
        "between_sides": "0.0124 [-0.0101, 0.0349]",
        "left_exact": "-0.0246 [-0.1064, 0.0571]",
        "left_literal": "-0.0123 [-0.0645, 0.0400]",
        "as_they_are": "0.0397 [-0.0417, 0.1211]",
    }
    found = estimates(*of(ENTROPY, SAMPLE))
    assert (f"{found['reference'].p:.2g}", f"{found['ajax'].p:.2g}") == ("0.005", "0.016")
    assert f"{found['pooled'].p:.2g}" == "0.00014"


def test_pooled_and_between_by_hand() -> None:
    finding, effects = of(ENTROPY, SAMPLE)
    reference, ajax = (np.array(list(effects[side].values())) for side in SIDES)
    within = sqrt((np.var(reference, ddof=1) + np.var(ajax, ddof=1)) / 2)
    quantile = 2.7764451052  # of t, 4 degrees of freedom, 97.5 %
    found = estimates(finding, effects)
    middle, half = np.mean([*reference, *ajax]), quantile * within / sqrt(6)
    pooled = found["pooled"]
    assert (pooled.value, pooled.low, pooled.high) == pytest.approx(
        (middle, middle - half, middle + half)
    )
    gap, half = reference.mean() - ajax.mean(), quantile * within * sqrt(2 / 3)
    between = found["between_sides"]
    assert (between.low, between.high) == pytest.approx((gap - half, gap + half))


def test_a_pair_is_a_seed_whatever_its_place() -> None:
    turned = {cell: seeds[::-1] if cell == CELLS[0] else seeds for cell, seeds in SEEDS.items()}
    sample = {cell: v[::-1] if cell == CELLS[0] else v for cell, v in SAMPLE.items()}
    first, second = estimates(*of(ENTROPY, SAMPLE)), estimates(*of(ENTROPY, sample, turned))
    assert second["reference"].low == pytest.approx(first["reference"].low)
    # Seeds of another form alone are in no pair.
    other = {cell: (20, 21, 12) if cell == CELLS[0] else seeds for cell, seeds in SEEDS.items()}
    assert list(of(ENTROPY, SAMPLE, other)[1]["reference"]) == [12]
    assert shown(ENTROPY, SAMPLE, other)["reference"] == "-"


def test_the_expected_direction_is_positive_and_a_logarithm_is_a_factor() -> None:
    sample = {
        cell: [-0.11, -0.10, -0.12] if cell[1] == "literal" else [0.0, 0.0, 0.0] for cell in CELLS
    }
    found = shown(REW, sample)
    assert found["pooled"].startswith("0.1100 [")
    # No spread on either side at the exact form: nothing to make an interval of.
    assert found["left_exact"] == "-"
    factors = {
        cell: [1.0, 1.1, 1.2] if cell[1] == "literal" else [0.1, 0.12, 0.11] for cell in CELLS
    }
    assert shown(RET, factors)["pooled"].startswith("factor 10 [9.061, ")


@pytest.mark.parametrize("values", [[math.nan, 0.5, 0.5], [0.5], []])
def test_a_value_that_is_not_there_leaves_a_dash(values: list[float], recwarn) -> None:
    cell = CELLS[0]
    sample, seeds = {**SAMPLE, cell: values}, {**SEEDS, cell: SEEDS[cell][: len(values)]}
    found = shown(ENTROPY, sample, seeds)
    assert (found["reference"], found["left_literal"], found["as_they_are"]) == ("-",) * 3
    assert found["ajax"] == "0.0520 [0.0231, 0.0808]"
    finding, effects = of(ENTROPY, sample, seeds)
    assert "not pre-registered" in "\n".join(section([finding], [effects]))
    assert not recwarn.list


def test_the_entropy_leads_and_every_number_has_an_interval() -> None:
    pairs = [of(measure, SAMPLE) for measure in MEASURES]
    lines = section(*(list(each) for each in zip(*pairs, strict=True)))
    assert lines[0] == "## Each seed against itself (not pre-registered)"
    assert lines[2].startswith("The literal form moves `ent/action/mean`")
    assert lines[2].count("[") == lines[2].count("(p ") == 6


def test_published_seeds_have_the_published_spread() -> None:
    """With three seeds the mean and both ends give the middle one."""
    spreads = {
        (side, arm): round(deviation(published_seeds(side, arm, 4_000, "ent/action/mean")), 4)
        for side, arm in (
            ("reference", "stock"), ("reference", "exact"), ("ajax", "stock"), ("ajax", "literal")
        )
    }  # fmt: skip
    assert (min(spreads.values()), max(spreads.values())) == (0.0069, 0.0152)
    low, middle, high = published_seeds("ajax", "stock", 4_000, "ent/action/mean")
    assert low <= middle <= high
    assert (low + middle + high) / 3 == pytest.approx(0.4565)
    # A mean alone, and an arm of no publication.
    assert published_seeds("ajax", "stock", 4_000, "val/std") is None
    assert published_seeds("reference", "exact-seeded", 4_000, "ent/action/mean") is None

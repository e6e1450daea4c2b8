"""The rules of round 4: every boundary, properties, a second implementation, published rounds."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from analysis.published import load_windows
from analysis.replication import PUBLISHED_ARMS
from analysis.round4_rules import (
    CELLS,
    CONTROL_TOLERANCE,
    CONTROL_WINDOW,
    CONTROLS,
    MEASURES,
    Finding,
    Measure,
    Sample,
    Verdict,
    control,
    judge,
    verdict,
)
from shared.protocol import FORMS, ROUNDS, SIDES
from shared.provenance.roots import REPO

#: All numbers of the hand-made cases are sums of powers of two, and their means exact.
PLAIN = Measure("m", 2_000, logarithm=False, sign=1, smallest=0.25)
DOWN = replace(PLAIN, sign=-1)
FORM, SIDE, UNSETTLED = "follows the form", "follows the side", "unsettled"


def cells(reference_literal, ajax_literal, ajax_exact, reference_exact) -> Sample:
    given_ = (reference_literal, ajax_literal, ajax_exact, reference_exact)
    return {cell: tuple(map(float, values)) for cell, values in zip(CELLS, given_, strict=True)}


def flat(*values: float) -> Sample:
    """Every seed of an arm at the same value, in the order of CELLS."""
    return cells(*([value] * 4 for value in values))


# --- the document ---------------------------------------------------------------------------


def registered() -> str:
    return (REPO / "prereg" / "ROUND4.md").read_text()


def test_the_table_is_the_registered_one() -> None:
    rows = re.findall(r"^\| `(.*?)` \| (\d+) \| (.*?) \| (.*?) \| (.*?) \|$", registered(), re.M)
    assert len(rows) == 5
    for (metric, window, scale, expected, smallest), measure in zip(rows, MEASURES, strict=True):
        assert (measure.metric, measure.window) == (metric, int(window))
        assert measure.logarithm == (scale == "logarithm")
        assert measure.sign == {"higher": 1, "lower": -1}[expected]
        assert smallest == ("factor " if measure.logarithm else "") + f"{measure.smallest:g}"


def test_the_controls_are_the_registered_ones() -> None:
    (line,) = re.findall(r"^Negative controls, window (\d+): (.*)\.$", registered(), re.M)
    assert (int(line[0]), tuple(re.findall("`(.*?)`", line[1]))) == (CONTROL_WINDOW, CONTROLS)
    assert f"differ by at most {100 * CONTROL_TOLERANCE:.0f} %" in registered()


def test_the_early_difference_is_about_the_registered_statistics() -> None:
    assert "or `ret/std` or the entropy does not differ" in registered()
    assert [each.metric for each in MEASURES if each.to_explain] == ["ret/std", "ent/action/mean"]


# --- follows the form -----------------------------------------------------------------------


def test_what_follows_the_form() -> None:
    found = judge(PLAIN, flat(1, 1, 0, 0))
    assert (found.word, found.faults, found.apart) == (FORM, (), True)
    assert found.effects == dict.fromkeys(SIDES, 1.0)
    assert found.remainders == dict.fromkeys(FORMS, 0.0)
    assert judge(DOWN, flat(-1, -1, 0, 0)).effects == dict.fromkeys(SIDES, 1.0)
    assert judge(DOWN, flat(-1, -1, 0, 0)).word == FORM
    assert judge(DOWN, flat(1, 1, 0, 0)).word == UNSETTLED
    assert judge(PLAIN, flat(0, 0, 1, 1)).word == UNSETTLED


@pytest.mark.parametrize(
    ("exact_seed", "word"), [(0.875, FORM), (1.0, UNSETTLED), (1.5, UNSETTLED)]
)
def test_all_literal_seeds_must_lie_strictly_on_one_side(exact_seed: float, word: str) -> None:
    found = judge(PLAIN, cells([1, 1.5], [1, 1.5], [0, exact_seed], [0, 0.5]))
    assert (found.word, found.apart) == (word, word == FORM)
    faults = [] if word == FORM else ["not every literal seed lies above every exact seed"]
    assert [fault for fault in found.faults if "seed" in fault] == faults


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("effect", "word"), [(0.25, FORM), (0.2490234375, UNSETTLED)])
def test_an_effect_of_just_the_smallest_is_enough(side: str, effect: float, word: str) -> None:
    sizes = dict.fromkeys(SIDES, 0.25) | {side: effect}
    found = judge(PLAIN, flat(sizes["reference"], sizes["ajax"], 0, 0))
    assert found.word == word
    if word == UNSETTLED:
        (fault,) = found.faults
        assert re.search(f"effect on {side}.*is smaller than 0.2500", fault, re.I)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("left", "word"), [(0.4990234375, FORM), (0.5, UNSETTLED)])
def test_a_remainder_of_half_the_effect_is_too_much(form: str, left: float, word: str) -> None:
    """The smaller effect is 1 on Ajax; the reference's is larger by what is left."""
    sample = flat(1 + left, 1, 0, 0) if form == "literal" else flat(1, 1, 0, -left)
    found = judge(PLAIN, sample)
    assert (found.remainders[form], min(found.effects.values())) == (left, 1.0)
    assert found.word == word
    assert [f"remainder at the {form} form" in fault for fault in found.faults] == (
        [] if word == FORM else [True]
    )


@pytest.mark.parametrize(("factor", "word"), [(5.001, FORM), (4.999, UNSETTLED)])
def test_on_the_scale_of_the_logarithm_effects_are_factors(factor: float, word: str) -> None:
    (measure, *_) = MEASURES
    found = judge(measure, flat(factor, 6, 1, 1))
    assert found.word == word
    assert found.effects["reference"] == pytest.approx(math.log(factor))
    # sqrt(5) times is half of the effect.
    assert judge(measure, flat(5.01, 5.01, 1, 1.0 / 2.23)).word == FORM
    assert judge(measure, flat(5.01, 5.01, 1, 1.0 / 2.25)).word == UNSETTLED


# --- follows the side -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "word"),
    [
        (flat(8, 0, 0, 8), SIDE),  # the form does nothing
        (flat(12, 4, 0, 8), UNSETTLED),  # effects of just half the remainders
        (flat(12, 3.9375, 0, 8), SIDE),  # one of them less
        (flat(11.9375, 4, 0, 8), SIDE),
        (flat(8, 0, 4, 12), SIDE),  # an effect against the expected direction is none
        (cells([8, 8], [0, 8], [0, 0], [8, 8]), UNSETTLED),  # ranges that touch are not disjoint
        (cells([8, 8], [0, 7.9375], [0, 0], [8, 8]), SIDE),
        (cells([8, 8], [0, 0], [0, 8], [8, 8]), UNSETTLED),  # at both forms
    ],
)
def test_what_follows_the_side(sample: Sample, word: str) -> None:
    assert judge(PLAIN, sample).word == word


# --- values of which nothing can be said ----------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("cell", CELLS)
def test_a_value_that_is_not_finite_is_unsettled(cell, value: float) -> None:
    for sample in (flat(1, 1, 0, 0), flat(8, 0, 0, 8)):
        found = judge(PLAIN, {**sample, cell: (*sample[cell], value)})
        assert (found.word, found.apart) == (UNSETTLED, None)
        assert "not finite" in found.faults[0]
        assert found.differs is None or cell not in (CELLS[0], CELLS[2])


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_a_value_without_a_logarithm_is_unsettled(value: float) -> None:
    found = judge(MEASURES[0], cells([1, 1, 1], [1, 1, 1], [0.01, value, 0.01], [0.01] * 3))
    assert found.word == UNSETTLED
    assert found.faults == (f"{value:g} (Ajax, exact) has no logarithm",)
    assert found.differs is True, "the ranges are those of the values themselves"


def test_an_arm_without_seeds_is_unsettled() -> None:
    assert judge(PLAIN, cells([], [1], [0], [0])).faults == ("Reference, literal has no value",)


# --- controls -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "holds"),
    [
        (flat(100, 200, 202, 99), True),  # 1 % on both sides
        (flat(100, 200, 202.125, 99), False),
        (flat(100, 200, 202, 98.875), False),
        (flat(-100, -200, -202, -99), True),
        (flat(100, 50, 50, 100), True),  # the sides may differ as they like
        (flat(0, 0, 0, 0), True),
        (flat(0, 1, 1, 0.001), False),
        (flat(math.nan, 1, 1, 1), False),
        (flat(1, 1, math.inf, 1), False),
    ],
)
def test_a_control_holds_within_one_percent_of_the_literal_mean(sample: Sample, holds) -> None:
    assert control("rec_loss", sample).holds is holds


def test_a_change_is_relative_to_the_literal_form() -> None:
    assert control("x", flat(4, -4, -5, 5)).changes == {"reference": 0.25, "ajax": -0.25}


# --- the verdict ----------------------------------------------------------------------------

GOOD = {
    "ret/std": flat(0.135, 0.1365, 0.0099, 0.0085),
    "adv/std": flat(0.16, 0.1615, 0.0101, 0.0086),
    "val/std": flat(0.052, 0.05, 0.003, 0.003),
    "ent/action/mean": flat(0.5135, 0.5087, 0.4565, 0.4591),
    "rew/min": flat(-0.111, -0.11, 0.0, -0.001),
}
BY_SIDE = flat(0.5, 0.1, 0.1, 0.5)
HALF = {name: flat(0.5, 0.5, 0.1, 0.4) for name in GOOD} | {"rew/min": flat(-0.5, -0.5, 0, -0.4)}


def findings(**changes: Sample) -> list[Finding]:
    samples = GOOD | {name.replace("_", "/"): sample for name, sample in changes.items()}
    return [judge(measure, samples[measure.metric]) for measure in MEASURES]


def controls(*failing: str):
    return [control(name, flat(1, 1, 1, 2 if name in failing else 1)) for name in CONTROLS]


def test_all_statistics_and_all_controls_confirm() -> None:
    assert [each.word for each in findings()] == [FORM] * 5
    assert verdict(findings(), controls()) == Verdict("confirmed", ())


@pytest.mark.parametrize("name", CONTROLS)
def test_one_control_is_enough_for_undecided(name: str) -> None:
    found = verdict(findings(), controls(name))
    assert found.word == "undecided"
    (reason,) = found.reasons
    assert reason == (f"the control {name} does not hold (Reference +100.00%, Ajax +0.00%)")


@pytest.mark.parametrize("measure", MEASURES, ids=lambda each: each.metric)
def test_one_unsettled_statistic_is_enough_for_undecided(measure: Measure) -> None:
    changed = [judge(each, (HALF if each == measure else GOOD)[each.metric]) for each in MEASURES]
    found = verdict(changed, controls())
    assert found.word == "undecided"
    (reason,) = found.reasons
    assert reason.startswith(f"{measure.name} is unsettled: ")


@pytest.mark.parametrize("measure", MEASURES, ids=lambda each: each.metric)
def test_one_statistic_that_follows_the_side_refutes(measure: Measure) -> None:
    by_side = BY_SIDE if measure.sign > 0 else flat(-0.5, -0.1, -0.1, -0.5)
    changed = [judge(each, by_side if each == measure else GOOD[each.metric]) for each in MEASURES]
    found = verdict(changed, controls(*CONTROLS))
    assert found == Verdict("refuted", (f"{measure.name} follows the side",))


def overlapping() -> Sample:
    """The sides as they are share a value; neither the form nor the side decides."""
    return cells([0.5, 0.4], [0.6, 0.5], [0.4, 0.3], [0.1, 0.2])


def test_without_an_early_difference_there_is_nothing_to_explain() -> None:
    for name in ("ret_std", "ent_action_mean"):
        found = verdict(findings(**{name: overlapping()}), controls())
        assert found.word == "refuted"
        (reason,) = found.reasons
        assert "overlap between the sides as they are" in reason
    for name in ("adv_std", "val_std"):
        assert verdict(findings(**{name: overlapping()}), controls()).word == "undecided"


def test_ranges_as_they_are_that_are_not_known_refute_nothing() -> None:
    unknown = {**overlapping(), CELLS[0]: (math.nan, 0.4)}
    found = verdict(findings(ret_std=unknown), controls())
    assert (found.word, "not finite" in found.reasons[0]) == ("undecided", True)


def test_a_failed_check_leaves_anything_undecided() -> None:
    for changed in ({}, {"ret_std": BY_SIDE}):
        found = verdict(findings(**changed), controls(), ["exact: FAIL ajax exit code: 1"])
        assert found == Verdict("undecided", ("failed check: exact: FAIL ajax exit code: 1",))


# --- properties -----------------------------------------------------------------------------

#: Multiples of 1/16, and 1, 2 or 4 seeds an arm: all means are exact in both implementations.
LATTICE = st.integers(-32, 32).map(lambda value: value / 16)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    size = draw(st.sampled_from([1, 2, 4]))
    seeds = st.lists(LATTICE, min_size=size, max_size=size)
    if draw(st.booleans()):
        return cells(*(draw(seeds) for _ in CELLS))
    # Close to a clean result, which random values hardly ever are.
    near = st.lists(st.integers(-2, 2).map(lambda v: v / 16), min_size=size, max_size=size)
    form, side = draw(LATTICE), draw(LATTICE)
    middles = (form + side, form, 0.0, side)
    return cells(*([middle + each for each in draw(near)] for middle in middles))


measures = st.sampled_from([PLAIN, DOWN])


def naive(measure: Measure, sample: Sample) -> str:
    """The rules once more, word by word, in exact arithmetic."""
    mean = {cell: sum(map(Fraction, values)) / len(values) for cell, values in sample.items()}
    sign = measure.sign

    def effect(side):
        return sign * (mean[side, "literal"] - mean[side, "exact"])

    def remainder(form):
        return abs(mean["reference", form] - mean["ajax", form])

    one = all(
        sign * a > sign * b
        for s in SIDES
        for t in SIDES
        for a in sample[s, "literal"]
        for b in sample[t, "exact"]
    )
    two = all(effect(side) >= Fraction(measure.smallest) for side in SIDES)
    smaller = min(effect("reference"), effect("ajax"))
    three = all(2 * remainder(form) < smaller for form in FORMS)
    if one and two and three:
        return FORM
    apart = all(
        max(sample["reference", form]) < min(sample["ajax", form])
        or max(sample["ajax", form]) < min(sample["reference", form])
        for form in FORMS
    )
    left = min(remainder("literal"), remainder("exact"))
    if apart and (2 * effect("reference") < left or 2 * effect("ajax") < left):
        return SIDE
    return UNSETTLED


@given(measures, samples())
def test_a_second_implementation_agrees(measure: Measure, sample: Sample) -> None:
    found = judge(measure, sample)
    assert found.word == naive(measure, sample)
    assert (found.word == FORM) == (not found.faults)


@pytest.mark.parametrize("word", [FORM, SIDE, UNSETTLED])
def test_the_samples_of_the_properties_reach_every_word(word: str) -> None:
    found = find(samples(), lambda sample: judge(PLAIN, sample).word == word)
    assert naive(PLAIN, found) == word


@given(measures, samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_matter(measure: Measure, sample: Sample, random) -> None:
    mixed = {cell: tuple(random.sample(values, len(values))) for cell, values in sample.items()}
    one, two = judge(measure, sample), judge(measure, mixed)
    assert replace(one, sample=mixed) == two


@given(st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=9), st.randoms(use_true_random=False))
def test_effects_repeat_to_the_digit_in_any_order(values: list[float], random) -> None:
    mixed = random.sample(values, len(values))
    sample, other = (cells(each, each, [1.0], [2.0]) for each in (values, mixed))
    for measure in MEASURES:
        assert judge(measure, sample).effects == judge(measure, other).effects


@given(measures, samples())
def test_exchanging_the_sides_changes_nothing(measure: Measure, sample: Sample) -> None:
    other = {"reference": "ajax", "ajax": "reference"}
    exchanged = {(other[side], form): values for (side, form), values in sample.items()}
    assert judge(measure, exchanged).word == judge(measure, sample).word


@given(measures, samples(), LATTICE)
def test_a_constant_added_to_all_changes_nothing(
    measure: Measure, sample: Sample, constant: float
) -> None:
    moved = {cell: tuple(value + constant for value in sample[cell]) for cell in CELLS}
    one, two = judge(measure, sample), judge(measure, moved)
    assert (one.word, one.effects, one.remainders) == (two.word, two.effects, two.remainders)


@given(samples())
def test_exchanging_the_forms_never_keeps_what_follows_the_form(sample: Sample) -> None:
    other = {"literal": "exact", "exact": "literal"}
    exchanged = {(side, other[form]): values for (side, form), values in sample.items()}
    assert FORM not in (judge(PLAIN, sample).word, judge(PLAIN, exchanged).word) or (
        judge(PLAIN, sample).word != judge(PLAIN, exchanged).word
    )


@given(st.lists(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3), min_size=4, max_size=4))
def test_the_logarithms_scale_is_that_of_the_logarithms(values: list[list[float]]) -> None:
    measure = MEASURES[0]
    plain = replace(measure, logarithm=False, smallest=measure.threshold)
    found = judge(measure, cells(*values))
    logs = judge(plain, cells(*([math.log(value) for value in each] for each in values)))
    assert (found.word, found.effects, found.remainders) == (
        logs.word,
        logs.effects,
        logs.remainders,
    )


# --- the published rounds -------------------------------------------------------------------


def published(metric: str, window: int) -> Sample:
    """Three seeds with the published mean and range: the middle one follows from the others."""
    sample = {}
    for side, form in CELLS:
        part = ROUNDS["4-literal" if form == "literal" else "4-exact"]
        comparison = PUBLISHED_ARMS[side, part.arm(side).name]
        mean, low, high = load_windows()[comparison][side][window][metric]
        sample[side, form] = (low, 3 * mean - low - high, high)
    return sample


@pytest.mark.parametrize("metric", ["ret/std", "adv/std", "ent/action/mean"])
def test_the_published_statistics_follow_the_form(metric: str) -> None:
    measure = next(each for each in MEASURES if each.metric == metric)
    found = judge(measure, published(metric, measure.window))
    assert (found.word, found.faults, found.differs) == (FORM, (), True)


@pytest.mark.parametrize("metric", CONTROLS)
def test_the_published_controls_hold(metric: str) -> None:
    assert control(metric, published(metric, CONTROL_WINDOW)).holds


def test_the_published_entropy_of_the_last_window_does_not_follow_the_form() -> None:
    """At 20000 rows every arm is near the optimum: the rules must not see the form in that."""
    measure = next(each for each in MEASURES if each.metric == "ent/action/mean")
    assert judge(measure, published("ent/action/mean", 20_000)).word != FORM

"""The rules of round 5: the registered document, every outcome, second implementations, power."""

import json
import math
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis import round5_simulation as simulation
from analysis.round4_rules import CONTROL_TOLERANCE, CONTROLS, Measure
from analysis.round5_rules import (
    EFFECT_LEVEL,
    EQUAL_LEVEL,
    EXACT_SEEDS,
    FLAGS,
    MANIPULATIONS,
    MARGIN,
    MOST_ENTROPY,
    OUTCOME,
    OUTCOME_WINDOW,
    PAIRED_SEEDS,
    PLACEBO_SEEDS,
    REST_LEVEL,
    SMALLEST_EFFECT,
    TABLE,
    Placebo,
    difference_estimate,
    effect_p,
    equivalence_p,
    flags,
    log_ratios,
    manipulation_faults,
    mean_estimate,
    paired_effects,
    readings,
    rest_p,
    verdict,
)
from shared.protocol import FORMS, SIDES
from shared.provenance.roots import REPO

ONLY, FURTHER, OPEN = TABLE[3].reading, "a further cause", "a cause, the rest open"


def registered() -> str:
    return (REPO / "prereg" / "ROUND5.md").read_text()


def table(first: str) -> list[list[str]]:
    """Rows of cells of the document's table whose header begins with ``first``."""
    lines = registered().split(f"\n| {first} |", 1)[1].split("\n\n", 1)[0].splitlines()
    rows = [first + " |" + lines[0], *(line.removeprefix("| ") for line in lines[2:])]
    return [[cell.strip() for cell in row.removesuffix("|").split("|")] for row in rows]


def entropies(
    effects: tuple[float, float] = (0.064, 0.052), rest: float = 0.0, spread: float = 0.005
) -> dict[tuple[str, str], dict[int, float]]:
    """Entropies of a whole round by cell and seed, with just these mean effects and this rest."""
    rng = np.random.default_rng(1)

    def noise(seeds: tuple[int, ...]) -> np.ndarray:
        drawn = rng.standard_normal(len(seeds))
        return spread * (drawn - drawn.mean())

    values = {}
    for side, shown in zip(SIDES, effects, strict=True):
        exact = 0.45 + rest * (side == "reference") + noise(EXACT_SEEDS)
        values[side, "exact"] = dict(zip(EXACT_SEEDS, exact.tolist(), strict=True))
        literal = exact[: len(PAIRED_SEEDS)] + shown + noise(PAIRED_SEEDS)
        values[side, "literal"] = dict(zip(PAIRED_SEEDS, literal.tolist(), strict=True))
    return values


# --- the document ---------------------------------------------------------------------------


def test_the_documents_table_of_readings_is_the_code_s() -> None:
    header, *rows = table("complete")
    assert header == [*FLAGS, "reading"]
    value = {True: "yes", False: "no", None: "-"}
    assert rows == [[*(value[row.needs.get(flag)] for flag in FLAGS), row.reading] for row in TABLE]


def test_the_documents_tests_have_the_code_s_limits_and_levels() -> None:
    told = {name: (limits, level) for name, limits, level in table("test")[1:]}
    assert set(told) == set(FLAGS) - {"complete"}
    wanted = {"P1": SMALLEST_EFFECT, "refuted": SMALLEST_EFFECT, "P2": MARGIN, "P3": MARGIN}
    for name, limit in wanted.items():
        assert str(limit) in told[name][0]
    levels = {name: float(level.removesuffix(" %")) / 100 for name, (_, level) in told.items()}
    assert levels == {
        **dict.fromkeys(("P1", "refuted"), EFFECT_LEVEL),
        **dict.fromkeys(("P2", "P3"), EQUAL_LEVEL),
        "rest": REST_LEVEL,
    }


def test_the_documents_blocks_run_the_code_s_seeds_each_triple_once_a_form() -> None:
    blocks = [
        (name, form, tuple(map(int, seeds.split()))) for name, form, seeds in table("block")[1:]
    ]
    assert all(len(seeds) == 3 for *_, seeds in blocks)
    ran = {
        form: [
            seed
            for name, of, seeds in blocks
            for seed in seeds
            if of == form and "placebo" not in name
        ]
        for form in FORMS
    }
    assert ran == {"literal": list(PAIRED_SEEDS), "exact": list(EXACT_SEEDS)}
    assert [seeds for name, _, seeds in blocks if "placebo" in name] == [PLACEBO_SEEDS]
    # What a round has that is closed early, after its first blocks.
    for count, (pairs, seeds) in simulation.CLOSED.items():
        done = [block for block in blocks[:count] if "placebo" not in block[0]]
        assert 3 * sum(form == "literal" for _, form, _ in done) == pairs
        assert 3 * sum(form == "exact" for _, form, _ in done) == seeds


def test_the_document_names_outcome_manipulations_and_controls() -> None:
    text = registered()
    assert f"`{OUTCOME}`, the mean over the window that ends at {OUTCOME_WINDOW} rows" in " ".join(
        text.split()
    )
    assert all(f"`{measure.metric}` {measure.window}" in text for measure in MANIPULATIONS)
    assert all(f"`{name}`" in text for name in CONTROLS)
    assert CONTROL_TOLERANCE == 0.01


def test_what_was_known_is_what_round_4_s_records_say() -> None:
    reading = json.loads((REPO / "results" / "round4" / "reading.json").read_text())
    seeds = reading["statistics"]["ent/action/mean 4000"]["seeds"]
    values = {name: np.array(list(found.values())) for name, found in seeds.items()}
    effects = [paired_effects(values[f"{side} literal"], values[f"{side} exact"]) for side in SIDES]
    text = " ".join(registered().split())
    for estimate in (
        *map(mean_estimate, effects),
        difference_estimate(*effects),
        difference_estimate(values["ajax exact"], values["reference exact"]),
        difference_estimate(values["reference literal"], values["ajax exact"]),
    ):
        assert f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" in text
    assert "deviations {:.4f} and {:.4f}".format(*(each.std(ddof=1) for each in effects)) in text


def test_the_rule_of_round_4_refutes_by_chance_as_often_as_is_said() -> None:
    low, high = map(int, re.findall(r"by\s+chance\s+in\s+(\d+) % to (\d+) %", registered())[0])
    rng, shares = np.random.default_rng(4), []
    for reference, ajax in ((0.0106, 0.0221), (0.0093, 0.0355)):  # pooled, and round 4's own
        literal = 0.055 + reference * rng.standard_normal((20_000, 3))
        exact = ajax * rng.standard_normal((20_000, 3))
        shares.append(100 * float((literal.min(1) <= exact.max(1)).mean()))
    assert shares == pytest.approx([low, high], abs=1)


# --- every outcome has one reading ------------------------------------------------------------


def expected(complete, refuted, p1, p2, p3, rest) -> str:
    """The document's words once more, as a sequence of questions."""
    if not complete:
        return "undecided"
    if refuted:
        return "refuted"
    if not p1:
        return "undecided"
    if p2 and p3:
        return ONLY
    return FURTHER if rest else OPEN


def test_exactly_one_line_applies_to_every_outcome() -> None:
    outcomes = list(product((False, True), repeat=len(FLAGS)))
    found = {
        flag: np.array(values)
        for flag, values in zip(FLAGS, zip(*outcomes, strict=True), strict=True)
    }
    assert (np.sum([row.matches(found) for row in TABLE], axis=0) == 1).all()
    assert readings(found).tolist() == [expected(*outcome) for outcome in outcomes]


# --- the tests against second implementations --------------------------------------------------

samples = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(samples, st.floats(0.001, 0.05), st.floats(-0.1, 0.1))
def test_the_effects_p_is_student_s(rng: np.random.Generator, spread: float, mean: float) -> None:
    effects = mean + spread * rng.standard_normal(9)
    t = (effects.mean() - SMALLEST_EFFECT) / (effects.std(ddof=1) / 3)
    assert effect_p(effects, "greater") == pytest.approx(stats.t.sf(t, 8))
    assert effect_p(effects, "less") == pytest.approx(stats.t.cdf(t, 8))
    # "Refuted" is its upper bound of 97.5 % below the smallest effect, and P1 the lower one above.
    bounds = mean_estimate(effects)
    assert (effect_p(effects, "less") < EFFECT_LEVEL) == (bounds.high < SMALLEST_EFFECT)
    assert (effect_p(effects, "greater") < EFFECT_LEVEL) == (bounds.low > SMALLEST_EFFECT)


@given(samples, st.floats(0.001, 0.05), st.floats(-0.05, 0.05))
def test_equivalence_is_an_interval_within_the_margin(
    rng: np.random.Generator, spread: float, mean: float
) -> None:
    first, second = mean + spread * rng.standard_normal(12), 0.02 * rng.standard_normal(12)
    inside = difference_estimate(first, second, 1 - 2 * EQUAL_LEVEL)
    assert (equivalence_p(first, second) < EQUAL_LEVEL) == (max(-inside.low, inside.high) < MARGIN)
    assert equivalence_p(first, second) == pytest.approx(equivalence_p(second, first))
    outside = difference_estimate(first, second, 1 - REST_LEVEL)
    assert (rest_p(first, second) < REST_LEVEL) == (outside.low > 0 or outside.high < 0)


def test_many_rounds_at_once_are_read_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    truth = simulation.Scenario("", 0.045, 0.035, 0.02)
    for spread in simulation.SPREADS:
        many = simulation.simulate(truth, spread, 40, rng, 9, 12)
        assert all(many[flag].shape == (40,) for flag in FLAGS)
    literal, exact = ({side: 0.1 * rng.random((40, n)) for side in SIDES} for n in (9, 12))
    many = flags(literal, exact)
    for index in range(40):
        one = flags(*({side: each[side][index] for side in SIDES} for each in (literal, exact)))
        assert {flag: many[flag][index] for flag in FLAGS} == one


# --- a whole round ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "reading"),
    [
        (entropies(), ONLY),
        (entropies(rest=0.015), ONLY),  # not 0, and within the margin: the table says which
        (entropies(rest=-0.05), FURTHER),
        (entropies(rest=0.05), FURTHER),
        (entropies((0.1, 0.05), rest=0.05), FURTHER),
        (entropies((0.1, 0.05)), OPEN),
        (entropies((0.12, 0.12), spread=0.06), OPEN),
        (entropies((0.06, 0.0)), "refuted"),
        (entropies((-0.06, 0.06)), "refuted"),
        (entropies((0.0, 0.0), rest=0.05), "refuted"),
        (entropies((0.06, 0.021)), "undecided"),
        (entropies((0.03, 0.03), rest=0.05, spread=0.02), "undecided"),
    ],
)
def test_rounds_are_read_by_the_table(values, reading: str) -> None:
    found = verdict(values)
    assert found.reading == reading
    assert not found.faults
    assert found.flags["complete"]


def test_what_may_differ_without_changing_the_reading() -> None:
    values = entropies()
    backwards = {cell: dict(reversed(seeds.items())) for cell, seeds in values.items()}
    assert verdict(backwards) == verdict(values)
    extra = {cell: {**seeds, 99: 5.0} for cell, seeds in values.items()}
    assert verdict(extra) == verdict(values)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
@pytest.mark.parametrize(
    ("side", "form", "seed"), [("ajax", "literal", 20), ("reference", "exact", 31)]
)
def test_a_missing_value_leaves_it_undecided_and_is_named(value, side, form, seed) -> None:
    values = entropies()
    values[side, form].pop(seed)
    if value is not None:
        values[side, form][seed] = value
    found = verdict(values)
    assert found.reading == "undecided"
    assert len(found.faults) == 1
    assert form in found.faults[0]
    assert str(seed) in found.faults[0]


def test_a_failed_check_leaves_it_undecided_whatever_the_tests_say() -> None:
    found = verdict(entropies(), ["2-literal: ref exit code: 1"])
    assert found.reading == "undecided"
    assert found.faults == ("failed check: 2-literal: ref exit code: 1",)
    assert found.flags["P1"]


def test_a_round_that_was_closed_early_is_read_from_the_seeds_it_has() -> None:
    values = entropies()
    found = verdict(values, (), PAIRED_SEEDS[:6], EXACT_SEEDS[:9])
    assert found.flags["complete"]
    assert found.reading == ONLY
    with pytest.raises(ValueError, match="begin with"):
        verdict(values, (), PAIRED_SEEDS, EXACT_SEEDS[3:])


# --- manipulation checks, placebo, secondary ----------------------------------------------------


def noisy(measure: Measure, ratio: float, less: float) -> dict[tuple[str, str], dict[int, float]]:
    """By cell and seed: literal is ``ratio`` times exact, of differences ``less`` below it."""
    pair = (0.01 * ratio, 0.01) if measure.logarithm else (-less, 0.0)
    return {
        (side, form): dict.fromkeys(PAIRED_SEEDS, value)
        for side in SIDES
        for form, value in zip(FORMS, pair, strict=True)
    }


def test_manipulation_checks_find_each_pair_without_the_noise() -> None:
    for measure in MANIPULATIONS:
        assert manipulation_faults(measure, noisy(measure, 12, 0.11), PAIRED_SEEDS) == []
        every = manipulation_faults(measure, noisy(measure, 2.9, 0.04), PAIRED_SEEDS)
        assert len(every) == len(SIDES) * len(PAIRED_SEEDS)
        for value in (math.nan, -1.0 if measure.logarithm else 0.0):
            values = noisy(measure, 12, 0.11)
            values["ajax", "literal"][25] = value
            (fault,) = manipulation_faults(measure, values, PAIRED_SEEDS)
            assert "25" in fault
            assert measure.metric in fault


def test_manipulation_limits_are_the_documents() -> None:
    text = " ".join(registered().split())
    limits = {measure.metric: measure.smallest for measure in MANIPULATIONS}
    told = re.search(
        r"`ret/std` 2000 and `adv/std` 2000 at least (\d) times and `val/std` 4000 at least (\d) "
        r"times .* `rew/min` 4000 at least ([\d.]+) below it",
        text,
    )
    assert told is not None
    ratio, value, less = map(float, told.groups())
    assert limits == {"ret/std": ratio, "adv/std": ratio, "val/std": value, "rew/min": less}


def test_the_placebo_says_how_far_repeats_are_and_whether_they_are_the_same() -> None:
    found = Placebo(np.array([0.003, -0.004, 0.0]))
    assert found.spread == pytest.approx(math.sqrt((9 + 16) / 3) / 1000)
    assert not found.identical
    assert Placebo(np.zeros(3)).identical
    assert not Placebo(np.array([0.0, math.nan])).identical


def test_log_ratios_are_those_of_the_pairs() -> None:
    literal, exact = np.array([0.5, -0.1]), np.array([0.25, 0.4, 0.3])
    ratios = log_ratios(literal, exact)
    assert ratios[0] == pytest.approx(math.log(2))
    assert math.isnan(ratios[1])
    assert log_ratios(MOST_ENTROPY - literal, MOST_ENTROPY - exact)[0] == pytest.approx(
        math.log((math.log(2) - 0.5) / (math.log(2) - 0.25))
    )


# --- power --------------------------------------------------------------------------------------


def numbers(tables: list[list[list[str]]]) -> np.ndarray:
    """Every share in the tables, in per cent, in their order."""
    cells = [cell for rows in tables for row in rows[1:] for cell in row if " / " in cell]
    return np.array([float(part) for cell in cells for part in cell.split(" / ")])


def documents_tables() -> list[list[list[str]]]:
    rest = registered().split("\n## Power\n")[1]
    found = re.findall(r"^\|.*(?:\n\|.*)+", rest, re.M)
    return [
        [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if "---" not in line
        ]
        for text in found
    ]


def standard_errors(shares: np.ndarray, rounds: int) -> np.ndarray:
    """Of shares in per cent; a share of 0 or 100 may be one round away from it."""
    p = np.clip(shares / 100, 1 / rounds, 1 - 1 / rounds)
    return 100 * np.sqrt(p * (1 - p) / rounds)


def test_the_documents_power_is_that_of_the_simulation() -> None:
    told, made = documents_tables(), list(simulation.tables())
    assert [[row[:3] for row in rows] for rows in told] == [
        [row[:3] for row in rows] for rows in made
    ]
    assert [rows[0] for rows in told] == [rows[0] for rows in made]
    errors = standard_errors(numbers(told), simulation.SIMULATED)
    assert (np.abs(numbers(told) - numbers(made)) <= 2 * errors).all()
    assert errors.max() <= 0.8


def test_other_draws_give_the_same_power() -> None:
    rounds, told = 2_000, numbers(documents_tables())
    other = numbers(list(simulation.tables(rounds, seed=77)))
    errors = np.hypot(standard_errors(told, simulation.SIMULATED), standard_errors(told, rounds))
    apart = np.abs(told - other) / errors
    assert (apart <= 2).mean() > 0.9
    assert apart.max() < 4


def test_no_claim_is_wrong_more_often_than_its_level_at_the_edges() -> None:
    (tests, reads, _), names = documents_tables(), [*simulation.TESTS]

    def worst(rows: list[list[str]], column: str, lines: list[list[str]]) -> float:
        return max(
            float(part) for line in lines for part in line[rows[0].index(column, 3)].split(" / ")
        )

    def at(rows: list[list[str]], start: str) -> list[list[str]]:
        return [row for row in rows[1:] if row[0].startswith(start)]

    unrelated = [row for row in tests[1:] if float(row[2]) == 0]
    slack = 2 * float(standard_errors(np.array([5.0]), simulation.SIMULATED)[0])
    assert names == tests[0][3:]
    assert worst(tests, "P1", at(tests, "edge of P1")) <= 2.5 + slack
    assert worst(tests, "refuted", at(tests, "edge of P1")) <= 5 + slack
    assert worst(tests, "P2", at(tests, "edge of P2")) <= 5 + slack
    assert worst(tests, "P3", at(tests, "edge of P3")) <= 5 + slack
    assert worst(tests, "rest", unrelated) <= 5 + slack
    assert worst(reads, ONLY, at(reads, "edge")) <= 5 + slack
    assert worst(reads, FURTHER, [row for row in reads[1:] if float(row[2]) == 0]) <= 5 + slack


def test_the_documents_spreads_are_the_simulated_ones() -> None:
    text = " ".join(registered().split("\n## Power\n")[1].split())
    for spread in simulation.SPREADS:
        for values in (spread.exact, spread.effect):
            assert all(f"{value:.4f}" in text for value in values.values())
        assert all(f"{value:.2f}" in text for value in spread.correlation.values())
    assert f"{simulation.SIMULATED:,} simulated rounds" in text

"""Comparisons: the published rounds to the printed digit, sides that lack files, and the cost."""

import re
import time
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from analysis.checks import Sizes
from analysis.companions import companion
from analysis.comparison import Comparison, compare_sides
from analysis.data import Missing, SeedData, SideData
from analysis.published import load_statistics, published_side
from analysis.readings import difference_told, read_round2, read_round3, round3_notes
from analysis.statistics import welch
from shared.metrics import AJAX_TO_REFERENCE
from shared.protocol import N_ENVS, PAIRINGS, ROUNDS, SIDES, Side, checkpoints
from shared.records.rows import Episode
from tests.made_sides import compare_means, episode, evaluation, record, side_of_means


@cache
def published(name: str) -> Comparison:
    pairing = PAIRINGS[name]
    number = pairing.round_number
    protocol = ROUNDS[str(number)]
    sizes = Sizes(protocol.seeds, protocol.rows, protocol.every, protocol.episodes, False)
    sides = [published_side(side, pairing.rounds[side]) for side in SIDES]
    return compare_sides(name, number, sizes, sides[0], sides[1], smoke=False)


# --- the published rounds -------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRINGS)
def test_s1_and_late_of_every_seed_are_those_stated(name: str) -> None:
    stated, found = load_statistics()[name].seeds, published(name)
    checked = 0
    for (side, seed), row in stated.items():
        position = found.sides[side].seed_numbers.index(seed)
        for statistic in (found.s1, found.late):
            if statistic is not None and row.get(statistic.name) is not None:
                value = statistic.values[side][position]
                assert value == pytest.approx(row[statistic.name], rel=1e-12)
                checked += 1
    assert checked == (20 if name == "round3" else 6)


@pytest.mark.parametrize(
    ("name", "a", "low", "high", "learns", "within"),
    [
        ("round1", 204.1, 241.4, 386.1, False, False),
        ("pairE", 204.1, 265.2, 307.0, False, False),
        ("pairR", 233.2, 241.4, 386.1, False, False),
    ],
)
def test_the_s1_rule_is_the_published_one(name, a, low, high, learns, within) -> None:
    rule = published(name).s1.rule
    assert tuple(round(each, 1) for each in (rule.A, rule.low, rule.high)) == (a, low, high)
    assert (rule.learns, rule.within_range) == (learns, within)
    assert published(name).primary is published(name).s1


def test_round_3_is_the_published_one() -> None:
    found = published("round3")
    late, s1 = found.late, found.s1
    means = {side: round(float(np.mean(late.values[side])), 1) for side in SIDES}
    assert means == {"reference": 312.7, "ajax": 265.4}
    ranges = {
        side: (round(min(values), 1), round(max(values), 1)) for side, values in late.values.items()
    }
    assert ranges == {"reference": (270.3, 346.7), "ajax": (198.3, 321.1)}
    assert (round(late.welch.t, 3), round(late.welch.p, 4)) == (1.795, 0.1216)
    assert [round(float(np.mean(s1.values[side])), 1) for side in SIDES] == [282.1, 305.8]
    assert round(s1.welch.p, 4) == 0.5166
    assert found.primary is late


def test_concordance_of_round_3_is_the_published_one() -> None:
    found = published("round3").concordance
    assert {side: each.at for side, each in found.items()} == {
        "reference": {20_000: 2, 24_000: 4},
        "ajax": {20_000: 2, 24_000: 3},
    }
    assert [round(found[side].rate, 3) for side in SIDES] == [0.457, 0.324]
    assert {each.seeds for each in found.values()} == {5}
    stated = load_statistics()["round3"].concordance
    rates = [stated["ref_rate_16_24k"], stated["ajax_rate_16_24k"]]
    assert [found[side].rate for side in SIDES] == pytest.approx(rates, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "disjoint"),
    [("round1", [2_000, 4_000, 6_000, 8_000, 12_000]), ("pairE", []), ("pairR", [])],
)
def test_entropy_windows_are_disjoint_where_published(name: str, disjoint: list[int]) -> None:
    windows = published(name).entropy
    assert [window.rows for window in windows] == list(checkpoints(20_000, 2_000))
    assert [window.rows for window in windows if not window.overlap] == disjoint
    assert load_statistics()[name].entropy_disjoint == disjoint


def test_readings_are_the_published_ones() -> None:
    reading = read_round2(
        published("round1"), {each: published(each) for each in ("pairE", "pairR")}
    )
    assert reading.text.startswith("unsettled by its own wording")
    first, pair = reading.round1, reading.pairs["pairE"]
    assert (round(pair.gap.of_means, 1), round(first.of_means, 1)) == (85.8, 87.2)
    assert (round(pair.gap.to_lowest, 1), round(first.to_lowest, 1)) == (61.0, 37.2)
    assert (pair.shrank_of_means, pair.shrank_to_lowest) == (True, False)
    found = published("round3")
    text = read_round3(found.concordance["reference"], found.late.welch)
    assert text.startswith("H2 or noise")
    assert load_statistics()["round3"].reading.startswith("H2 or noise")


def test_the_reading_of_round_3_says_what_h2_is_and_what_is_not_distinguished() -> None:
    text = " ".join(round3_notes(published("round3")))
    assert "H2 or noise: the reference's runs are correlated" in text
    assert "(D2)" in text
    assert "2 of 5 (Reference) and 2 of 5 (Ajax)" in text
    late, s1 = text[text.index("LATE") : text.index("S1 (")], text[text.index("S1 (") :]
    assert "47.2 [-16.8, 111.3], Welch p 0.1216" in late
    assert "not distinguished; Reference is higher by 47.2" in late
    assert "-23.8 [-104.5, 57.0], Welch p 0.5166" in s1
    assert "not distinguished; Ajax is higher by 23.8" in s1
    assert "within noise" not in text


@pytest.mark.parametrize(
    ("gap", "word"), [(0.0, "not distinguished"), (300.0, "are distinguished")]
)
def test_a_difference_is_told_with_its_interval(gap: float, word: str) -> None:
    late = published("round3").late
    values = {"reference": late.values["reference"] + gap, "ajax": late.values["ajax"]}
    told = difference_told(
        replace(
            late,
            values=values,
            welch=welch(*values.values()),
            companion=companion(*values.values()),
        )
    )
    assert word in told
    assert re.search(r"\[-?\d+\.\d, \d+\.\d\]", told)
    assert difference_told(replace(late, welch=None, companion=None)) is None


def test_published_s2_and_windows_are_carried_and_said_to_be() -> None:
    found = published("round1")
    assert [round(float(np.mean(found.s2.values[side])), 1) for side in SIDES] == [106.6, 107.6]
    assert found.windows["reference"][2_000]["ret/std"][0] == pytest.approx(0.135, abs=5e-4)
    assert found.windows["ajax"][2_000]["ret/std"][0] == pytest.approx(0.0099, abs=5e-5)
    assert found.entropy_tests == {}
    assert any("carried" in missing.statistics for missing in found.out_of_reach)


def test_companions_say_what_the_published_samples_can_show() -> None:
    three, five = published("round1").s1.companion, published("round3").late.companion
    assert three.permutation.smallest_p == pytest.approx(0.10)
    assert round(five.permutation.smallest_p, 4) == 0.0079
    assert five.interval[0] < 0 < five.interval[1]
    assert five.detectable > five.difference


# --- symmetries of the whole comparison -----------------------------------------------------


@pytest.mark.parametrize("round_number", [1, 3])
def test_a_comparison_does_not_see_the_order_of_seeds(round_number: int) -> None:
    generator = np.random.default_rng(11)
    tables = generator.integers(0, 5_000, (2, 4, 60)) / 10
    entropy = generator.random((2, 4, 60))
    order = [2, 0, 3, 1]
    plain, moved = (
        compare_means(
            tables[0][index],
            tables[1][index],
            round_number=round_number,
            every=400,
            entropy=(entropy[0][index], entropy[1][index]),
        )
        for index in (slice(None), order)
    )
    for name in ("s1", "late"):
        first, second = getattr(plain, name), getattr(moved, name)
        assert (first is None) == (name == "late" and round_number == 1)
        if first is not None:
            for side in SIDES:
                np.testing.assert_array_equal(first.values[side][order], second.values[side])
            assert pytest.approx(first.rule.A) == second.rule.A
            assert second.welch.p == pytest.approx(first.welch.p)
            assert second.companion.permutation.p == first.companion.permutation.p
    for side in SIDES:
        first, second = plain.concordance[side], moved.concordance[side]
        assert (second.at, second.rate) == (first.at, first.rate)
        assert sorted(second.seed_rates) == sorted(first.seed_rates)
    assert [window.overlap for window in moved.entropy] == [w.overlap for w in plain.entropy]
    assert {end: test.permutation.p for end, test in moved.entropy_tests.items()} == {
        end: test.permutation.p for end, test in plain.entropy_tests.items()
    }


# --- smoke runs and sides that lack files ---------------------------------------------------


def test_s1_of_a_smoke_run_is_over_its_last_three_checkpoints() -> None:
    found = compare_means([[1, 2, 3, 7]], [[4, 4, 5, 9]], every=400, smoke=True)
    assert found.s1.rows == (800, 1_200, 1_600)
    assert [found.s1.values[side].tolist() for side in SIDES] == [[4.0], [6.0]]
    late = compare_means([[1, 2, 3, 7]], [[4, 4, 5, 9]], every=400, smoke=True, round_number=3)
    assert (late.late, late.primary) == (None, late.s1)


def test_a_run_that_ended_early_says_which_statistic_is_out_of_reach() -> None:
    found = compare_means(np.ones((2, 5)), np.ones((2, 5)), round_number=3)
    assert (found.s1, found.late) == (None, None)
    assert {(each.statistics, each.file) for each in found.out_of_reach} == {
        (name, f"{side} evaluations at {rows}")
        for side in ("ref", "ajax")
        for name, rows in (
            ("S1", "16000 18000 20000"),
            ("LATE", "12000 12400 12800 (and 28 more)"),
        )
    }


def test_one_side_alone_has_values_and_no_comparison() -> None:
    grid = checkpoints(20_000, 2_000)
    ajax = side_of_means("ajax", np.full((3, 10), 70.0), grid)
    absent = SideData("reference", "made", (), missing=(Missing("reference side", "everything"),))
    sizes = Sizes((0, 1, 2), 20_000, 2_000, 10, False)
    found = compare_sides("one", 1, sizes, absent, ajax, smoke=False)
    assert found.s1.values["ajax"].tolist() == [70.0] * 3
    assert (found.s1.rule, found.s1.welch, found.s1.companion) == (None, None, None)
    assert list(found.concordance) == ["ajax"]
    assert found.entropy == ()
    assert "reference side" in {each.file for each in found.out_of_reach}


def seed_with(number: int, rows: list[int], **parts: object) -> SeedData:
    return SeedData(number, tuple(evaluation(at, 50.0, seed=number) for at in rows), **parts)


def test_s2_comes_from_episodes_from_ajaxs_log_or_is_carried() -> None:
    rows = [400, 800]
    episodes = tuple(episode(worker, 25 * k, 10.0 * k) for worker in range(16) for k in (1, 2))
    logged = tuple(
        record(at, {}, s2_logged=value) for at, value in zip(rows, (None, 33.0), strict=True)
    )
    sizes = Sizes((0,), 800, 400, 2, True)

    def curves(reference: SeedData, ajax: SeedData) -> Comparison:
        sides = (SideData("reference", "x", (reference,)), SideData("ajax", "x", (ajax,)))
        return compare_sides("s2", 1, sizes, *sides, smoke=True)

    found = curves(
        seed_with(0, rows, episodes=episodes),
        seed_with(0, rows, records=logged),
    )
    assert found.s2_curves == {"reference": {0: (10.0, 15.0)}, "ajax": {0: (None, 33.0)}}
    assert [found.s2.values[side].tolist() for side in SIDES] == [[15.0], [33.0]]
    carried = curves(seed_with(0, rows, carried_s2=(1.0, None)), seed_with(0, rows))
    assert carried.s2_curves == {"reference": {0: (1.0, None)}, "ajax": {}}
    assert carried.s2 is None
    # The reference's records hold no S2: without its episodes there is none.
    bare = curves(seed_with(0, rows, records=logged), seed_with(0, rows, records=logged))
    assert list(bare.s2_curves["reference"]) == []
    # The reference stopped early: S2 is compared where both sides have it.
    early = curves(
        seed_with(0, rows[:1], episodes=episodes), seed_with(0, rows, carried_s2=(7.0, 33.0))
    )
    assert early.s2.rows == (400,)
    assert [early.s2.values[side].tolist() for side in SIDES] == [[10.0], [7.0]]


def test_entropy_of_known_seeds_is_tested_in_every_window() -> None:
    low, high = np.linspace(0.1, 0.2, 3)[:, None], np.linspace(0.3, 0.4, 3)[:, None]
    tables = np.repeat(low, 10, axis=1), np.repeat(high, 10, axis=1)
    found = compare_means(np.ones((3, 10)), np.ones((3, 10)), entropy=tables)
    assert list(found.entropy_tests) == list(checkpoints(20_000, 2_000))
    assert {test.permutation.p for test in found.entropy_tests.values()} == {0.1}
    assert not any(window.overlap for window in found.entropy)
    assert found.entropy[0].ranges["reference"] == (0.1, 0.2)


# --- cost -----------------------------------------------------------------------------------


def many_seeds(side: Side, count: int) -> SideData:
    """``count`` seeds of round 3: 60 checkpoints with about 100 metrics each, and episodes."""
    generator = np.random.default_rng(SIDES.index(side))
    grid = checkpoints(24_000, 400)
    names = [*AJAX_TO_REFERENCE, *(f"extra/{number}" for number in range(9))]
    # Distinct windows to draw from: 12 million floats of their own would fill the memory.
    windows = [
        dict(zip(names, generator.random(len(names)).tolist(), strict=True)) for _ in range(211)
    ]
    seeds = []
    for seed in range(count):
        means = generator.uniform(9, 500, len(grid)).tolist()
        picked = generator.integers(0, len(windows), len(grid)).tolist()
        episodes: list[Episode] = []
        for worker in range(N_ENVS if side == "reference" else 0):
            ends = np.cumsum(generator.integers(20, 140, 18) + 1) - 1
            episodes += [Episode(seed, worker, int(end), 80, 80.0, True) for end in ends]
        evaluations = tuple(
            evaluation(at, mean, seed=seed) for at, mean in zip(grid, means, strict=True)
        )
        records = tuple(
            record(at, windows[index], seed=seed, side=side, s2_logged=50.0)
            for at, index in zip(grid, picked, strict=True)
        )
        found = tuple(episodes) if side == "reference" else None
        seeds.append(SeedData(seed, evaluations, records, found))
    return SideData(side, "made", tuple(seeds))


def cost(count: int) -> float:
    """Processor seconds of one comparison: a busy machine does not count."""
    sides = [many_seeds(side, count) for side in SIDES]
    sizes = Sizes(tuple(range(count)), 24_000, 400, 10, False)
    start = time.process_time()
    found = compare_sides("many", 3, sizes, *sides, smoke=False)
    spent = time.process_time() - start
    assert len(found.late.values["ajax"]) == count
    assert len(found.entropy_tests) == 12
    assert len(found.windows["reference"][24_000]) > 100
    assert len(found.s2_curves["reference"]) == count
    return spent


def test_the_cost_of_a_thousand_seeds_a_side_grows_linearly() -> None:
    small, large = cost(250), cost(1_000)
    # Linear is 4, quadratic 16.
    assert large < 8 * small

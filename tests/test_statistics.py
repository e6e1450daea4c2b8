"""The pre-registered statistics against second implementations, symmetries and scipy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics import (
    EntropyWindow,
    Rule,
    concordance,
    mean_at,
    ranges_overlap,
    rule,
    s2_curve,
    welch,
)
from shared.protocol import LATE_ROWS, S1_ROWS, checkpoints
from shared.records.rows import Episode
from tests.made_sides import episode

GRIDS = {"S1": (checkpoints(20_000, 2_000), S1_ROWS), "LATE": (checkpoints(24_000, 400), LATE_ROWS)}
returns = st.integers(0, 5_000).map(lambda tenths: tenths / 10)
samples = st.lists(returns, min_size=2, max_size=8)


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, str]:
    """Evaluation means ``[seeds, checkpoints]`` and the statistic whose grid they lie on."""
    name = draw(st.sampled_from(sorted(GRIDS)))
    seeds, size = draw(st.integers(1, 5)), len(GRIDS[name][0])
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return generator.integers(0, 5_001, (seeds, size)) / 10, name


# --- S1 and LATE ----------------------------------------------------------------------------


@given(tables())
def test_s1_and_late_agree_with_a_naive_mean(case: tuple[np.ndarray, str]) -> None:
    means, name = case
    grid, rows = GRIDS[name]
    found = mean_at(means, grid, rows)
    naive = []
    for seed in means:
        total, count = 0.0, 0
        for at, mean in zip(grid, seed, strict=True):
            wanted = at in (16_000, 18_000, 20_000) if name == "S1" else 12_000 <= at <= 24_000
            total, count = (total + mean, count + 1) if wanted else (total, count)
        assert count == (3 if name == "S1" else 31)
        naive.append(total / count)
    np.testing.assert_allclose(found, naive, rtol=1e-13)


@given(tables(), st.randoms())
def test_permuting_the_seeds_permutes_the_values(case: tuple[np.ndarray, str], random) -> None:
    means, name = case
    order = list(range(len(means)))
    random.shuffle(order)
    plain, moved = mean_at(means, *GRIDS[name]), mean_at(means[order], *GRIDS[name])
    np.testing.assert_array_equal(plain[order], moved)


@given(tables(), st.floats(-100, 100), st.floats(0.01, 100))
def test_s1_and_late_shift_and_scale_with_the_returns(
    case: tuple[np.ndarray, str], shift: float, scale: float
) -> None:
    means, name = case
    plain = mean_at(means, *GRIDS[name])
    moved = mean_at(means * scale + shift, *GRIDS[name])
    np.testing.assert_allclose(moved, plain * scale + shift, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lost", S1_ROWS)
def test_a_statistic_whose_checkpoint_is_missing_is_none(lost: int) -> None:
    grid = [rows for rows in checkpoints(20_000, 2_000) if rows != lost]
    assert mean_at(np.ones((2, len(grid))), grid, S1_ROWS) is None
    assert mean_at(np.ones((2, len(grid))), grid, ()) is None


# --- the rule -------------------------------------------------------------------------------


@given(samples, samples, st.randoms())
def test_the_rule_is_mean_against_range_in_any_order(reference, ajax, random) -> None:
    found = rule(np.array(reference), np.array(ajax))
    total = sum(ajax) / len(ajax)
    assert pytest.approx(total, rel=1e-13) == found.A
    assert (found.low, found.high) == (sorted(reference)[0], sorted(reference)[-1])
    assume(all(abs(total - edge) > 1e-9 for edge in (found.low, found.high)))
    assert found.learns is not (total < min(reference))
    assert found.within_range == (min(reference) < total < max(reference))
    random.shuffle(reference), random.shuffle(ajax)
    again = rule(np.array(reference), np.array(ajax))
    assert (again.learns, again.within_range) == (found.learns, found.within_range)


@given(samples, samples, st.floats(-100, 100), st.floats(0.01, 100))
def test_the_rule_does_not_see_a_shift_or_a_scale(reference, ajax, shift, scale) -> None:
    plain = rule(np.array(reference), np.array(ajax))
    moved = rule(np.array(reference) * scale + shift, np.array(ajax) * scale + shift)
    assume(all(abs(plain.A - edge) > 1e-6 for edge in (plain.low, plain.high)))
    assert (moved.learns, moved.within_range) == (plain.learns, plain.within_range)


@pytest.mark.parametrize(
    ("a", "learns", "within"),
    [(9.9, False, False), (10.0, True, True), (20.0, True, True), (20.1, True, False)],
)
def test_the_bounds_of_the_rule_belong_to_the_range(a, learns, within) -> None:
    found = Rule(a, 10.0, 20.0)
    assert (found.learns, found.within_range) == (learns, within)


# --- Welch ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(samples, samples)
def test_welch_is_the_textbook_formula_with_scipys_distribution(reference, ajax) -> None:
    first, second = np.array(reference), np.array(ajax)
    found = welch(first, second)
    if not (np.ptp(first) or np.ptp(second)):
        assert found is None
        return
    assert found is not None
    parts = [np.var(each, ddof=1) / len(each) for each in (first, second)]
    t = (first.mean() - second.mean()) / np.sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(
        part**2 / (len(each) - 1) for part, each in zip(parts, (first, second), strict=True)
    )
    assert found.t == pytest.approx(t, rel=1e-9, abs=1e-9)
    assert found.df == pytest.approx(df, rel=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), df), rel=1e-6, abs=1e-300)


@given(samples, samples, st.floats(-100, 100), st.floats(0.01, 100))
def test_welch_has_the_symmetries_of_a_difference(reference, ajax, shift, scale) -> None:
    first, second = np.array(reference), np.array(ajax)
    # Nearly equal seeds lose their spread to rounding when they are shifted.
    assume(np.ptp(first) > 0.05 and np.ptp(second) > 0.05)
    plain = welch(first, second)
    moved = welch(first * scale + shift, second * scale + shift)
    swapped = welch(second, first)
    assert moved.t == pytest.approx(plain.t, rel=1e-5, abs=1e-5)
    assert moved.p == pytest.approx(plain.p, rel=1e-3)
    assert (swapped.t, swapped.p) == pytest.approx((-plain.t, plain.p))
    assert (plain.t > 0) == (first.mean() > second.mean()) or plain.t == pytest.approx(0, abs=1e-6)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(samples, samples)
def test_welch_is_scipys(reference, ajax) -> None:
    assume(len(set(reference)) > 1 or len(set(ajax)) > 1)
    found = welch(np.array(reference), np.array(ajax))
    oracle = stats.ttest_ind(reference, ajax, equal_var=False, alternative="two-sided")
    assert (found.t, found.p, found.df) == (oracle.statistic, oracle.pvalue, oracle.df)


@pytest.mark.parametrize(
    ("reference", "ajax"), [([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0]), ([5.0, 5.0], [7.0, 7.0])]
)
def test_welch_needs_two_seeds_a_side_and_some_spread(reference, ajax) -> None:
    assert welch(np.array(reference), np.array(ajax)) is None


# --- concordance ----------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([400, 800, 2_000, 1_600]))
def test_concordance_agrees_with_counting(seeds: int, entropy: int, every: int) -> None:
    grid = checkpoints(24_000, every)
    # Around the threshold, and often exactly at it.
    means = np.random.default_rng(entropy).integers(398, 403, (seeds, len(grid))).astype(float)
    found = concordance(means, grid)
    at = {20_000: 0, 24_000: 0}
    late = capped = 0
    for seed in range(seeds):
        for column, rows in enumerate(grid):
            reached = not means[seed, column] < 400
            if rows in at and reached:
                at[rows] += 1
            if 16_000 <= rows <= 24_000:
                late, capped = late + 1, capped + reached
    reached_rows = {rows: count if rows in grid else None for rows, count in at.items()}
    assert (found.seeds, found.at) == (seeds, reached_rows)
    assert found.rate == pytest.approx(capped / late)


def test_concordance_out_of_reach_of_a_short_run_is_none() -> None:
    found = concordance(np.full((3, 10), 450.0), checkpoints(20_000, 2_000))
    assert found.at == {20_000: 3, 24_000: None}
    assert found.rate is None


# --- entropy overlap ------------------------------------------------------------------------


@given(*[st.tuples(returns, returns).map(lambda pair: tuple(sorted(pair))) for _ in "ab"])
def test_ranges_overlap_where_a_point_lies_in_both(first, second) -> None:
    # If closed ranges share a point, then an end of one of them is shared.
    points = [*first, *second]
    naive = any(first[0] <= p <= first[1] and second[0] <= p <= second[1] for p in points)
    assert ranges_overlap(first, second) is naive
    assert ranges_overlap(second, first) is naive
    assert EntropyWindow(2_000, {"reference": first, "ajax": second}).overlap is naive


# --- S2 -------------------------------------------------------------------------------------


def naive_s2(episodes: list[Episode], rows: int) -> float | None:
    means = []
    for worker in range(16):
        own = [each for each in episodes if each.worker == worker and each.row_last * 16 <= rows]
        own.sort(key=lambda each: each.row_last)
        if not own:
            return None
        last = own[-10:]
        means.append(sum(each.score for each in last) / len(last))
    return sum(means) / 16


@st.composite
def histories(draw: st.DrawFn) -> list[Episode]:
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    longest = draw(st.sampled_from([12, 40, 200]))
    found = []
    for worker in range(16):
        row = -1
        while row < 150:
            length = int(generator.integers(1, longest))
            row += length + 1
            found.append(episode(worker, row, float(length)))
    order = generator.permutation(len(found))
    return [found[index] for index in order]


@given(histories())
def test_s2_agrees_with_a_naive_second_implementation(history: list[Episode]) -> None:
    grid = checkpoints(2_400, 160)
    naive = [naive_s2(history, rows) for rows in grid]
    assert s2_curve(history, grid) == [None if n is None else pytest.approx(n) for n in naive]


def test_s2_takes_ten_episodes_and_those_that_end_on_the_checkpoint() -> None:
    # Environment 0: scores 1 to 12 ending at rows 10, 20, .. 120; the others: 5 at row 1.
    history = [episode(0, 10 * score, float(score)) for score in range(1, 13)]
    history += [episode(worker, 1, 5.0) for worker in range(1, 16)]
    curve = s2_curve(history, [16 * 9, 16 * 10, 16 * 110 - 1, 16 * 110, 16 * 120])
    others = 15 * 5.0
    means = [None, 1.0, 5.5, 6.5, 7.5]
    assert curve == [None if mean is None else (mean + others) / 16 for mean in means]


def test_s2_is_none_while_an_environment_has_finished_none() -> None:
    history = [episode(worker, 5) for worker in range(15)]
    assert s2_curve(history, [160, 320]) == [None, None]
    assert s2_curve([*history, episode(15, 20)], [160, 320]) == [None, 10.0]
    assert s2_curve([], [160]) == [None]

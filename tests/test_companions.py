"""What the samples can show: by brute force, by simulation, and at its extremes."""

from itertools import permutations
from math import comb, sqrt
from time import process_time

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.companions import (
    MAX_REGROUPINGS,
    ajax_higher,
    block_bootstrap_interval,
    companion,
    disjoint_by_chance,
    fisher,
    overlap_by_chance,
    permutation,
)

returns = st.integers(0, 500).map(float)
few = st.lists(returns, min_size=1, max_size=4)
samples = st.lists(returns, min_size=2, max_size=6)
MANY = 30  # seeds a side: too many regroupings to visit


pytestmark = pytest.mark.filterwarnings("ignore:Precision loss")


def arrays(*lists: list[float]) -> list[np.ndarray]:
    return [np.array(each, dtype=float) for each in lists]


# --- permutation test -----------------------------------------------------------------------


def brute_force(reference: list[float], ajax: list[float]) -> tuple[float, float]:
    """p and the share of failing rules over all orders of the pooled seeds, in whole numbers."""
    pooled, n = [*map(int, reference), *map(int, ajax)], len(reference)
    m = len(ajax)

    def gap(order: tuple[int, ...]) -> int:
        return abs(sum(order[:n]) * m - sum(order[n:]) * n)

    observed = gap(tuple(pooled))
    orders = list(permutations(pooled))
    extreme = sum(gap(order) >= observed for order in orders)
    fails = sum(sum(order[n:]) < m * min(order[:n]) for order in orders)
    return extreme / len(orders), fails / len(orders)


@settings(max_examples=25)
@given(few, st.lists(returns, min_size=1, max_size=3))
def test_the_exact_test_agrees_with_all_orders_of_the_seeds(reference, ajax) -> None:
    found = permutation(*arrays(reference, ajax))
    assert found.exact
    assert found.regroupings == comb(len(reference) + len(ajax), len(ajax))
    p, fails = brute_force(reference, ajax)
    assert found.p == pytest.approx(p)
    assume(len({*reference, *ajax}) > 1)  # equal seeds: a mean of equal numbers may round down
    assert found.rule_fails == pytest.approx(fails)


@settings(max_examples=30)
@given(samples, samples, st.randoms())
def test_the_exact_test_does_not_see_order_shift_or_scale(reference, ajax, random) -> None:
    plain = permutation(*arrays(reference, ajax))
    # Powers of two and whole numbers: rounding makes no new ties and loses none.
    moved = permutation(*(4 * each + 64 for each in arrays(reference, ajax)))
    swapped = permutation(*arrays(ajax, reference))
    random.shuffle(reference), random.shuffle(ajax)
    shuffled = permutation(*arrays(reference, ajax))
    assert shuffled.p == moved.p == swapped.p == plain.p
    assert shuffled.rule_fails == plain.rule_fails
    assert plain.smallest_p <= plain.p <= 1


@pytest.mark.parametrize(
    ("n", "m", "smallest"),
    [(3, 3, 2 / 20), (5, 5, 2 / 252), (3, 5, 1 / 56), (1, 1, 1), (2, 4, 1 / 15)],
)
def test_the_smallest_p_is_reached_by_separated_sides_and_by_no_others(n, m, smallest) -> None:
    low, high = 10.0 * np.arange(n), 1_000 + 3.0 * np.arange(m)
    found = permutation(low, high)
    assert found.smallest_p == pytest.approx(smallest)
    # With unequal sizes the mirrored grouping is less extreme; with equal ones it is as extreme.
    assert found.p == pytest.approx(smallest)
    generator = np.random.default_rng(5)
    for _ in range(20):
        assert permutation(generator.normal(size=n), generator.normal(size=m)).p >= smallest - 1e-12


def test_three_seeds_a_side_cannot_reach_five_percent_and_five_can() -> None:
    assert permutation(np.arange(3.0), np.arange(3.0)).smallest_p == pytest.approx(0.10)
    assert round(permutation(np.arange(5.0), np.arange(5.0)).smallest_p, 4) == 0.0079


def test_many_seeds_are_drawn_and_the_result_repeats() -> None:
    generator = np.random.default_rng(1)
    reference, ajax = generator.normal(0, 1, MANY), generator.normal(0.5, 1, MANY)
    found = permutation(reference, ajax)
    assert (found.exact, found.regroupings) == (False, MAX_REGROUPINGS)
    assert found == permutation(reference, ajax)
    oracle = stats.ttest_ind(reference, ajax).pvalue
    assert found.p == pytest.approx(oracle, abs=0.02)


def test_a_drawn_p_is_never_zero() -> None:
    found = permutation(np.arange(MANY), 1e3 + np.arange(MANY))
    assert found.p == found.smallest_p == pytest.approx(1 / (MAX_REGROUPINGS + 1))


def test_drawn_regroupings_agree_with_visiting_all(monkeypatch) -> None:
    generator = np.random.default_rng(2)
    reference, ajax = generator.normal(0, 1, 5), generator.normal(1, 1, 6)
    exact = permutation(reference, ajax)
    monkeypatch.setattr("analysis.companions.comb", lambda *_: MAX_REGROUPINGS + 1)
    drawn = permutation(reference, ajax)
    assert (exact.exact, drawn.exact) == (True, False)
    assert drawn.p == pytest.approx(exact.p, abs=0.02)
    assert drawn.rule_fails == pytest.approx(exact.rule_fails, abs=0.02)


# --- effect size ----------------------------------------------------------------------------


@given(samples, samples)
def test_hedges_g_agrees_with_a_second_implementation(reference, ajax) -> None:
    assume(np.ptp(reference) or np.ptp(ajax))
    n, m = len(reference), len(ajax)
    means = [sum(each) / len(each) for each in (reference, ajax)]
    squares = sum(
        (value - mean) ** 2
        for each, mean in zip((reference, ajax), means, strict=True)
        for value in each
    )
    cohens_d = (means[0] - means[1]) / sqrt(squares / (n + m - 2))
    found = companion(*arrays(reference, ajax))
    assert found.difference == pytest.approx(means[0] - means[1], abs=1e-9)
    assert found.hedges_g == pytest.approx((1 - 3 / (4 * (n + m) - 9)) * cohens_d, abs=1e-9)
    low, high = found.hedges_interval
    assert low <= found.hedges_g <= high


@given(samples, samples)
def test_effect_size_and_intervals_turn_round_with_the_sides(reference, ajax) -> None:
    assume(np.ptp(reference) or np.ptp(ajax))
    plain, swapped = companion(*arrays(reference, ajax)), companion(*arrays(ajax, reference))
    assert swapped.hedges_g == pytest.approx(-plain.hedges_g, abs=1e-12)
    for there, back in (
        (plain.interval, swapped.interval),
        (plain.hedges_interval, swapped.hedges_interval),
    ):
        assert back == pytest.approx((-there[1], -there[0]), rel=1e-4, abs=1e-6)
    assert swapped.detectable == pytest.approx(plain.detectable)


@given(samples, samples)
def test_effect_size_does_not_see_a_shift_or_a_scale(reference, ajax) -> None:
    assume(np.ptp(reference) or np.ptp(ajax))
    plain = companion(*arrays(reference, ajax))
    moved = companion(*(0.5 * each + 32 for each in arrays(reference, ajax)))
    assert moved.hedges_g == pytest.approx(plain.hedges_g, rel=1e-9)
    assert moved.hedges_interval == pytest.approx(plain.hedges_interval, rel=1e-6, abs=1e-9)
    assert moved.difference == pytest.approx(plain.difference / 2)
    assert moved.interval == pytest.approx(tuple(each / 2 for each in plain.interval))
    assert moved.detectable == pytest.approx(plain.detectable / 2)


def coverage(true_difference: float, n: int, runs: int) -> tuple[float, float]:
    """Shares of simulated comparisons whose intervals hold the true difference and effect."""
    generator = np.random.default_rng(3)
    plain = effect = 0
    for _ in range(runs):
        found = companion(generator.normal(true_difference, 1, n), generator.normal(0, 1, n))
        plain += found.interval[0] <= true_difference <= found.interval[1]
        low, high = (bound / (1 - 3 / (8 * n - 9)) for bound in found.hedges_interval)
        effect += low <= true_difference <= high
    return plain / runs, effect / runs


def test_intervals_hold_the_truth_in_95_of_100_comparisons() -> None:
    # 400 runs: a standard error of 1.1 points. Five seeds, as in round 3.
    for share in coverage(1.5, 5, 400):
        assert 0.92 < share < 0.98


# --- detectable difference ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "m", "spreads"),
    [
        (3, 3, (82, 75)),
        (3, 3, (1, 4)),
        (2, 3, (1, 2)),
        (3, 3, (1, 0)),
        (5, 5, (1, 3)),
        (8, 20, (2, 1)),
    ],
)
def test_the_detectable_difference_is_found_in_80_of_100_simulated_studies(n, m, spreads) -> None:
    # Samples with exactly the spreads of the simulated population.
    def exactly(size: int, spread: float) -> np.ndarray:
        values = np.arange(size, dtype=float)
        return spread * (values - values.mean()) / values.std(ddof=1)

    detectable = companion(exactly(n, spreads[0]), exactly(m, spreads[1])).detectable
    generator = np.random.default_rng(4)
    studies = 50_000
    p = stats.ttest_ind(
        generator.normal(detectable, spreads[0], (studies, n)),
        generator.normal(0, spreads[1], (studies, m)),
        axis=1,
        equal_var=False,
    ).pvalue
    # Monte-Carlo error 0.2 points.
    assert np.mean(p < 0.05) == pytest.approx(0.80, abs=0.008)


def test_round_1_finds_276_points_and_hardly_knows_its_spread() -> None:
    found = companion(np.array([386.1, 246.433, 241.367]), np.array([180.633, 143.5, 288.267]))
    assert round(found.detectable) == 277
    low, high = found.detectable_interval
    # Four degrees of freedom: the spread lies within a factor of 0.60 to 2.87 (chi-squared).
    factors = [sqrt(4 / stats.chi2.ppf(q, 4)) for q in (0.975, 0.025)]
    assert (low / found.detectable, high / found.detectable) == pytest.approx(factors, rel=0.01)


# --- P(Ajax > reference) --------------------------------------------------------------------


@given(samples, samples)
def test_ajax_is_higher_in_a_share_of_the_pairs_of_seeds(reference, ajax) -> None:
    share, (low, high) = ajax_higher(*arrays(reference, ajax))
    pairs = [(a > r) + 0.5 * (a == r) for a in ajax for r in reference]
    assert share == pytest.approx(sum(pairs) / len(pairs))
    assert 0 <= low <= share <= high <= 1
    assert high - low > 0.1, "a handful of seeds does not know it"
    other, bounds = ajax_higher(*arrays(ajax, reference))
    assert (other, *bounds) == pytest.approx((1 - share, 1 - high, 1 - low))


@pytest.mark.parametrize(("n", "least"), [(3, 0.89), (5, 0.93), (11, 0.93)])
@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_its_interval_holds_the_truth(n: int, least: float, shift: float) -> None:
    generator, truth = np.random.default_rng(11), stats.norm.cdf(shift / sqrt(2))
    held = 0
    for _ in range(400):
        _, (low, high) = ajax_higher(generator.normal(0, 1, n), generator.normal(shift, 1, n))
        held += low <= truth <= high
    assert held / 400 > least - 0.015  # a standard error at 0.9


@pytest.mark.parametrize(
    ("difference", "spreads", "seeds"),
    [(0.055, (0.0093, 0.0355), (3, 3)), (0.055, (0.0106, 0.0222), (3, 3)), (1.0, (1, 1), (2, 6))],
)
def test_overlap_by_chance_agrees_with_simulation(difference, spreads, seeds) -> None:
    generator = np.random.default_rng(12)
    higher = generator.normal(difference, spreads[0], (50_000, seeds[0]))
    lower = generator.normal(0, spreads[1], (50_000, seeds[1]))
    overlap = np.mean(higher.min(axis=1) <= lower.max(axis=1))
    assert overlap_by_chance(difference, spreads, seeds) == pytest.approx(overlap, abs=0.007)


@given(samples, samples, st.integers(1, 4))
def test_more_seeds_of_the_same_spread_detect_less(reference, ajax, more) -> None:
    assume(np.ptp(reference) and np.ptp(ajax))
    once = companion(*arrays(reference, ajax)).detectable
    again = companion(*arrays(reference * (more + 1), ajax * (more + 1))).detectable
    assert 0 < again < once


# --- extremes -------------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, 5_000).map(lambda tenths: tenths / 10), min_size=2, max_size=5),
    st.lists(st.integers(0, 5_000).map(lambda tenths: tenths / 10), min_size=2, max_size=5),
)
# One side at the cap and one that never learnt: effects of hundreds of standard deviations.
@example([500.0, 500.0, 499.9], [9.3, 9.3, 9.4])
@example([9.5, 9.4, 9.5], [500.0, 500.0, 500.0])
@example([500.0, 499.9], [9.3, 9.3])
@example([0.0, 1e-9, 0.0], [500.0, 500.0, 500.0])
def test_every_companion_of_samples_with_spread_is_finite_and_in_order(reference, ajax) -> None:
    assume(np.ptp(reference) or np.ptp(ajax))
    found = companion(*arrays(reference, ajax))
    for low, middle, high in (
        (found.interval[0], found.difference, found.interval[1]),
        (found.hedges_interval[0], found.hedges_g, found.hedges_interval[1]),
    ):
        assert np.isfinite([low, middle, high]).all()
        assert low <= middle <= high
    low, high = found.detectable_interval
    assert 0 < low < found.detectable < high < np.inf


@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0, 1e5, 1e9])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_interval_of_a_huge_effect_is_that_of_the_spread(scale: float, sign: int) -> None:
    # g is the distance over the estimated spread: far out only the spread is uncertain, and the
    # interval is that of a chi distribution. Below, the distance's own error widens it.
    start = process_time()
    found = companion(np.arange(5.0) + sign * 100 * scale, np.arange(5.0))
    assert process_time() - start < 5, "scipy's own distribution takes half a minute out there"
    low, high = (found.hedges_g * sqrt(stats.chi2.ppf(q, 8) / 8) for q in ((0.025, 0.975)[::sign]))
    assert found.hedges_interval == pytest.approx((low, high), rel=0.002)


@pytest.mark.parametrize(
    ("reference", "ajax"), [([1.0], [2.0, 3.0]), ([3.0], [3.0]), ([5.0, 5.0], [7.0, 7.0])]
)
def test_without_two_seeds_or_without_spread_there_is_no_interval(reference, ajax) -> None:
    found = companion(*arrays(reference, ajax))
    assert found.difference == np.mean(reference) - np.mean(ajax)
    assert (found.interval, found.hedges_g, found.hedges_interval) == (None, None, None)
    assert found.detectable is None


# --- bootstrap, chance, Fisher --------------------------------------------------------------


@given(st.lists(returns, min_size=1, max_size=40), st.integers(1, 10))
def test_the_bootstrap_interval_holds_the_mean_and_lies_in_the_range(values, block) -> None:
    low, high = block_bootstrap_interval(np.array(values), block=block)
    slack = 1e-9 * (1 + max(values))
    assert min(values) - slack <= low <= np.mean(values) + slack
    assert np.mean(values) - slack <= high <= max(values) + slack
    assert (low, high) == block_bootstrap_interval(np.array(values), block=block)


@given(st.lists(returns, min_size=6, max_size=20, unique=True))
def test_the_bootstrap_interval_shifts_and_scales_with_the_values(values) -> None:
    plain = block_bootstrap_interval(np.array(values), block=3)
    moved = block_bootstrap_interval(np.array(values) * 2 + 8, block=3)
    assert moved == pytest.approx(tuple(2 * each + 8 for each in plain))


def test_single_draws_give_the_interval_of_the_standard_error() -> None:
    values = np.random.default_rng(6).normal(0, 1, 400)
    low, high = block_bootstrap_interval(values, block=1)
    expected = 1.96 * values.std() / sqrt(len(values))
    assert (values.mean() - low, high - values.mean()) == pytest.approx((expected,) * 2, rel=0.1)


def test_blocks_widen_the_interval_of_neighbours_that_are_alike() -> None:
    values = np.repeat(np.random.default_rng(7).normal(0, 1, 40), 10)
    alone, blocks = (block_bootstrap_interval(values, block=block) for block in (1, 10))
    assert blocks[1] - blocks[0] > 2 * (alone[1] - alone[0])


@given(st.lists(returns, min_size=2, max_size=20))
def test_one_block_of_the_whole_run_is_the_run_itself_turned(values) -> None:
    found = block_bootstrap_interval(np.array(values), block=len(values))
    assert found == pytest.approx((np.mean(values),) * 2)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (5, 5), (2, 4)])
def test_disjoint_ranges_by_chance_agree_with_simulation(n: int, m: int) -> None:
    draws = np.random.default_rng(8).random((20_000, n + m))
    first, second = draws[:, :n], draws[:, n:]
    disjoint = (first.max(axis=1) < second.min(axis=1)) | (second.max(axis=1) < first.min(axis=1))
    assert disjoint_by_chance(n, m) == pytest.approx(disjoint.mean(), abs=0.01)


@given(st.data(), st.integers(1, 8), st.integers(1, 8))
def test_fisher_agrees_with_summing_hypergeometric_probabilities(data, n, m) -> None:
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    both = a + b

    def probability(x: int) -> float:
        return comb(n, x) * comb(m, both - x) / comb(n + m, both)

    ways = range(max(0, both - m), min(n, both) + 1)
    p = sum(probability(x) for x in ways if probability(x) <= probability(a) * (1 + 1e-9))
    assert fisher((a, b), (n, m)) == pytest.approx(p)
    assert fisher((b, a), (m, n)) == pytest.approx(p)

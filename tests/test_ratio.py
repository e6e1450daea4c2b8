"""Median ratios and their intervals, on data whose answer is known."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.ratio import coverage, median_ratio


def test_equal_ratios_have_no_width() -> None:
    found = median_ratio([1.02] * 10)
    assert (found.median, found.low, found.high, found.pairs) == (1.02, 1.02, 1.02, 10)


@pytest.mark.parametrize(
    ("count", "rank", "confidence"),
    # The classical table of the sign test's interval for a median, at 95 %.
    [
        (6, 1, 0.96875),
        (9, 2, 0.9609375),
        (12, 3, 0.9614258),
        (15, 4, 0.9648438),
        (20, 6, 0.9586105),
    ],
)
def test_ranks_are_those_of_the_sign_test(count: int, rank: int, confidence: float) -> None:
    found = median_ratio([float(each) for each in range(1, count + 1)])
    assert (found.low, found.high) == (rank, count + 1 - rank)
    assert found.confidence == pytest.approx(confidence, abs=1e-6)


def test_few_pairs_say_how_little_they_can_show() -> None:
    assert median_ratio([1.0]).confidence == 0.0
    assert median_ratio([0.9, 1.1, 1.0]).confidence == 0.75
    assert str(median_ratio([0.9, 1.1, 1.0])) == "1.000 [0.900, 1.100] (3 pairs, 75 %)"


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=40))
def test_the_interval_holds_the_median_and_lies_within_the_data(ratios: list[float]) -> None:
    found = median_ratio(ratios)
    assert min(ratios) <= found.low <= found.median <= found.high <= max(ratios)
    inverse = median_ratio([1 / each for each in ratios])
    assert inverse.low == pytest.approx(1 / found.high)
    assert inverse.high == pytest.approx(1 / found.low)


def test_intervals_hold_the_true_median_as_often_as_they_say() -> None:
    """Skewed noise around a ratio of 1.03, as slow ticks of a busy machine are."""
    source = random.Random(7)
    hits, trials = 0, 2000
    for _ in range(trials):
        noise = [source.expovariate(1.0) - math.log(2) for _ in range(16)]  # median 0
        found = median_ratio([1.03 + 0.05 * each for each in noise])
        hits += found.low <= 1.03 <= found.high
    expected = coverage(16, 4)
    assert expected >= 0.95
    assert abs(hits / trials - expected) < 4 * math.sqrt(expected * (1 - expected) / trials)

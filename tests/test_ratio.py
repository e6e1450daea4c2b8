"""Median ratios and their intervals, on data whose answer is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.ratio import median_ratio


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
    found = median_ratio([float(number) for number in range(1, count + 1)])
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
    inverse = median_ratio([1 / ratio for ratio in ratios])
    assert inverse.low == pytest.approx(1 / found.high)
    assert inverse.high == pytest.approx(1 / found.low)

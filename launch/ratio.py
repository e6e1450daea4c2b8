"""Ratios of times measured in turn: their median, with an interval that assumes no distribution."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Median of ``pairs`` ratios, and the interval that holds the true median.

    ``confidence`` is the interval's probability: at least :data:`CONFIDENCE`, or less where
    fewer than six pairs can give no more.
    """

    median: float
    low: float
    high: float
    pairs: int
    confidence: float

    def __str__(self) -> str:
        return (
            f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}] "
            f"({self.pairs} pairs, {100 * self.confidence:.0f} %)"
        )


def median_ratio(ratios: Sequence[float]) -> Ratio:
    """The median of one ratio or more, with the sign test's narrowest interval that is wide enough.

    Order statistics k and n + 1 - k hold the median with probability 1 - 2 P(Binomial(n, 1/2) < k),
    whatever the distribution.
    """
    ordered, count = sorted(ratios), len(ratios)
    rank = 1
    while 2 * (rank + 1) <= count + 1 and coverage(count, rank + 1) >= CONFIDENCE:
        rank += 1
    low, high = ordered[rank - 1], ordered[count - rank]
    return Ratio(statistics.median(ordered), low, high, count, coverage(count, rank))


def coverage(count: int, rank: int) -> float:
    """Probability that order statistics ``rank`` and ``count + 1 - rank`` hold the median."""
    below = sum(math.comb(count, successes) for successes in range(rank))
    return max(0.0, 1.0 - below / float(2 ** (count - 1)))

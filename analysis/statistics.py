"""The pre-registered statistics and rules (protocol section 9), fixed before any result.

Arrays of per-seed values have shape ``[seeds]``; evaluation means have shape
``[seeds, checkpoints]`` with the checkpoints' rows given apart, ascending. All returns are
undiscounted episode returns of CartPole, 0 to 500.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shared.protocol import CAP_RATE_WINDOW, CAP_RETURN, CAP_ROWS, N_ENVS, S2_EPISODES, Side
from shared.records.rows import Episode

Floats = NDArray[np.float64]


def mean_at(means: Floats, grid: Sequence[int], rows: Sequence[int]) -> Floats | None:
    """S1 and LATE: per seed, the mean of the evaluation means at the checkpoints ``rows``.

    ``means`` is ``[seeds, checkpoints]`` and ``grid`` its checkpoints' rows; returns ``[seeds]``,
    or ``None`` where the grid lacks one of ``rows``.
    """
    position = {at: index for index, at in enumerate(grid)}
    if not rows or not all(at in position for at in rows):
        return None
    index = [position[at] for at in rows]
    # Seed by seed: numpy sums a row and a column of a table in different orders.
    return np.array([np.mean(seed[index]) for seed in means], dtype=np.float64)


@dataclass(frozen=True)
class Rule:
    """A = mean over Ajax seeds, [low, high] = range over reference seeds."""

    A: float
    low: float
    high: float

    @property
    def learns(self) -> bool:
        """LEARNS: A >= low."""
        return self.low <= self.A

    @property
    def within_range(self) -> bool:
        """WITHIN_RANGE: low <= A <= high."""
        return self.low <= self.A <= self.high


def rule(reference: Floats, ajax: Floats) -> Rule:
    """The decision rule for S1 and LATE; both arguments are ``[seeds]``."""
    return Rule(float(np.mean(ajax)), float(np.min(reference)), float(np.max(reference)))


@dataclass(frozen=True)
class Welch:
    """Welch's t-test, two-sided; ``t`` is positive where the reference is higher."""

    t: float
    p: float
    df: float


def welch(reference: Floats, ajax: Floats) -> Welch | None:
    """Welch's test of two samples ``[seeds]``; ``None`` below two a side or without spread."""
    if min(len(reference), len(ajax)) < 2 or not (np.ptp(reference) or np.ptp(ajax)):
        return None
    result = stats.ttest_ind(reference, ajax, equal_var=False)
    return Welch(float(result.statistic), float(result.pvalue), float(result.df))


@dataclass(frozen=True)
class Concordance:
    """Runs of one side at the cap: ``at[rows]`` counts seeds, ``rate`` is over the late window."""

    seeds: int
    at: dict[int, int | None]
    rate: float | None
    #: The late rate of each seed ``[seeds]``; empty where the grid does not reach.
    seed_rates: tuple[float, ...] = ()


def concordance(means: Floats, grid: Sequence[int]) -> Concordance:
    """Seeds with an evaluation of at least 400 at 20000 and 24000 rows, and the late rate.

    ``means`` is ``[seeds, checkpoints]``. The rate is over all checkpoints of all seeds in
    [16000, 24000]; what the grid does not reach is ``None``.
    """
    capped = means >= CAP_RETURN
    at = {
        rows: int(capped[:, list(grid).index(rows)].sum()) if rows in grid else None
        for rows in CAP_ROWS
    }
    first, last = CAP_RATE_WINDOW
    late = [index for index, rows in enumerate(grid) if first <= rows <= last]
    complete = bool(late) and first in grid and last in grid
    if not complete:
        return Concordance(len(means), at, None)
    rates = tuple(map(float, np.mean(capped[:, late], axis=1)))
    return Concordance(len(means), at, float(np.mean(capped[:, late])), rates)


def ranges_overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Whether two closed ranges (low, high) share a point."""
    return first[0] <= second[1] and second[0] <= first[1]


def s2_curve(episodes: Iterable[Episode], checkpoints: Sequence[int]) -> list[float | None]:
    """S2 of one seed at every checkpoint (rows, ascending).

    At N, for each of the 16 environments the mean score of its last min(10, k) finished training
    episodes with ``row_last`` <= N / 16, then the mean over environments; ``None`` while an
    environment has finished none.
    """
    queue = deque(sorted(episodes, key=lambda episode: episode.row_last))
    last: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=S2_EPISODES))
    curve: list[float | None] = []
    for rows in checkpoints:
        while queue and queue[0].row_last <= rows / N_ENVS:
            episode = queue.popleft()
            last[episode.worker].append(episode.score)
        complete = len(last) == N_ENVS
        means = [sum(scores) / len(scores) for scores in last.values()]
        curve.append(math.fsum(means) / N_ENVS if complete else None)
    return curve


@dataclass(frozen=True)
class EntropyWindow:
    """One window of ``ent/action/mean``: each side's (low, high) over seeds, in nats."""

    rows: int
    ranges: dict[Side, tuple[float, float]]

    @property
    def overlap(self) -> bool:
        """Whether the two sides' seed ranges overlap."""
        return ranges_overlap(self.ranges["reference"], self.ranges["ajax"])

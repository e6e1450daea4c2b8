"""What the samples can show: companions of the pre-registered statistics, not pre-registered.

The unit is the seed. Differences are reference minus Ajax, in the statistic's own unit. Every
sample has shape ``[seeds]``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb, isfinite, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from analysis.statistics import Floats
from shared.protocol import SIGNIFICANCE

#: Up to this many regroupings of the seeds all are visited; above it, this many are drawn.
MAX_REGROUPINGS = 10_000
#: Generator seed of drawn regroupings and bootstrap samples: a report must repeat to the digit.
RESAMPLING_SEED = 20_261_003
#: Regroupings evaluated at a time: bounds the memory at any number of seeds.
_CHUNK = 1_000
CONFIDENCE = 0.95
POWER = 0.80


@dataclass(frozen=True)
class Permutation:
    """Two-sided permutation test of the difference of means over all regroupings of the seeds.

    It tests equal distributions: sides of equal means and different spread can give a small p too.

    ``smallest_p`` is the least p that samples of these sizes can give. ``rule_fails`` is the share
    of regroupings in which LEARNS fails: how often the rule would fail if the side were a label
    without meaning.
    """

    p: float
    smallest_p: float
    rule_fails: float
    regroupings: int
    exact: bool


@dataclass(frozen=True)
class Companion:
    """Exact test, effect size and sensitivity of one comparison of two samples of seeds.

    Welch's interval assumes normal seeds. Hedges' g divides by one spread pooled from both sides,
    and so assumes that they share it.
    """

    n_reference: int
    n_ajax: int
    difference: float
    interval: tuple[float, float] | None
    hedges_g: float | None
    hedges_interval: tuple[float, float] | None
    #: Chance that a seed of Ajax is higher than one of the reference, a tie counted as half.
    ajax_higher: float
    ajax_higher_interval: tuple[float, float]
    permutation: Permutation
    #: Smallest true difference that Welch's test finds at 5 % with 80 % power, at this spread.
    detectable: float | None
    #: The same at the bounds of the spread's own interval: few seeds hardly know their spread.
    detectable_interval: tuple[float, float] | None


def companion(reference: Floats, ajax: Floats) -> Companion:
    """All companions of one comparison; intervals need two seeds a side and some spread."""
    n, m = len(reference), len(ajax)
    spread = min(n, m) >= 2 and bool(np.ptp(reference) or np.ptp(ajax))
    g = _hedges_g(reference, ajax) if spread else None
    detectable, range_of_it = _detectable(reference, ajax) if spread else (None, None)
    higher, higher_interval = ajax_higher(reference, ajax)
    return Companion(
        n_reference=n,
        n_ajax=m,
        difference=float(np.mean(reference) - np.mean(ajax)),
        interval=_welch_interval(reference, ajax) if spread else None,
        hedges_g=g,
        hedges_interval=_hedges_interval(g, n, m) if g is not None else None,
        ajax_higher=higher,
        ajax_higher_interval=higher_interval,
        permutation=permutation(reference, ajax),
        detectable=detectable,
        detectable_interval=range_of_it,
    )


def permutation(reference: Floats, ajax: Floats) -> Permutation:
    """Exact test for small samples, else :data:`MAX_REGROUPINGS` drawn regroupings.

    Cost is linear in the number of seeds once regroupings are drawn.
    """
    pooled = np.concatenate([reference, ajax])
    n, total = len(reference), len(pooled)
    exact = comb(total, n) <= MAX_REGROUPINGS
    observed = abs(np.mean(reference) - np.mean(ajax))
    # Equal sums in another order differ in the last bits; they count as ties.
    slack = 1e-9 * (1.0 + float(np.max(np.abs(pooled))))
    extreme = fails = count = 0
    for first, second in _regroupings(pooled, n, exact=exact):
        gaps = np.abs(first.mean(axis=1) - second.mean(axis=1))
        extreme += int(np.sum(gaps >= observed - slack))
        fails += int(np.sum(second.mean(axis=1) < first.min(axis=1)))
        count += len(first)
    # A drawn p counts the observed grouping too, so that it is never 0 (Phipson & Smyth 2010).
    p = extreme / count if exact else (extreme + 1) / (count + 1)
    # With equal sizes swapping the sides gives the same gap: two groupings are always as extreme.
    smallest = (2 if n == total - n else 1) / comb(total, n)
    return Permutation(
        p, max(smallest, 0.0 if exact else 1 / (count + 1)), fails / count, count, exact
    )


def _regroupings(pooled: Floats, n: int, *, exact: bool) -> Iterator[tuple[Floats, Floats]]:
    """Regroupings as chunks of ([k, n], [k, m]) arrays."""
    orders = _all_orders(len(pooled), n) if exact else _drawn_orders(len(pooled))
    for start in range(0, len(orders), _CHUNK):
        regrouped = pooled[orders[start : start + _CHUNK]]
        yield regrouped[:, :n], regrouped[:, n:]


@lru_cache(maxsize=16)
def _all_orders(total: int, n: int) -> NDArray[np.intp]:
    """All ways to pick ``n`` of ``total``, shape ``[splits, total]``: the picked, then the rest."""
    everyone = range(total)
    picked = combinations(everyone, n)
    return np.array([[*some, *(each for each in everyone if each not in some)] for some in picked])


@lru_cache(maxsize=1)
def _drawn_orders(total: int) -> NDArray[np.unsignedinteger[Any]]:
    """:data:`MAX_REGROUPINGS` random orders; one report tests many statistics of the same seeds."""
    orders = np.tile(np.arange(total, dtype=np.min_scalar_type(total)), (MAX_REGROUPINGS, 1))
    return np.random.default_rng(RESAMPLING_SEED).permuted(orders, axis=1)


def _welch_interval(reference: Floats, ajax: Floats) -> tuple[float, float]:
    interval = stats.ttest_ind(reference, ajax, equal_var=False).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)


def _hedges_g(reference: Floats, ajax: Floats) -> float:
    """Standardised mean difference with Hedges' small-sample correction (Hedges 1981)."""
    n, m = len(reference), len(ajax)
    df = n + m - 2
    pooled = ((n - 1) * np.var(reference, ddof=1) + (m - 1) * np.var(ajax, ddof=1)) / df
    correction = 1 - 3 / (4 * df - 1)
    return float(correction * (np.mean(reference) - np.mean(ajax)) / np.sqrt(pooled))


def _hedges_interval(g: float, n: int, m: int) -> tuple[float, float]:
    """Interval of g by inverting the non-central t distribution (Cumming & Finch 2001)."""
    df, scale = n + m - 2, sqrt(n * m / (n + m))
    correction = 1 - 3 / (4 * df - 1)
    t = g / correction * scale
    tail = (1 - CONFIDENCE) / 2

    def bound(probability: float) -> float:
        reach = abs(t) + 10 * sqrt(1 + t * t / df)
        root = optimize.brentq(
            lambda centre: _below(t, df, centre) - probability, -reach, reach, xtol=1e-10
        )
        return float(root) / scale * correction

    return bound(1 - tail), bound(tail)


def _below(t: float, df: float, centre: float) -> float:
    """P(T <= t) of the non-central t distribution, t not 0.

    scipy 1.17 gives NaN at scattered points deep in the tail; beyond t of about 37, which sides
    far apart do reach, also elsewhere, and takes seconds. There T = (Z + centre) / S is
    integrated over the normal Z.
    """
    found = float(stats.nct.cdf(t, df, centre)) if abs(t) <= 30 else nan
    if isfinite(found):
        return found
    nodes, weights = _normal_nodes()
    least = np.maximum((nodes + centre) / t, 0.0)  # T is below t > 0 where S is at least this
    above = float(weights @ stats.chi2.sf(df * least**2, df))
    return above if t > 0 else 1 - above


@lru_cache(maxsize=1)
def _normal_nodes() -> tuple[Floats, Floats]:
    """Nodes and weights of the expectation over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    return nodes, weights / weights.sum()


def ajax_higher(reference: Floats, ajax: Floats) -> tuple[float, tuple[float, float]]:
    """P(Ajax > reference) of two ``[seeds]`` with its 95 % interval (Newcombe 2006, method 5).

    Inverts the variance of exponential samples (Hanley & McNeil 1982). Of normal sides it holds
    the truth in 90 to 97 of 100 comparisons with three seeds a side, in 94 to 96 with five.
    """
    ordered, pairs = np.sort(reference), len(reference) * len(ajax)
    below, upto = (np.searchsorted(ordered, ajax, end).sum() for end in ("left", "right"))
    share = float(below + upto) / (2 * pairs)
    more = (len(reference) + len(ajax)) / 2 - 1
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))

    def outside(chance: float) -> float:
        wider = 1 + more * ((1 - chance) / (2 - chance) + chance / (1 + chance))
        return (share - chance) ** 2 / (chance * (1 - chance)) - z**2 * wider / pairs

    # At 0 and 1 themselves there is no variance, and nothing to divide by.
    least, most = 1e-9, 1 - 1e-9
    low = float(optimize.brentq(outside, least, min(share, most), xtol=1e-15)) if share > 0 else 0.0
    high = (
        float(optimize.brentq(outside, max(share, least), most, xtol=1e-15)) if share < 1 else 1.0
    )
    return share, (low, high)


def _detectable(reference: Floats, ajax: Floats) -> tuple[float, tuple[float, float]]:
    """Smallest difference found with 80 % power: normal samples with the observed variances.

    The power of Welch's test itself: its variances, and with them its degrees of freedom, are
    estimated anew in every study, and the mean is taken over both estimates. The bounds put the
    ends of the spread's own 95 % interval in place of the spread.
    """
    parts, estimated = [], []
    for axis, sample in enumerate((reference, ajax)):
        parts.append(float(np.var(sample, ddof=1)) / len(sample))
        spread = stats.chi2.ppf(_MIDPOINTS, len(sample) - 1) / (len(sample) - 1)
        estimated.append(np.expand_dims(parts[-1] * spread, 1 - axis))
    error, total = sqrt(sum(parts)), estimated[0] + estimated[1]
    df = _welch_df(estimated, (len(reference), len(ajax)))
    critical = stats.t.ppf(1 - SIGNIFICANCE / 2, df) * np.sqrt(total) / error

    def shortfall(distance: float) -> float:
        found = special.ndtr(distance - critical) + special.ndtr(-distance - critical)
        return float(np.mean(found)) - POWER

    upper = 4.0
    while shortfall(upper) < 0:
        upper *= 2
    found = float(optimize.brentq(shortfall, 0.0, upper, xtol=1e-14)) * error
    own = float(_welch_df([np.array(part) for part in parts], (len(reference), len(ajax))))
    tail = (1 - CONFIDENCE) / 2
    low, high = (found * sqrt(own / stats.chi2.ppf(q, own)) for q in (1 - tail, tail))
    return found, (low, high)


#: Where the distribution of an estimated variance is looked at.
_MIDPOINTS = (np.arange(128) + 0.5) / 128


def _welch_df(parts: Sequence[Floats], sizes: tuple[int, int]) -> Floats:
    """Welch's degrees of freedom of two variances of means."""
    terms = [part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True)]
    return np.asarray((parts[0] + parts[1]) ** 2 / (terms[0] + terms[1]))


def overlap_by_chance(
    difference: float, spreads: tuple[float, float], seeds: tuple[int, int]
) -> float:
    """Chance that the seed ranges of two normal sides overlap though their means differ.

    ``spreads`` are standard deviations and ``seeds`` counts of the side that is higher by
    ``difference`` and of the other. That the ranges part the wrong way round is not counted.
    """
    chances = (np.arange(4_000) + 0.5) / 4_000
    highest = stats.norm.ppf(chances ** (1 / seeds[1])) * spreads[1]
    return 1 - float(np.mean(special.ndtr((difference - highest) / spreads[0]) ** seeds[0]))


def disjoint_by_chance(n: int, m: int) -> float:
    """Chance that the ranges of ``n`` and ``m`` exchangeable seeds are disjoint in one window."""
    return 2 / comb(n + m, n)


def block_bootstrap_interval(
    values: Floats, *, block: int, resamples: int = 2_000
) -> tuple[float, float]:
    """95 % interval of the mean of one run's checkpoints ``[checkpoints]``.

    A circular block bootstrap (Politis & Romano 1992): neighbouring checkpoints are alike, so
    whole blocks of ``block`` checkpoints are drawn.
    """
    generator = np.random.default_rng(RESAMPLING_SEED)
    size = len(values)
    starts = generator.integers(0, size, (resamples, -(-size // block)))
    index = (starts[..., None] + np.arange(block)).reshape(resamples, -1)[:, :size] % size
    low, high = np.quantile(values[index].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def fisher(at_cap: tuple[int, int], seeds: tuple[int, int]) -> float:
    """Fisher's exact two-sided p for the counts of seeds at the cap on the two sides."""
    table = np.array([[c, total - c] for c, total in zip(at_cap, seeds, strict=True)])
    return float(stats.fisher_exact(table).pvalue)

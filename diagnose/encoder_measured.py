"""What part ``encoder`` measures: initial magnitudes of many seeds, and outputs side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from shared.protocol import SIDES, Side

Doubles = npt.NDArray[np.float64]

#: The seeds of rounds 1 and 2.
RUN_SEEDS = (0, 1, 2)
#: For every output, relative to the largest output (or 1): float32 sums in another order.
OUTPUT_TOLERANCE = 1e-5
_DRAWS = 20_000


@dataclass(frozen=True)
class Population:
    """Initial magnitudes of the encoder's output, ``[seeds]`` a side, seed 0 first."""

    magnitudes: Mapping[Side, Doubles]

    @property
    def means(self) -> dict[Side, float]:
        """Mean over seeds of each side."""
        return {side: float(self.magnitudes[side].mean()) for side in SIDES}

    @property
    def apart(self) -> float:
        """Difference of the means, relative to the reference's."""
        return self.means["ajax"] / self.means["reference"] - 1

    @property
    def welch(self) -> float:
        """Two-sided p of Welch's t-test between the sides."""
        both = (self.magnitudes[side] for side in SIDES)
        return float(stats.ttest_ind(*both, equal_var=False).pvalue)

    @property
    def kolmogorov(self) -> float:
        """Two-sided p of the Kolmogorov-Smirnov two-sample test between the sides."""
        result = stats.ks_2samp(self.magnitudes["reference"], self.magnitudes["ajax"])
        return float(result.pvalue)

    def quantile(self, side: Side, seed: int) -> float:
        """Share of the side's population below its ``seed``; the seed itself counts half."""
        values = self.magnitudes[side]
        lower, upper = (values < values[seed]).mean(), (values <= values[seed]).mean()
        return float(lower + upper) / 2

    @property
    def run_seeds_apart(self) -> float:
        """Difference of the means over RUN_SEEDS, relative to the reference's."""
        means = [self.magnitudes[side][list(RUN_SEEDS)].mean() for side in SIDES]
        return float(means[1] / means[0] - 1)

    @property
    def chance(self) -> float:
        """Share of random pairs of as many seeds, from both sides pooled, at least as far apart."""
        pooled, count = np.concatenate(list(self.magnitudes.values())), len(RUN_SEEDS)
        drawn = np.random.default_rng(0).choice(pooled, (_DRAWS, 2, count)).mean(-1)
        apart = np.abs(drawn[:, 1] / drawn[:, 0] - 1)
        return float((apart >= abs(self.run_seeds_apart)).mean())


@dataclass(frozen=True)
class Output:
    """One output from the same parameters on both sides; ``parameters`` names their set."""

    parameters: str
    name: str
    #: Largest absolute value (reference), and largest difference between the sides.
    largest: float
    difference: float

    @property
    def tolerance(self) -> float:
        """Differences up to here are rounding."""
        return OUTPUT_TOLERANCE * max(1.0, self.largest)

    @property
    def agrees(self) -> bool:
        """Whether the difference is rounding."""
        return self.difference <= self.tolerance

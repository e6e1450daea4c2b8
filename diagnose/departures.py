"""Where two runs part: the first update at which each metric differs beyond what rounding explains.

Two programs that compute the same round differently, and training makes the difference grow. How
fast is measured by a *control*: the same program run twice, the second time from parameters that
are each moved by one or two float32 (zeros stay). A metric departs at the first update where the
runs differ by more than

    max(FLOOR x scale, FACTOR x the control's largest difference so far)

The scale is the largest value so far of the metric's family (``val/mean`` and ``val/max`` are of
one family) in either run, so that a mean near zero is held to the size of what is averaged.

Training is chaotic: sooner or later the control itself is apart by a good part of a metric's scale,
and from then on (``lost``) the metric can hardly tell two programs apart.

The floors, and their exceptions by kind, were set on runs of seed 0 at tiny widths, as they were
and with one planted fault, before any run at full width and before the other faults were planted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shared.metrics import REFERENCE_TO_AJAX
from shared.probes.matched_case import FIGURES

Doubles = npt.NDArray[np.float64]
#: Metric -> its value at every update ``[updates]``.
Series = Mapping[str, Doubles]

#: What is compared, by the reference's names.
METRICS = (*(name for name in REFERENCE_TO_AJAX if name != "updates"), *FIGURES)

#: Below this share of its scale a difference is float32's: sums in another order, and a latent
#: sample here and there that falls the other way, which moves the rest of its sequence.
FLOOR = 1e-3
#: A difference of large terms that nearly cancel, and starts at zero, shows one such sample.
FLOOR_OF_PREDICTIONS = 2e-3
PREDICTIONS = (
    "val",
    "ret",
    "ret_normed",
    "adv",
    "retnorm",
    "td_error",
    "actor_loss",
    "critic_loss",
)
#: One sample that falls the other way can move an extreme by the size of the spread.
FLOOR_OF_EXTREMES = 0.1
#: Shares of samples: some of 16,384 fall the other way. Their scale is 1, however few they are.
FLOOR_OF_SHARES = 1e-3
SHARES = ("ret_rate", "act/action")
#: Norms over all parameters, in which one sample is lost.
FLOOR_OF_NORMS = 1e-4
NORMS = ("opt_update_norm", "opt_param_norm")
#: Mostly recorded rewards, which are equal: what is predicted adds little, and late.
FLOOR_OF_REPLAY = 1e-5
REPLAY = ("replay_ret",)
#: The control is one draw of what rounding does, and rounds at one place of many.
FACTOR = 10.0
#: A metric is lost once the control's part of the tolerance is more than this share of its scale.
LOST = 0.5
_FLOORS = (
    (FLOOR_OF_PREDICTIONS, PREDICTIONS),
    (FLOOR_OF_SHARES, SHARES),
    (FLOOR_OF_NORMS, NORMS),
    (FLOOR_OF_REPLAY, REPLAY),
)


@dataclass(frozen=True)
class Departure:
    """A metric's first update beyond its tolerance, counted from 1, and both runs' values there."""

    metric: str
    update: int
    left: float
    right: float
    tolerance: float

    @property
    def excess(self) -> float:
        """The difference in units of the tolerance; infinite for a value that is not finite."""
        difference = abs(self.left - self.right)
        return difference / self.tolerance if np.isfinite(difference) else np.inf

    @property
    def text(self) -> str:
        """``metric at update N (left against right, tolerance T)``."""
        return (
            f"{self.metric} at update {self.update} ({self.left:.6g} against {self.right:.6g}, "
            f"tolerance {self.tolerance:.2g})"
        )


@dataclass(frozen=True)
class Compared:
    """One metric of two runs over all updates, which are counted from 1."""

    metric: str
    #: Where it departs; ``None`` where it does not.
    departure: Departure | None
    #: The update at which the difference is the largest part of its tolerance, and that part.
    nearest: int
    of_tolerance: float
    #: The largest difference in units of the scale of its update.
    of_scale: float
    #: First update from which on, to the end, rounding alone could explain nearly anything;
    #: ``None``: the last update is judged.
    lost: int | None


@dataclass(frozen=True)
class Control:
    """The same program twice: as it is, and shaken."""

    plain: Series
    shaken: Series

    def envelope(self, metric: str) -> Doubles:
        """Largest difference of the two up to each update ``[updates]``."""
        apart = np.abs(self.plain[metric] - self.shaken[metric])
        # What is not finite says nothing of how far rounding takes the rest.
        finite = np.where(np.isfinite(apart), apart, 0.0)
        envelope: Doubles = np.maximum.accumulate(finite)
        return envelope


def family(metric: str) -> str:
    """Metrics of one family are in the same unit: moments of a distribution, a loss and its std."""
    return metric.rpartition("/")[0] or metric.removesuffix("_std")


def floor(metric: str) -> float:
    """Share of the scale that a difference may have whatever the control says."""
    if metric.endswith(("/min", "/max")):
        return FLOOR_OF_EXTREMES
    return next((value for value, families in _FLOORS if family(metric) in families), FLOOR)


def tolerance(metric: str, left: Series, right: Series, control: Control) -> Doubles:
    """What two runs may differ by at each update ``[updates]``."""
    allowed: Doubles = np.maximum(
        floor(metric) * _scale(metric, left, right), FACTOR * control.envelope(metric)
    )
    return allowed


def _scale(metric: str, left: Series, right: Series) -> Doubles:
    if family(metric) in SHARES:
        return np.ones_like(left[metric])
    values = [
        np.abs(np.nan_to_num(run[name], nan=0.0, posinf=0.0, neginf=0.0))
        for run in (left, right)
        for name in run
        if family(name) == family(metric)
    ]
    largest: Doubles = np.maximum.accumulate(np.max(values, 0))
    return largest


def compare(metric: str, left: Series, right: Series, control: Control) -> Compared:
    """Hold one metric of two runs against its tolerance, at every update."""
    allowed = tolerance(metric, left, right, control)
    scale = _scale(metric, left, right)
    one, other = left[metric], right[metric]
    # A NaN on one side only is a difference, on both it is none.
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    difference = np.where(same, 0.0, np.abs(one - other))
    apart = ~(difference <= allowed)
    part = _share(difference, allowed)
    nearest = int(np.argmax(part))
    lost = FACTOR * control.envelope(metric) > LOST * scale
    departure = None
    if apart.any():
        at = int(np.argmax(apart))
        values = (float(each[at]) for each in (one, other, allowed))
        departure = Departure(metric, at + 1, *values)
    return Compared(
        metric,
        departure,
        nearest + 1,
        float(part[nearest]),
        float(_share(difference, scale).max()),
        _last_run(lost),
    )


def _last_run(lost: npt.NDArray[np.bool_]) -> int | None:
    """The update at which the run of true values begins that lasts to the end, if any.

    A metric that starts near zero may be judged once it has grown.
    """
    judged = np.flatnonzero(~lost)
    first = int(judged[-1]) + 2 if judged.size else 1
    return first if first <= len(lost) else None


def _share(difference: Doubles, whole: Doubles) -> Doubles:
    """``difference / whole``: 0 where there is no difference, infinite where it is no number."""
    finite = np.where(np.isfinite(difference), difference, np.inf)
    share: Doubles = np.divide(finite, whole, out=np.full_like(finite, np.inf), where=whole > 0)
    return np.where(finite == 0, 0.0, share)


def compare_all(left: Series, right: Series, control: Control) -> list[Compared]:
    """Every metric of two runs."""
    return [compare(metric, left, right, control) for metric in METRICS]


def departures(compared: Sequence[Compared]) -> list[Departure]:
    """Every metric that departs, the earliest first; of one update the furthest beyond first."""
    found = [each.departure for each in compared if each.departure is not None]
    return sorted(found, key=lambda each: (each.update, -each.excess))

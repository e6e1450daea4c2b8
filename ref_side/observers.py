"""What is attached to the stock training loop, which itself runs unmodified.

``embodied.run.train`` asks for a driver, a logger and an agent; these are its own, observed.
Importing this module imports ``embodied``: verify the checkout and put it on the path first.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import embodied
import numpy as np

from shared.metrics import REFERENCE_LOSSES, not_finite


class Stopwatch:
    """Sums the seconds spent inside its ``with`` blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began


class TrainWindow:
    """Means of scalar training metrics since the last :meth:`close`.

    As in the reference's own aggregation, a NaN is left out of its metric's mean, and a metric
    that was only ever NaN stays NaN. Metrics that are no scalars are dropped.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._samples = 0
        self._last: Mapping[str, Any] = {}

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Take in the metrics of one update; an empty mapping is no sample."""
        self._samples += bool(metrics)
        self._last = metrics or self._last
        for name, value in metrics.items():
            if np.ndim(value) == 0:
                number = float(value)
                known = number == number
                self._sums[name] = self._sums.get(name, 0.0) + (number if known else 0.0)
                self._counts[name] = self._counts.get(name, 0) + known

    def lost(self) -> tuple[str, ...]:
        """The losses that were not finite in the last update: from there on none will be.

        The means do not show it while the window holds earlier updates.
        """
        return not_finite(self._last, REFERENCE_LOSSES)

    def close(self) -> tuple[dict[str, float], int]:
        """The means by metric name and the number of samples; a new window begins."""
        means = {
            name: total / count if (count := self._counts[name]) else float("nan")
            for name, total in self._sums.items()
        }
        samples = self._samples
        self._sums, self._counts, self._samples = {}, {}, 0
        return means, samples


def watch_training(agent: Any, on_update: Callable[[Mapping[str, Any]], None]) -> None:
    """Call ``on_update`` with the metrics that each ``agent.train`` returns, which is unchanged.

    They are those of the update before; the first call returns none.
    """
    stock = agent.train

    def train(data: Any, carry: Any) -> Any:
        result = stock(data, carry)
        on_update(result[2])
        return result

    agent.train = train


def observed_driver(on_start: Callable[[Any], None], on_vector_step: Callable[[], None]) -> type:
    """A subclass of the stock driver, to stand where the loop looks for ``embodied.Driver``.

    ``on_start`` is given the driver when the loop resets it with a policy, just before its first
    step; ``on_vector_step`` is called after each vector step, its callbacks and updates included.
    """

    class ObservedDriver(embodied.Driver):  # type: ignore[misc]  # the checkout carries no types
        def reset(self, init_policy: Any = None) -> None:
            super().reset(init_policy)
            if init_policy is not None:
                on_start(self)

        def _step(self, policy: Any, step: int, episode: int) -> Any:
            result = super()._step(policy, step, episode)
            on_vector_step()
            return result

    return ObservedDriver


def flush(driver: Any) -> None:
    """Step each environment once with the driver's pending actions (protocol section 5).

    No policy, replay, callback or update takes part: episodes that end on the row after the last
    vector step are recorded by their environments, as Ajax counts them.
    """
    for index, env in enumerate(driver.envs):
        env.step({name: values[index] for name, values in driver.acts.items()})


class EpisodeLog:
    """The loop's logger: holds its step counter and the scores it logs, and writes nothing."""

    def __init__(self, step: Any) -> None:
        self.step = step
        #: ``(score, length)`` of each training episode, in the order in which they ended.
        self.episodes: list[tuple[float, int]] = []

    def add(self, mapping: Mapping[str, Any], prefix: str | None = None) -> None:
        """Keep the loop's entry of a finished episode; wall-clock statistics are not kept."""
        if prefix == "episode":
            self.episodes.append((float(mapping["score"]), int(mapping["length"])))

    def write(self) -> None:
        """Nothing is written: the loop's wall-clock logging is off."""

    def close(self) -> None:
        """Nothing is open."""

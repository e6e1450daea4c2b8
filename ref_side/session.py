"""One run of the stock training loop: configuration, factories, and the observers attached to it.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dreamerv3
import dreamerv3.main
import embodied
import jax
import numpy as np
from dreamerv3 import jaxutils

from ref_side.arms import patch_code, patch_replay
from ref_side.collector import uncollected
from ref_side.environment import CartPoleEnv, FinishedEpisode
from ref_side.evaluation import Outcome, evaluate
from ref_side.interrupt import end_between_writes
from ref_side.observers import (
    EpisodeLog,
    Stopwatch,
    TrainWindow,
    flush,
    observed_driver,
    watch_training,
)
from ref_side.recorder import Checkpoint, Recorder, return_normaliser
from shared.configuration import reference_overrides
from shared.errors import NotLearningError

#: Settings that the stock main module copies into the loop's arguments beside those of ``run``.
_LOOP_ARGUMENTS = (
    "logdir",
    "batch_size",
    "batch_length",
    "batch_length_eval",
    "replay_length",
    "replay_length_eval",
    "replay_context",
)


@dataclass(frozen=True)
class Settings:
    """What is run; ``directory`` is the run's own, and ``began`` the unix time of its start."""

    arm: str
    seed: int
    rows: int
    every: int
    episodes: int
    progress_every: int
    tiny: bool
    directory: Path
    began: float
    round: str | None = None

    def overrides(self, logdir: str) -> dict[str, Any]:
        """The protocol's overrides on the reference's defaults (section 3)."""
        return reference_overrides(seed=self.seed, rows=self.rows, logdir=logdir, tiny=self.tiny)


def resolve(overrides: Mapping[str, Any]) -> Any:
    """The resolved configuration, an ``embodied.Config``, as the stock main module makes it."""
    config = embodied.Config(dreamerv3.Agent.configs["defaults"]).update(overrides)
    lengths = {
        f"replay_length{which}": config[f"replay_length{which}"] or config[f"batch_length{which}"]
        for which in ("", "_eval")
    }
    return config.update(lengths)


class Session:
    """Runs the stock loop once. :attr:`timing` holds what ``timing.json`` keeps."""

    def __init__(self, settings: Settings, recorder: Recorder) -> None:
        self._settings, self._recorder = settings, recorder
        self._config = resolve(settings.overrides(str(settings.directory)))
        self._step = embodied.Counter()
        self._log = EpisodeLog(self._step)
        self._window = TrainWindow()
        self._observing, self._evaluating = Stopwatch(), Stopwatch()
        self._episodes: list[FinishedEpisode] = []
        self._agent: Any = None
        self._driver: Any = None
        self.timing: dict[str, float | int | None] = {
            "t_start": settings.began,
            "t_loop_start": None,
            "first_update_step": None,
            "t_first_update": None,
        }

    def run(self) -> None:
        """Train, evaluate and record.

        Raises ``RuntimeError`` where the loop itself saw other episodes than were recorded, and
        ``NotLearningError`` at the first checkpoint, once recorded, with a loss that is not finite.
        """
        patch_code(self._settings.arm, jaxutils)
        embodied.timer.global_timer.enabled = self._config.run.timer
        arguments = embodied.Config(
            **self._config.run, **{name: self._config[name] for name in _LOOP_ARGUMENTS}
        )
        stock = embodied.Driver
        # The loop looks the name up when it starts.
        embodied.Driver = observed_driver(self._start, self._vector_step)
        try:
            embodied.run.train(
                self._make_agent, self._make_replay, self._make_env, self._make_log, arguments
            )
        finally:
            embodied.Driver = stock
        self._finish()

    # --- factories of the loop --------------------------------------------------------------

    def _wrapped(self, env: CartPoleEnv) -> Any:
        return dreamerv3.wrap_env(env, self._config)

    def _make_agent(self) -> Any:
        env = self._wrapped(CartPoleEnv(np.random.default_rng()))  # for its spaces, never stepped
        with uncollected():
            self._agent = dreamerv3.Agent(env.obs_space, env.act_space, self._config)
        watch_training(self._agent, self._update)
        # Compiling takes minutes, and what the loop does next writes into the directory.
        self._recorder.check()
        return self._agent

    def _make_replay(self) -> Any:
        replay = dreamerv3.main.make_replay(self._config, "replay")
        patch_replay(self._settings.arm, replay, self._settings.seed)
        return replay

    def _make_env(self, worker: int) -> Any:
        rng = np.random.default_rng([self._settings.seed, worker])
        return self._wrapped(CartPoleEnv(rng, lambda episode: self._finished(worker, episode)))

    def _make_log(self) -> EpisodeLog:
        return self._log

    # --- what the observers report ----------------------------------------------------------

    def _start(self, driver: Any) -> None:
        self._driver = driver
        end_between_writes()
        self.timing["t_loop_start"] = time.time()

    def _finished(self, worker: int, episode: FinishedEpisode) -> None:
        with self._observing:
            self._episodes.append(episode)
            self._recorder.episode(worker, episode)

    def _update(self, metrics: Mapping[str, Any]) -> None:
        with self._observing:
            if self.timing["first_update_step"] is None:
                self.timing["first_update_step"] = int(self._step)
                self.timing["t_first_update"] = time.time()
            self._window.add(metrics)

    def _vector_step(self) -> None:
        rows, updates = int(self._step), int(self._agent.updates)
        if rows % self._settings.every == 0:
            # Waiting for the last update is the loop's time, not the observers'.
            jax.block_until_ready(self._agent.params)
            with self._evaluating:
                outcome = self._evaluate()
            with self._observing:
                self._record(rows, updates, outcome)
        if rows % self._settings.progress_every == 0:
            with self._observing:
                self._recorder.progress(rows, updates)

    def _evaluate(self) -> Outcome:
        return evaluate(
            self._agent,
            lambda rng: self._wrapped(CartPoleEnv(rng)),
            seed=self._settings.seed,
            episodes=self._settings.episodes,
        )

    def _record(self, rows: int, updates: int, outcome: Outcome) -> None:
        lost = self._window.lost()
        means, samples = self._window.close()
        normaliser = return_normaliser(self._agent.params)
        self._recorder.checkpoint(Checkpoint(rows, updates, means, samples, normaliser, outcome))
        if lost:
            raise NotLearningError(
                f"{self._settings.directory.name}: stopped at row {rows}, after {updates} updates: "
                f"{', '.join(lost)} not finite; its records are kept"
            )

    def _finish(self) -> None:
        """Check the recorded episodes against the loop's, then flush the environments."""
        recorded = [(episode.score, episode.length) for episode in self._episodes]
        # The loop logs in the order of the environments within a vector step, as they end.
        if recorded != self._log.episodes:
            raise RuntimeError(
                f"the loop logged {len(self._log.episodes)} training episodes, {len(recorded)} "
                "were recorded, and they are not the same"
            )
        flush(self._driver)
        ended, started = time.time(), self.timing["t_loop_start"]
        self.timing |= {
            "flush_episodes": len(self._episodes) - len(recorded),
            "t_end": ended,
            "build_and_compile_s": (started or ended) - self._settings.began,
            "total_s": ended - self._settings.began,
            "observer_s": self._observing.seconds,
            "evaluation_s": self._evaluating.seconds,
        }

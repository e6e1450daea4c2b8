"""Observers: what they add up, and that the stock loop does not notice them."""

import time
import unittest
from typing import Any

import embodied
import numpy as np

from ref_side.environment import CartPoleEnv
from ref_side.observers import (
    EpisodeLog,
    Stopwatch,
    TrainWindow,
    flush,
    observed_driver,
    watch_training,
)


class Windows(unittest.TestCase):
    """Window means against the reference's own aggregation."""

    def test_means_are_those_of_the_reference_with_nan_anywhere(self) -> None:
        rng, window, stock = np.random.default_rng(0), TrainWindow(), embodied.Agg()
        for _ in range(50):
            metrics = {
                f"metric{index}": np.float32(np.nan if rng.random() < rate else rng.normal())
                for index, rate in enumerate((0.0, 0.3, 0.9, 1.0))
            }
            window.add(metrics)
            stock.add(metrics)
        means, samples = window.close()
        self.assertEqual(samples, 50)
        self.assertEqual(means.keys(), stock.result(reset=False).keys())
        for name, value in stock.result().items():
            np.testing.assert_allclose(means[name], value, rtol=1e-12, err_msg=name)

    def test_a_window_begins_anew_and_arrays_and_empty_updates_do_not_count(self) -> None:
        window = TrainWindow()
        window.add({})
        window.add({"loss": np.float32(2.0), "act/dist": np.zeros(3)})
        self.assertEqual(window.close(), ({"loss": 2.0}, 1))
        self.assertEqual(window.close(), ({}, 0))

    def test_a_lost_loss_is_seen_while_the_mean_is_still_a_number(self) -> None:
        window = TrainWindow()
        self.assertEqual(window.lost(), ())
        window.add({"vector_loss": np.float32(1.0), "rewstats/pos_loss": np.float32(np.nan)})
        self.assertEqual(window.lost(), ())
        window.add({"vector_loss": np.float32(np.nan), "opt_loss": np.float32(np.inf)})
        window.add({})
        self.assertEqual(window.lost(), ("vector_loss", "opt_loss"))
        self.assertEqual(window.close()[0]["vector_loss"], 1.0)

    def test_a_stopwatch_adds_up(self) -> None:
        watch = Stopwatch()
        for _ in range(2):
            with watch:
                time.sleep(0.02)
        self.assertGreater(watch.seconds, 0.04)
        self.assertLess(watch.seconds, 1.0)


class Seen(embodied.Wrapper):  # type: ignore[misc]
    """Keeps the last row of an environment."""

    def step(self, action: Any) -> Any:
        self.last = self.env.step(action)
        return self.last


class Driving(unittest.TestCase):
    """The observed driver against the stock one, on the same environments and policy."""

    def drive(self, kind: Any, ticks: int) -> tuple[Any, list[dict[str, Any]]]:
        makers = [
            lambda worker=worker: CartPoleEnv(np.random.default_rng([0, worker]))
            for worker in range(3)
        ]
        driver, rows = kind(makers, False), []
        driver.on_step(lambda row, worker: rows.append({"worker": worker, **row}))
        draws = np.random.default_rng(1)

        def policy(observation: Any, carry: Any) -> Any:
            count = len(observation["is_first"])
            return {"action": draws.integers(0, 2, count).astype(np.int32)}, {}, carry

        driver.reset(lambda _: ())
        for _ in range(ticks):
            driver(policy, steps=3)
        return driver, rows

    def test_it_yields_the_same_rows_and_reports_each_vector_step(self) -> None:
        started, steps = [], []
        kind = observed_driver(started.append, lambda: steps.append(1))
        driver, rows = self.drive(kind, 60)
        _, stock = self.drive(embodied.Driver, 60)
        self.assertEqual(started, [driver])
        self.assertEqual(len(steps), 60)
        self.assertEqual(len(rows), len(stock))
        for row, other in zip(rows, stock, strict=True):
            self.assertEqual(row.keys(), other.keys())
            for name, value in row.items():
                np.testing.assert_array_equal(value, other[name])

    def test_the_flush_is_the_row_that_would_have_come_next(self) -> None:
        """For every tick: whatever is pending, an action or a reset."""
        for ticks in range(1, 30):
            driver, rows = self.drive(embodied.Driver, ticks)
            _, longer = self.drive(embodied.Driver, ticks + 1)
            driver.envs = [Seen(env) for env in driver.envs]
            flush(driver)
            seen = [env.last for env in driver.envs]
            for row, expected in zip(seen, longer[len(rows) :], strict=True):
                for name, value in row.items():
                    np.testing.assert_array_equal(value, expected[name])


class Watching(unittest.TestCase):
    """The wrapped ``agent.train`` and the loop's logger."""

    def test_training_is_watched_and_unchanged(self) -> None:
        class Agent:
            def train(self, data: int, carry: str) -> Any:
                return {"replay": data}, f"{carry}+", {"loss": float(data)}

        agent, seen = Agent(), []
        watch_training(agent, seen.append)
        self.assertEqual(agent.train(3, "carry"), ({"replay": 3}, "carry+", {"loss": 3.0}))
        self.assertEqual(seen, [{"loss": 3.0}])

    def test_the_log_keeps_episodes_only(self) -> None:
        log = EpisodeLog(embodied.Counter())
        log.add({"score": np.float64(12.0), "length": 12}, prefix="episode")
        log.add({"fps/train": 3.0})
        log.write()
        log.close()
        self.assertEqual(log.episodes, [(12.0, 12)])

"""A whole run of the stock loop, its network replaced by random actions: seconds, not minutes.

The smoke session runs the same with the real agent.
"""

import json
import os
import shutil
import signal
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import dreamerv3
import dreamerv3.main
import embodied
import jax.numpy as jnp
import numpy as np
from ruamel.yaml import YAML

from ref_side.evaluation import Outcome
from ref_side.recorder import Recorder, return_normaliser
from ref_side.session import Session, Settings, resolve
from shared.configuration import flatten, reference_overrides, reference_resolved
from shared.errors import NotLearningError, UserError
from shared.protocol import updates
from shared.records.rows import Episode, Evaluation, Progress, Record, check_episode, read_rows

ROWS, EVERY = 1600, 400
OUTCOME = Outcome((20.0, 30.0), (20, 30))


class RandomAgent(embodied.RandomAgent):  # type: ignore[misc]
    """Random actions; ``train`` returns, as the real one, the metrics of the update before."""

    configs = dreamerv3.Agent.configs

    def __init__(self, obs_space: Any, act_space: Any, _: Any) -> None:
        super().__init__(obs_space, act_space)
        self.updates = embodied.Counter()
        retnorm = {"low": jnp.float32(-1.0), "high": jnp.float32(2.5)}
        self.params = {f"agent/retnorm/{name}/value": each for name, each in retnorm.items()}
        self._pending: dict[str, Any] = {}

    def train(self, data: Any, carry: Any = ()) -> Any:
        assert data["vector"].shape == (16, 65, 4)
        metrics, number = self._pending, int(self.updates)
        self._pending = {
            "vector_loss": np.float32(number),
            "ret/std": np.float32(3.0),
            "ret_normed/std": np.float32(1.5),
            "opt_param_count": np.float32(7.0),
            "act/action/dist": np.zeros(2),
        }
        self.updates.increment()
        return {}, carry, metrics


def run_randomly(
    directory: Path, evaluate: Callable[[], Outcome], kind: type = RandomAgent
) -> Session:
    """Run the stock loop with random actions into ``directory``; ``evaluate`` evaluates."""
    directory.mkdir()
    settings = Settings(
        arm="stock",
        seed=3,
        rows=ROWS,
        every=EVERY,
        episodes=2,
        progress_every=160,
        tiny=True,
        directory=directory,
        began=time.time(),
    )
    recorder = Recorder(directory, 3, ROWS, settings.began)
    evaluation = mock.patch.object(Session, "_evaluate", lambda _: evaluate())
    with mock.patch.object(dreamerv3, "Agent", kind), evaluation:
        session = Session(settings, recorder)
        try:
            session.run()
        finally:
            recorder.close()
    return session


class Running(unittest.TestCase):
    """One run of 1600 rows, shared by the tests."""

    directory: Path
    session: Session

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.directory = Path(folder.name) / "ref_s3"
        cls.session = run_randomly(cls.directory, lambda: OUTCOME)

    def test_records_are_at_the_protocols_rows_and_updates(self) -> None:
        for name, kind in (("records.jsonl", Record), ("evals.jsonl", Evaluation)):
            found = read_rows(self.directory / name, kind)
            self.assertEqual([row.rows for row in found], [400, 800, 1200, 1600])
            self.assertEqual([row.updates for row in found], [0, 0, 81, 281])
            self.assertEqual([row.updates for row in found], [updates(row.rows) for row in found])

    def test_a_window_holds_the_updates_up_to_the_one_before_the_last(self) -> None:
        windows = read_rows(self.directory / "records.jsonl", Record)
        self.assertEqual([row.window_samples for row in windows], [0, 0, 80, 200])
        self.assertEqual(windows[0].train_raw, {})
        self.assertAlmostEqual((windows[2].train_raw or {})["vector_loss"], np.mean(range(80)))
        self.assertAlmostEqual((windows[3].train_raw or {})["vector_loss"], np.mean(range(80, 280)))

    def test_metrics_are_recorded_under_both_names(self) -> None:
        last = read_rows(self.directory / "records.jsonl", Record)[-1]
        raw = last.train_raw or {}
        self.assertEqual(last.side, "ref")
        self.assertEqual(last.train["rec_loss"], raw["vector_loss"])
        self.assertEqual(last.train["retnorm_scale_derived"], 2.0)
        self.assertEqual(last.train["n_updates"], 281)
        self.assertEqual(raw["opt_param_count"], 7.0)
        self.assertNotIn("opt_param_count", last.train)
        self.assertNotIn("act/action/dist", raw)
        self.assertEqual(last.retnorm, {"low": -1.0, "high": 2.5, "scale": 3.5})
        self.assertEqual(last.eval_mean, 25.0)
        self.assertEqual(last.eval_returns, (20.0, 30.0))

    def test_episodes_tile_the_rows_of_every_worker(self) -> None:
        episodes = read_rows(self.directory / "episodes.jsonl", Episode)
        self.assertEqual([check_episode(each) for each in episodes], [None] * len(episodes))
        self.assertEqual({each.worker for each in episodes}, set(range(16)))
        for worker in range(16):
            mine = [each for each in episodes if each.worker == worker]
            ends = np.cumsum([each.length + 1 for each in mine]) - 1
            self.assertEqual([each.row_last for each in mine], ends.tolist())
            self.assertLessEqual(mine[-1].row_last, ROWS // 16)

    def test_the_flush_is_counted(self) -> None:
        episodes = read_rows(self.directory / "episodes.jsonl", Episode)
        flushed = [each for each in episodes if each.row_last == ROWS // 16]
        self.assertEqual(self.session.timing["flush_episodes"], len(flushed))

    def test_timing_has_the_protocols_keys_in_their_order(self) -> None:
        timing = self.session.timing
        expected = (
            "t_start t_loop_start first_update_step t_first_update flush_episodes t_end "
            "build_and_compile_s total_s observer_s evaluation_s"
        )
        self.assertEqual(list(timing), expected.split())
        self.assertEqual(timing["first_update_step"], 1040)
        moments = [timing[f"t_{name}"] for name in ("start", "loop_start", "first_update", "end")]
        self.assertEqual(moments, sorted(moments))
        self.assertLess(0.0, timing["observer_s"])
        self.assertLess(timing["observer_s"], timing["total_s"])

    def test_progress_is_every_160_rows(self) -> None:
        progress = read_rows(self.directory / "progress.jsonl", Progress)
        self.assertEqual([row.rows for row in progress], list(range(160, ROWS + 1, 160)))
        self.assertEqual([row.updates for row in progress], [updates(row.rows) for row in progress])

    def test_lines_are_strict_json(self) -> None:
        for path in self.directory.glob("*.jsonl"):
            for line in path.read_text().splitlines():
                json.loads(line, parse_constant=self.fail)

    def test_the_stock_driver_is_back(self) -> None:
        self.assertEqual(embodied.Driver.__module__, "embodied.core.driver")


class Losing(unittest.TestCase):
    """A run whose losses stop being numbers."""

    def test_it_stops_at_the_next_checkpoint_and_keeps_its_records(self) -> None:
        class LosingAgent(RandomAgent):
            def train(self, data: Any, carry: Any = ()) -> Any:
                result = super().train(data, carry)
                if int(self.updates) > 60:
                    self._pending["actor_loss"] = np.float32(np.nan)
                    self._pending["reward_loss"] = np.float32(np.inf)
                return result

        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "ref_s3"
            with self.assertRaises(NotLearningError) as ended:
                run_randomly(run, lambda: OUTCOME, LosingAgent)
            self.assertEqual(
                str(ended.exception),
                "ref_s3: stopped at row 1200, after 81 updates: reward_loss, actor_loss not finite;"
                " its records are kept",
            )
            for name, kind in (("records.jsonl", Record), ("evals.jsonl", Evaluation)):
                rows = [row.rows for row in read_rows(run / name, kind)]
                self.assertEqual(rows, [400, 800, 1200])
            self.assertTrue(read_rows(run / "episodes.jsonl", Episode))
        self.assertEqual(embodied.Driver.__module__, "embodied.core.driver")


class Taken(unittest.TestCase):
    """A run whose output somebody takes away."""

    def test_it_ends_and_makes_nothing_again(self) -> None:
        def take_at(call: int, run: Path) -> Callable[[], Outcome]:
            calls: list[int] = []

            def evaluate() -> Outcome:
                calls.append(1)
                if len(calls) == call:
                    shutil.rmtree(run)
                return OUTCOME

            return evaluate

        for call in (1, 3):
            with self.subTest(call=call), tempfile.TemporaryDirectory() as folder:
                run = Path(folder) / "ref_s3"
                with self.assertRaisesRegex(UserError, "was removed, moved or replaced"):
                    run_randomly(run, take_at(call, run))
                self.assertFalse(run.exists())

    def test_it_ends_before_the_loop_writes_its_checkpoint(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "ref_s3"

            class Taking(RandomAgent):
                def __init__(self, *arguments: Any) -> None:
                    super().__init__(*arguments)
                    run.rename(run.with_name("aside"))

            with self.assertRaisesRegex(UserError, "was removed, moved or replaced"):
                run_randomly(run, lambda: OUTCOME, Taking)
            self.assertFalse(run.exists())


class Ending(unittest.TestCase):
    """A run that is told to end."""

    def test_what_was_recorded_before_a_signal_stays_readable(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
            signal.signal(number, signal.default_int_handler)
            calls: list[int] = []

            def evaluate(number: int = number, calls: list[int] = calls) -> Outcome:
                calls.append(1)
                if len(calls) == 3:
                    os.kill(os.getpid(), number)
                return OUTCOME

            with self.subTest(signal=number), tempfile.TemporaryDirectory() as folder:
                run = Path(folder) / "ref_s3"
                with self.assertRaises(SystemExit) as ended:
                    run_randomly(run, evaluate)
                self.assertEqual(ended.exception.code, 128 + number)
                records = read_rows(run / "records.jsonl", Record)
                self.assertEqual([row.rows for row in records], [400, 800])
                self.assertTrue(read_rows(run / "episodes.jsonl", Episode))


class Normaliser(unittest.TestCase):
    """The return normaliser's scale."""

    def test_it_is_at_least_one(self) -> None:
        for low, high, scale in ((0.0, 0.0, 1.0), (-0.2, 0.3, 1.0), (-1.0, 4.0, 5.0)):
            names = {"agent/retnorm/low/value": low, "agent/retnorm/high/value": high}
            found = return_normaliser({name: jnp.float32(value) for name, value in names.items()})
            self.assertAlmostEqual(found["scale"], scale, places=6)


class Configuration(unittest.TestCase):
    """The resolved configuration against the protocol's table and the stock main module."""

    def test_resolved_values_are_the_protocols(self) -> None:
        for tiny in (False, True):
            asked = {"seed": 2, "rows": 20000, "logdir": "somewhere", "tiny": tiny}
            found = flatten(dict(resolve(reference_overrides(**asked))))
            for name, value in reference_resolved(**asked).items():
                self.assertEqual(found[name], value, name)

    def test_the_stock_main_module_would_run_with_the_same(self) -> None:
        """Its ``main`` is given the overrides as flags; the loop is caught when it is called."""
        with tempfile.TemporaryDirectory() as folder:
            overrides = reference_overrides(seed=1, rows=1600, logdir=f"{folder}/run", tiny=True)
            flags = [
                part for name, value in overrides.items() for part in (f"--{name}", str(value))
            ]
            with mock.patch.object(embodied.run, "train") as loop:
                dreamerv3.main.main(flags)
            stock = loop.call_args.args[4]
            saved = YAML(typ="safe").load(Path(f"{folder}/run/config.yaml").read_text())
        config = resolve(overrides)
        self.assertEqual(config.flat, embodied.Config(saved).flat)
        settings = mock.Mock(arm="stock", overrides=lambda _: overrides, directory="", began=0)
        with mock.patch.object(embodied.run, "train") as loop:
            session = Session(settings, mock.Mock())
            with mock.patch.object(session, "_finish"):
                session.run()
        self.assertEqual(loop.call_args.args[4].flat, stock.flat)

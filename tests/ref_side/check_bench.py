"""The paced stock loop, its network replaced by random actions: observers come and go."""

import io
import json
import tempfile
import time
import unittest
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import dreamerv3

from ref_side.bench import paced_session
from ref_side.evaluation import Outcome
from ref_side.recorder import Recorder
from ref_side.session import Settings
from shared.probes.pace import FIRST_TICK, Pace
from shared.protocol import N_ENVS
from shared.records.layout import EVALUATIONS, PROGRESS
from shared.records.rows import Evaluation, Progress, read_rows
from tests.ref_side.check_session import OUTCOME, RandomAgent

#: Ticks of each block, and whether it is observed.
BLOCKS = ((2, False), (3, True), (2, False), (1, True))


class LeftError(Exception):
    """Ends the loop where the process would end."""


def leave() -> None:
    raise LeftError


class Pacing(unittest.TestCase):
    """One paced run, shared by the tests."""

    directory: Path
    replies: list[dict[str, Any]]
    bare: list[bool]

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.directory = Path(folder.name) / "ref_s0"
        cls.directory.mkdir()
        settings = Settings("stock", 0, 20_000, N_ENVS, 2, N_ENVS, True, cls.directory, time.time())
        recorder = Recorder(cls.directory, 0, settings.rows, settings.began)
        cls.addClassCleanup(recorder.close)
        commands = [{"ticks": ticks, "observed": observed} for ticks, observed in BLOCKS]
        replies = io.StringIO()
        cls.bare = []

        def evaluate(_: Any) -> Outcome:
            time.sleep(0.05)
            return OUTCOME

        with mock.patch.object(dreamerv3, "Agent", RandomAgent):
            session = paced_session()(settings, recorder)

            def prepare(command: Mapping[str, Any]) -> None:
                session.prepare(command)
                cls.bare.append("train" not in vars(session._agent))

            session.pace = Pace(
                replies,
                commands=io.StringIO("".join(json.dumps(command) + "\n" for command in commands)),
                settle=session.settle,
                prepare=prepare,
                report=session.report,
                leave=leave,
            )
            evaluation = mock.patch.object(type(session), "_evaluate", evaluate)
            with evaluation, suppress(LeftError):
                session.run()
        cls.replies = [json.loads(line) for line in replies.getvalue().splitlines()]

    def test_every_block_is_as_long_as_asked(self) -> None:
        lengths = [len(reply["marks"]) - 1 for reply in self.replies]
        self.assertEqual(lengths, [0, *(ticks for ticks, _ in BLOCKS)])

    def test_observers_write_in_observed_ticks_only(self) -> None:
        rows, at = [], FIRST_TICK
        for ticks, observed in BLOCKS:
            rows += [N_ENVS * (at + 1 + n) for n in range(ticks)] if observed else []
            at += ticks
        for name, kind in ((PROGRESS, Progress), (EVALUATIONS, Evaluation)):
            found = read_rows(self.directory / name, kind)
            self.assertEqual([row.rows for row in found], rows)

    def test_bare_training_calls_the_agents_own_method(self) -> None:
        self.assertEqual(self.bare, [not observed for _, observed in BLOCKS])

    def test_only_observed_ticks_cost_anything(self) -> None:
        for (ticks, observed), before, after in zip(
            BLOCKS, self.replies, self.replies[1:], strict=False
        ):
            observing = after["observer_s"] - before["observer_s"]
            evaluating = after["evaluation_s"] - before["evaluation_s"]
            self.assertEqual(observing > 0, observed)
            self.assertEqual(evaluating >= 0.05 * ticks, observed)
            self.assertEqual(evaluating == 0, not observed)
            self.assertLess(observing + evaluating, after["marks"][-1] - after["marks"][0] + 1e-6)

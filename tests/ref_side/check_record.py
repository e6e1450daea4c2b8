"""The recorder of a reference run: its batches are those that the training step was given, in turn.

Both sides of ``matched`` read the same recording, so that a batch too early or too late would show
in none of its comparisons.
"""

import unittest
from itertools import pairwise
from typing import Any
from unittest import mock

import dreamerv3
import numpy as np

from ref_side import probe_record
from ref_side.probe_record import kept, probe
from shared.probes.matched_case import CONTEXT, FIELDS
from shared.records.arrays import Arrays
from tests.ref_side.check_session import RandomAgent

UPDATES, LOGITS_AFTER = 12, 5
TENSOR = "agent/enc/weight"


class WatchedAgent(RandomAgent):
    """Keeps what each call of ``train`` was given; every call changes the network's tensor."""

    given: list[Arrays]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        type(self).given = []
        self.params[TENSOR] = np.zeros(3, np.float32)

    def train(self, data: Any, carry: Any = ()) -> Any:
        self.given.append({name: np.array(data[name]) for name in FIELDS})
        self.params[TENSOR] += 1
        return super().train(data, carry)


def updates_done(agent: Any, _: Any) -> Arrays:
    """In place of logits."""
    return {"critic": np.asarray(int(agent.updates))}


class Recording(unittest.TestCase):
    """One recorded run with random actions, whose replay holds no latents."""

    recorded: Arrays

    @classmethod
    def setUpClass(cls) -> None:
        arrays = {"seed": 3, "tiny": True, "updates": UPDATES}
        with (
            mock.patch.object(dreamerv3, "Agent", WatchedAgent),
            mock.patch.object(probe_record, "CONTEXT", ()),
            mock.patch.object(probe_record, "LOGITS_AT", (LOGITS_AFTER, 1000)),
            mock.patch.object(probe_record, "head_logits", updates_done),
        ):
            cls.recorded = probe({name: np.asarray(each) for name, each in arrays.items()})

    def test_every_batch_is_what_its_update_was_given(self) -> None:
        self.assertGreaterEqual(len(WatchedAgent.given), UPDATES)
        for name in FIELDS:
            found = self.recorded[f"batches/{name}"]
            self.assertEqual(len(found), UPDATES)
            for update, given in enumerate(WatchedAgent.given[:UPDATES]):
                np.testing.assert_array_equal(found[update], given[name])

    def test_the_batches_tell_the_updates_apart(self) -> None:
        vectors = self.recorded["batches/vector"]
        for one, two in pairwise(vectors):
            self.assertFalse(np.array_equal(one, two))

    def test_parameters_are_those_before_the_first_update(self) -> None:
        np.testing.assert_array_equal(self.recorded[f"parameters/{TENSOR}"], np.zeros(3))

    def test_logits_are_taken_after_as_many_updates_as_they_are_named_by(self) -> None:
        names = [name for name in self.recorded if name.startswith("logits/")]
        self.assertEqual(names, [f"logits/{LOGITS_AFTER}/critic"])
        self.assertEqual(int(self.recorded[names[0]]), LOGITS_AFTER)


class Kept(unittest.TestCase):
    """One batch."""

    def test_latents_are_those_of_row_0_and_all_is_copied(self) -> None:
        rng = np.random.default_rng(0)
        batch = {name: rng.normal(size=(16, 65, 2)) for name in (*FIELDS, *CONTEXT)}
        before = {name: each.copy() for name, each in batch.items()}
        found = kept(batch)
        for each in batch.values():
            each[:] = 0
        for name in FIELDS:
            np.testing.assert_array_equal(found[name], before[name])
        for name in CONTEXT:
            np.testing.assert_array_equal(found[name], before[name][:, 0])

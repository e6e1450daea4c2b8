"""Observing a run leaves what it computes as it is, bit for bit."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from shared.provenance import REPO
from tests.inside import NO_SKIP

#: Two trainings of minutes: off unless asked for, or unless nothing may be skipped.
SLOW = "COMPARISON_SLOW"

#: A run of nine updates, observed or not; what it returned and its final state go to a file.
RUN = """
import sys
from ajax_side.run import set_environment
set_environment()
import jax, numpy as np
from ajax_side import observers, training
plan = training.Plan(seeds=(0, 1), rows=1056, every=528, episodes=2, tiny=True)
if sys.argv[2] == "observed":
    seen = []
    assert observers.observe_log(lambda metrics, index: seen.append(index))
    assert observers.add_return_normaliser()
agent = training.build_agent(plan)
state, metrics = training.train(agent, plan, training.describe(agent, plan)["ring_rows"])
if sys.argv[2] == "observed":
    assert sorted(seen) == [0, 0, 1, 1], seen
leaves = {f"state{number}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}
named = {name.replace("/", "|"): value for name, value in metrics.items()}
np.savez(sys.argv[1], **leaves, **named)
"""


class Observers(unittest.TestCase):
    """Both replaced functions against a run without them."""

    @unittest.skipUnless(
        os.environ.get(SLOW) == "1" or os.environ.get(NO_SKIP) == "1",
        f"takes minutes: set {SLOW}=1 to run it",
    )
    def test_training_is_the_same_bit_for_bit(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            files = {kind: Path(scratch) / f"{kind}.npz" for kind in ("observed", "plain")}
            for kind, path in files.items():
                command = [sys.executable, "-c", RUN, str(path), kind]
                done = subprocess.run(
                    command, cwd=REPO, capture_output=True, text=True, check=False
                )
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            observed, plain = (dict(np.load(files[kind])) for kind in ("observed", "plain"))
        self.assertEqual(
            set(observed) - set(plain), {"Observed|retnorm_low", "Observed|retnorm_high"}
        )
        self.assertTrue((plain["Train|n_updates"] == [0, 9]).all(), plain["Train|n_updates"])
        self.assertGreater(len([name for name in plain if name.startswith("state")]), 100)
        for name, value in plain.items():
            with self.subTest(name):
                np.testing.assert_array_equal(observed[name], value)

"""Observing a run leaves what it computes as it is, bit for bit."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from shared.provenance.roots import REPO
from tests.inside import slow

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
    beats = []
    assert observers.add_heartbeat(beats.append)
agent = training.build_agent(plan)
state, metrics = training.train(agent, plan, training.describe(agent, plan)["ring_rows"])
if sys.argv[2] == "observed":
    assert sorted(seen) == [0, 0, 1, 1], seen
    assert beats == list(range(0, 1056, 16)), beats
leaves = {f"state{number}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}
open(sys.argv[3], "wb").write(training.final_state(state, plan.seeds))
named = {name.replace("/", "|"): value for name, value in metrics.items()}
np.savez(sys.argv[1], **leaves, **named)
"""


class Observers(unittest.TestCase):
    """All replaced functions against a run without them."""

    @slow
    def test_training_is_the_same_bit_for_bit(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            files = {kind: Path(scratch) / f"{kind}.npz" for kind in ("observed", "plain")}
            final = Path(scratch) / "final.npz"
            for kind, path in files.items():
                command = [sys.executable, "-c", RUN, str(path), kind, str(final)]
                done = subprocess.run(
                    command, cwd=REPO, capture_output=True, text=True, check=False
                )
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            self.check_final(dict(np.load(final)))
            observed, plain = (dict(np.load(files[kind])) for kind in ("observed", "plain"))
        self.assertEqual(
            set(observed) - set(plain), {"Observed|retnorm_low", "Observed|retnorm_high"}
        )
        self.assertTrue((plain["Train|n_updates"] == [0, 9]).all(), plain["Train|n_updates"])
        self.assertGreater(len([name for name in plain if name.startswith("state")]), 100)
        for name, value in plain.items():
            with self.subTest(name):
                np.testing.assert_array_equal(observed[name], value)

    def check_final(self, final: dict[str, np.ndarray]) -> None:
        """Shapes and counts that ``final_state`` documents."""
        self.assertEqual(final["seeds"].tolist(), [0, 1])
        self.assertEqual(final["rows"].tolist(), [1056, 1056])
        self.assertEqual(final["updates"].tolist(), [9, 9])
        self.assertTrue((final["retnorm_high"] >= final["retnorm_low"]).all())
        self.assertEqual(final["return_buffer"].shape, (2, 10, 16))
        for name in ("return_count", "return_index", "return_sum"):
            self.assertEqual(final[name].shape, (2, 16))
        np.testing.assert_allclose(final["return_buffer"].sum(axis=1), final["return_sum"])

"""Compiled programs from the cache, in Ajax's jax and with Ajax's own whole program."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

from tests.compiling import CacheChecks, entries, run_with_cache
from tests.inside import slow

#: A run of nine updates as a smoke runs it, or as Ajax ships; results and seconds go to a file.
RUN = """
import sys, time
from ajax_side.run import set_environment
set_environment()
import jax, numpy as np
from ajax_side import observers, training
plan = training.Plan(seeds=(0, 1), rows=1056, every=528, episodes=2, tiny=True)
if sys.argv[2] != "stock":
    print(observers.observe(None, None, stored=True))
agent = training.build_agent(plan)
began = time.monotonic()
state, metrics = training.train(agent, plan, training.describe(agent, plan)["ring_rows"])
seconds = time.monotonic() - began
leaves = {f"state{number}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}
named = {name.replace("/", "|"): value for name, value in metrics.items()}
np.savez(sys.argv[1], seconds=seconds, **leaves, **named)
"""


class Cache(CacheChecks, unittest.TestCase):
    side = "ajax"


class WithoutCallbacks(unittest.TestCase):
    """What a smoke leaves out, and what it gains."""

    @slow
    def test_the_program_is_stored_and_computes_the_same_bit_for_bit(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            cache, results, programs = Path(folder) / "cache", {}, {}
            for kind in ("stock", "cold", "warm"):
                file = Path(folder) / f"{kind}.npz"
                where = None if kind == "stock" else cache
                run_with_cache(RUN, "ajax", where, str(file), kind)
                results[kind] = dict(np.load(file))
                if where is not None:
                    programs[kind] = {name for name in entries(where) if name.endswith("-cache")}
        # Not its time, which on a busy machine is mostly waiting: nothing was compiled anew.
        self.assertEqual(programs["warm"], programs["cold"])
        self.assertTrue(any(name.startswith("jit_train-") for name in programs["cold"]))
        seconds = {kind: float(found.pop("seconds")) for kind, found in results.items()}
        print(f"seconds of the train call: {seconds}")
        self.assertTrue((results["stock"]["Train|n_updates"] == [0, 9]).all())
        for kind in ("cold", "warm"):
            for name, value in results["stock"].items():
                with self.subTest(kind=kind, name=name):
                    np.testing.assert_array_equal(results[kind][name], value)

"""Each arm replaces what it says, and nothing else."""

import unittest
from types import SimpleNamespace
from typing import Any

import dreamerv3.main
import embodied
import numpy as np
from dreamerv3 import jaxutils

from ref_side.arms import PATCHES, exact_mean, patch_code, patch_replay, patch_text
from shared.protocol import arm_names


def replay_of(arm: str, seed: int) -> Any:
    """A stock replay of sequences of 3 rows, patched for ``arm``, with 40 rows in it."""
    replay = embodied.replay.Replay(3, capacity=1000, online=False, chunksize=64)
    patch_replay(arm, replay, seed)
    for row in range(40):
        flags = {"is_first": row == 0, "is_last": False, "is_terminal": False}
        replay.add({"value": np.float32(row), **flags})
    return replay


def drawn(replay: Any) -> list[float]:
    batch = next(iter(replay.dataset(16)))
    return batch["value"][:, 0].tolist()


def expected(seed: Any) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(rng.integers(0, 38)) for _ in range(16)]


class Arms(unittest.TestCase):
    """The table of arms against the imported code."""

    def test_the_arms_are_the_protocols(self) -> None:
        self.assertEqual(tuple(PATCHES), arm_names("reference"))

    def test_the_stock_sampler_is_seeded_zero_whatever_the_run(self) -> None:
        for arm in ("stock", "exact"):
            for seed in (0, 7):
                self.assertEqual(drawn(replay_of(arm, seed)), expected(0))

    def test_the_seeded_sampler_draws_from_the_runs_own_stream(self) -> None:
        for seed in (0, 7):
            self.assertEqual(drawn(replay_of("exact-seeded", seed)), expected([seed, 0x5EED]))

    def test_the_stock_factory_builds_what_the_seeded_arm_expects(self) -> None:
        """It is the arm's only assumption: an empty replay with a uniform selector."""
        config = embodied.Config(dreamerv3.Agent.configs["defaults"])
        replay = dreamerv3.main.make_replay(config.update({"replay_length": 65}))
        patch_replay("exact-seeded", replay, 1)
        self.assertIsInstance(replay.sampler, embodied.replay.selectors.Uniform)

    def test_another_selector_is_refused(self) -> None:
        replay = SimpleNamespace(sampler=embodied.replay.selectors.Fifo())
        with self.assertRaisesRegex(RuntimeError, "uniform"):
            patch_replay("exact-seeded", replay, 0)

    def test_the_expectation_is_replaced_in_the_exact_arms_only(self) -> None:
        stock = jaxutils.TwoHotDist.mean
        self.addCleanup(setattr, jaxutils.TwoHotDist, "mean", stock)
        for arm in PATCHES:
            jaxutils.TwoHotDist.mean = stock
            patch_code(arm, jaxutils)
            replaced = jaxutils.TwoHotDist.mean is exact_mean
            self.assertEqual(replaced, arm != "stock")
            self.assertEqual(jaxutils.TwoHotDist.mean is stock, arm == "stock")

    def test_every_patched_arm_says_what_it_replaces(self) -> None:
        self.assertIsNone(patch_text("stock"))
        self.assertEqual((patch_text("exact") or "").count("\n"), 1)
        self.assertIn("TwoHotDist.mean", patch_text("exact") or "")
        self.assertIn("0x5eed", patch_text("exact-seeded") or "")

"""The port check passes on the port, and fails on a planted fault of each kind."""

import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from ajax_side import port_check
from shared.protocol import MAX_EPISODE_STEPS
from shared.provenance.roots import REPO

PHYSICS, ROWS = port_check.load_port(REPO / "ref_side")
GYMNAX = port_check.make_gymnax()


def failures(checks: Any) -> set[str]:
    return {check.name.partition(": ")[2] for check in checks if not check.passed}


class Changed(ROWS.CartPoleEnv):  # type: ignore[misc, name-defined]
    """The port's rows with one key changed by ``change(row)``."""

    change: Any = None

    def step(self, action: Any) -> Any:
        row = super().step(action)
        type(self).change(row)
        return row


def rows_changed_by(change: Any) -> Any:
    faulty = type("Faulty", (Changed,), {"change": staticmethod(change)})
    return SimpleNamespace(CartPoleEnv=faulty)


class PortCheck(unittest.TestCase):
    def test_the_port_passes_every_check(self) -> None:
        checks = port_check.all_checks(REPO / "ref_side")
        self.assertEqual([check for check in checks if not check.passed], [])
        self.assertEqual(len(checks), 14)
        self.assertTrue(any(0 < check.largest < 1e-6 for check in checks))

    def test_the_balanced_rollout_reaches_the_time_limit(self) -> None:
        finished: list[Any] = []
        seen = SimpleNamespace(
            CartPoleEnv=lambda rng, note: ROWS.CartPoleEnv(
                rng, lambda episode: (finished.append(episode), note(episode))
            )
        )
        checks = port_check.check_rollout(seen, GYMNAX, "balanced", port_check.balance)
        self.assertEqual(failures(checks), set())
        self.assertEqual(finished[0].length, MAX_EPISODE_STEPS)
        self.assertFalse(finished[0].terminal)

    def test_states_lie_inside_and_near_the_thresholds(self) -> None:
        states = port_check.draw_states(GYMNAX, np.random.default_rng(0))
        self.assertEqual((states.shape, states.dtype), ((400, 4), np.float32))
        self.assertFalse(PHYSICS.outside(states).any())
        outcome = GYMNAX.step(np.repeat(states, 2, axis=0), np.zeros(800), np.tile([0, 1], 400))
        self.assertTrue(0.02 < outcome[2].mean() < 0.5, "both outcomes must be seen")

    def test_faults_of_physics_are_found(self) -> None:
        for name, factor, part in (
            ("GRAVITY", 1.001, "observation"),
            ("TAU", 1.0001, "observation"),
            ("ANGLE_THRESHOLD", 0.99, "terminated"),
            ("X_THRESHOLD", 1.01, "terminated"),
        ):
            value = np.float32(getattr(PHYSICS, name) * np.float32(factor))
            with self.subTest(name), mock.patch.object(PHYSICS, name, value):
                self.assertIn(part, failures(port_check.check_steps(PHYSICS, GYMNAX, 0)))
        with mock.patch.object(PHYSICS, "MAX_STEPS", MAX_EPISODE_STEPS + 1):
            found = failures(port_check.check_steps(PHYSICS, GYMNAX, MAX_EPISODE_STEPS - 1))
            self.assertEqual(found, {"truncated"})

    def test_faults_of_rows_are_found(self) -> None:
        def reset_reward(row: Any) -> None:
            row["reward"] = np.float32(1.0)

        def never_first(row: Any) -> None:
            row["is_first"] = False

        def never_terminal(row: Any) -> None:
            row["is_terminal"] = False

        for change, part in (
            (reset_reward, "reward and flags of rows"),
            (never_first, "reward and flags of rows"),
            (never_terminal, "reward and flags of rows"),
        ):
            with self.subTest(change.__name__):
                rows = rows_changed_by(change)
                checks = port_check.check_rollout(
                    rows, GYMNAX, "random", port_check.random_actions()
                )
                self.assertIn(part, failures(checks))
        self.assertEqual(port_check.difference([np.nan], [0.0]), np.inf)

"""The ``embodied.Env`` around CartPole, inside the reference's own wrappers."""

import unittest
from typing import Any

import dreamerv3
import numpy as np

from ref_side.cartpole import CartPole, next_state
from ref_side.environment import CartPoleEnv, FinishedEpisode
from ref_side.session import resolve
from shared.configuration import reference_overrides

CONFIG = resolve(reference_overrides(seed=0, rows=1600, logdir="unused", tiny=True))


def action(push: int, *, reset: bool = False) -> dict[str, Any]:
    return {"action": np.int32(push), "reset": np.bool_(reset)}


class Environment(unittest.TestCase):
    """Rows, flags and records of an environment with reset stream [3, 5]."""

    def setUp(self) -> None:
        self.episodes: list[FinishedEpisode] = []
        self.bare = CartPoleEnv(np.random.default_rng([3, 5]), self.episodes.append)
        # The stock wrappers check the type, shape and range of every value.
        self.env = dreamerv3.wrap_env(self.bare, CONFIG)

    def episode(self, push: int = 1) -> list[dict[str, Any]]:
        rows = [self.env.step(action(0, reset=True))]
        while not rows[-1]["is_last"]:
            rows.append(self.env.step(action(push)))
        return rows

    def test_spaces_are_those_of_the_protocol(self) -> None:
        spaces = {
            name: (space.dtype.name, space.shape)
            for name, space in {**self.env.obs_space, **self.env.act_space}.items()
        }
        flags = dict.fromkeys(("is_first", "is_last", "is_terminal", "reset"), ("bool", ()))
        expected = {
            "vector": ("float32", (4,)),
            "reward": ("float32", ()),
            "action": ("int32", ()),
        } | flags
        self.assertEqual(spaces, expected)
        self.assertEqual(self.env.act_space["action"].classes, 2)

    def test_an_episode_of_l_steps_is_l_plus_one_rows(self) -> None:
        rows = self.episode()
        length = len(rows) - 1
        self.assertEqual([float(row["reward"]) for row in rows], [0.0] + [1.0] * length)
        self.assertEqual([row["is_first"] for row in rows], [True] + [False] * length)
        for flag in ("is_last", "is_terminal"):
            self.assertEqual([row[flag] for row in rows], [False] * length + [True])
        state = CartPole.reset(np.random.default_rng([3, 5])).state
        for row in rows:
            np.testing.assert_array_equal(row["vector"], state)
            state = next_state(state, 1)

    def test_finished_episodes_tile_the_rows(self) -> None:
        lengths = [len(self.episode(push)) - 1 for push in (1, 0, 1)]
        ends = np.cumsum([length + 1 for length in lengths]) - 1
        self.assertEqual(
            self.episodes,
            [
                FinishedEpisode(int(end), length, float(length), terminal=True)
                for end, length in zip(ends, lengths, strict=True)
            ],
        )

    def test_resets_go_on_in_one_stream(self) -> None:
        rng = np.random.default_rng([3, 5])
        for _ in range(3):
            np.testing.assert_array_equal(self.episode()[0]["vector"], CartPole.reset(rng).state)

    def test_a_time_limit_alone_is_not_terminal(self) -> None:
        self.env.step(action(0, reset=True))
        self.bare._pole = CartPole(np.zeros(4, np.float32), time=499)
        row = self.env.step(action(0))
        self.assertTrue(row["is_last"])
        self.assertFalse(row["is_terminal"])
        self.assertEqual(self.episodes[0].length, 500)
        self.assertFalse(self.episodes[0].terminal)

    def test_a_reset_within_an_episode_records_nothing(self) -> None:
        self.env.step(action(0, reset=True))
        self.env.step(action(1))
        self.assertTrue(self.env.step(action(1, reset=True))["is_first"])
        self.assertEqual(self.episodes, [])

    def test_stepping_an_ended_episode_is_an_error(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "reset"):
            self.env.step(action(1))
        self.episode()
        with self.assertRaisesRegex(RuntimeError, "reset"):
            self.env.step(action(1))

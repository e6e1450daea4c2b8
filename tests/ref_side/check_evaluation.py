"""Evaluation as protocol section 6 has it, with a policy whose every call is seen."""

import unittest
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ref_side.cartpole import CartPole
from ref_side.environment import CartPoleEnv
from ref_side.evaluation import Outcome, environment_rng, evaluate


class Evaluation(unittest.TestCase):
    """Seed 4, environments whose lengths differ because of a random policy."""

    def setUp(self) -> None:
        self.seeds: list[list[int]] = []
        self.observations: list[dict[str, np.ndarray]] = []
        self.parameters: list[Any] = []
        everywhere = NamedSharding(Mesh(jax.devices()[:1], "i"), PartitionSpec())

        def init_policy(_: Any, seed: Any, batch: int) -> Any:
            self.seeds.append(np.asarray(seed).tolist())
            return np.zeros(batch)

        def policy(parameters: Any, rows: Any, carry: Any, seed: Any, _: str) -> Any:
            self.seeds.append(np.asarray(seed).tolist())
            self.parameters.append(parameters)
            self.observations.append({name: np.asarray(each) for name, each in rows.items()})
            key = jax.random.wrap_key_data(np.asarray(seed))
            actions = jax.random.randint(key, carry.shape, 0, 2, np.int32)
            return {"action": actions}, {}, carry + 1

        self.weights = {"enc": jax.numpy.ones(2), "critic": jax.numpy.ones(2)}
        self.agent = SimpleNamespace(
            params=self.weights,
            policy_keys=["enc"],
            policy_mirrored=everywhere,
            policy_sharded=everywhere,
            keys=["vector", "reward", "is_first", "is_last", "is_terminal"],
            _init_policy=init_policy,
            _policy=policy,
        )

    def evaluate(self, seed: int = 4, episodes: int = 6) -> Outcome:
        return evaluate(self.agent, CartPoleEnv, seed=seed, episodes=episodes)

    def test_every_evaluation_repeats_its_streams(self) -> None:
        first = self.evaluate()
        seeds, self.seeds = self.seeds, []
        self.assertEqual(self.evaluate(), first)
        self.assertEqual(self.seeds, seeds)
        self.assertNotEqual(self.evaluate(seed=5), first)

    def test_streams_are_those_of_the_protocol(self) -> None:
        self.evaluate()
        for index, state in enumerate(self.observations[0]["vector"]):
            rng = np.random.default_rng([4, 7000001, index])
            np.testing.assert_array_equal(state, CartPole.reset(rng).state)
            rng = environment_rng(4, index)
            np.testing.assert_array_equal(state, CartPole.reset(rng).state)
        rng = np.random.default_rng([4, 7000001, 1000000])
        drawn = [rng.integers(0, 2**32 - 1, 2, np.uint32).tolist() for _ in self.seeds]
        self.assertEqual(self.seeds, drawn)

    def test_a_finished_environment_is_fed_its_last_row_and_ignored(self) -> None:
        outcome = self.evaluate()
        self.assertGreater(len(set(outcome.lengths)), 1)
        self.assertEqual(len(self.observations), max(outcome.lengths))
        for index, length in enumerate(outcome.lengths):
            lasts = [bool(rows["is_last"][index]) for rows in self.observations]
            self.assertEqual(lasts, [tick >= length for tick in range(len(lasts))])
            fed = [rows["vector"][index] for rows in self.observations[length:]]
            for row in fed:
                np.testing.assert_array_equal(row, fed[0])

    def test_the_return_of_an_episode_is_its_length(self) -> None:
        outcome = self.evaluate()
        self.assertEqual(outcome.returns, tuple(map(float, outcome.lengths)))
        self.assertTrue(all(1 <= length <= 500 for length in outcome.lengths))

    def test_the_policy_gets_a_copy_of_its_own_parameters(self) -> None:
        self.evaluate(episodes=1)
        self.assertEqual(set(self.parameters[0]), {"enc"})
        self.weights["enc"].delete()  # as training does with the parameters it replaces
        np.testing.assert_array_equal(self.parameters[0]["enc"], np.ones(2))

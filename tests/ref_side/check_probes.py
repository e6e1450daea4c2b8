"""The reference's probes: initial parameters as the stock agent has them, at tiny widths."""

import unittest
from types import MethodType, SimpleNamespace

import dreamerv3
import jax
import numpy as np
from dreamerv3.jaxagent import JAXAgent

from ref_side.environment import CartPoleEnv
from ref_side.networks import Networks
from ref_side.probe_encoder import magnitudes, observations, probe
from shared.probes.encoder_case import BATCH, INITIAL, LENGTH, OUTPUTS, SHAKEN, STATES
from shared.probes.parameter_map import PAIRS, is_network
from shared.records.arrays import below


class InitialParameters(unittest.TestCase):
    def test_they_are_those_that_the_stock_agent_draws(self) -> None:
        networks = Networks(tiny=True)
        env = dreamerv3.wrap_env(CartPoleEnv(np.random.default_rng()), networks.config)
        spaces = {**env.obs_space, **env.act_space, **networks.agent.aux_spaces}
        seed = 3
        # The stock wrapper, up to its initialisation: the rest compiles for minutes.
        stock = SimpleNamespace(
            config=networks.config.update(seed=seed),
            agent=networks.agent,
            spaces=spaces,
            keys=[name for name in spaces if name != "reset"],
            train_mirrored=jax.devices()[0],
        )
        for name in ("_dummy_batch", "_filter_data"):
            setattr(stock, name, MethodType(getattr(JAXAgent, name), stock))
        wanted = JAXAgent._init_params(stock, env.obs_space, env.act_space)
        found = networks.initial(np.array([seed, 0], np.uint32))
        self.assertEqual(
            {name for name in wanted if is_network(name)}, {pair.reference for pair in PAIRS}
        )
        for pair in PAIRS:
            np.testing.assert_array_equal(found[pair.reference], wanted[pair.reference])

    def test_magnitudes_over_seeds_are_those_of_each_seed(self) -> None:
        networks, seen = Networks(tiny=True), observations(BATCH, LENGTH)
        together = magnitudes(networks, np.array([0, 1, 5]), seen)
        draw = jax.jit(networks.initial)
        for seed, magnitude in zip((0, 1, 5), together, strict=True):
            drawn = draw(np.array([seed, 0], np.uint32))
            encoder = {name: each for name, each in drawn.items() if name.startswith("agent/enc/")}
            alone = np.abs(networks.embedding(encoder, seen)).mean()
            self.assertAlmostEqual(float(magnitude), float(alone), places=5)
        self.assertEqual(len(set(together.tolist())), 3)


class Answers(unittest.TestCase):
    def test_everything_that_ajax_needs_is_there(self) -> None:
        found = probe({"seeds": np.arange(3), "tiny": np.asarray(True)})
        self.assertEqual(found["magnitude"].shape, (3,))
        self.assertEqual(found["observations"].shape, (BATCH, LENGTH, 4))
        for name in (INITIAL, SHAKEN):
            self.assertEqual(len(below(found, f"{name}/parameters")), len(PAIRS))
            outputs = below(found, f"{name}/outputs")
            self.assertEqual(set(outputs), set(OUTPUTS))
            self.assertEqual({len(each) for each in outputs.values()}, {STATES})
        self.assertFalse(found[f"{INITIAL}/outputs/reward"].any())
        self.assertTrue(found[f"{SHAKEN}/outputs/reward"].any())

    def test_observations_are_episodes_of_cartpole(self) -> None:
        seen = observations(4, 50)
        self.assertEqual(seen.shape, (4, 50, 4))
        self.assertEqual(seen.dtype, np.float32)
        self.assertLess(np.abs(seen[:, 0]).max(), 0.05)
        self.assertGreater(np.abs(seen).max(), 0.5)
        np.testing.assert_array_equal(seen, observations(4, 50))

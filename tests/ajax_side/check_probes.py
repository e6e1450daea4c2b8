"""Ajax's probes: each mapped tensor counts in what is compared, at tiny widths."""

import unittest
from typing import Any

import jax
import numpy as np
from ajax.agents.DreamerV3.learner import init_learner
from ajax.agents.DreamerV3.train_DreamerV3 import env_spec
from flax.traverse_util import unflatten_dict

from ajax_side.networks import Networks
from ajax_side.probe_encoder import magnitudes
from shared.probes.encoder_case import OUTPUTS, STATES, shake, states
from shared.probes.parameter_map import PAIRS, to_ajax
from shared.records.arrays import Arrays


class Mapping(unittest.TestCase):
    networks: Networks
    shapes: dict[str, tuple[int, ...]]
    given: Arrays
    reference: Arrays

    @classmethod
    def setUpClass(cls) -> None:
        cls.networks = Networks.build(tiny=True)
        cls.shapes = cls.networks.shapes()
        config = cls.networks.agent.dreamer_config
        cls.given = states(config.deter, config.stoch, config.classes, 2)
        rng = np.random.default_rng(0)
        cls.given["observation"] = rng.normal(size=(STATES, 4)).astype(np.float32)
        made = {}
        for pair in PAIRS:
            shape = cls.shapes[pair.ajax]
            wide = shape if pair.kept is None else (*shape[:-1], pair.kept + 1)
            scale = 1.0 if pair.ajax.endswith("scale") else 0.0
            made[pair.reference] = np.full(wide, scale, np.float32)
        cls.reference = shake(made)
        cls.compute = staticmethod(jax.jit(cls.networks.outputs))

    def outputs(self, reference: Arrays) -> dict[str, Any]:
        filled = unflatten_dict(to_ajax(reference, self.shapes), sep="/")
        return {name: np.asarray(x) for name, x in self.compute(filled, self.given).items()}

    def test_each_tensor_moves_an_output(self) -> None:
        before = self.outputs(self.reference)
        self.assertEqual(set(before), set(OUTPUTS))
        for pair in PAIRS:
            with self.subTest(pair.reference):
                kept = self.reference[pair.reference]
                # Not by a constant: that of all logits together would change nothing.
                moved = kept + np.linspace(0.25, 0.5, kept.shape[-1], dtype=np.float32)
                after = self.outputs({**self.reference, pair.reference: moved})
                furthest = max(np.abs(after[name] - before[name]).max() for name in OUTPUTS)
                self.assertGreater(furthest, 1e-3)

    def test_two_tensors_exchanged_are_seen(self) -> None:
        before = self.outputs(self.reference)
        one, other = "agent/dyn/imglogit/kernel", "agent/dyn/obslogit/kernel"
        swapped = {
            **self.reference,
            one: self.reference[other],
            other: self.reference[one],
        }
        after = self.outputs(swapped)
        moved = {name for name in OUTPUTS if np.abs(after[name] - before[name]).max() > 1e-3}
        self.assertEqual(moved, {"observe/logits", "imagine/logits"})

    def test_the_unused_column_moves_nothing(self) -> None:
        before = self.outputs(self.reference)
        changed = {name: each.copy() for name, each in self.reference.items()}
        for pair in PAIRS:
            if pair.kept is not None:
                changed[pair.reference][..., pair.kept :] = 100
        for name, each in self.outputs(changed).items():
            np.testing.assert_array_equal(each, before[name])


class InitialParameters(unittest.TestCase):
    def test_magnitudes_over_seeds_are_those_of_each_seed(self) -> None:
        networks = Networks.build(tiny=True)
        seen = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
        together = magnitudes(networks, np.array([0, 1, 5]), seen)
        for seed, magnitude in zip((0, 1, 5), together, strict=True):
            encoder = networks.initial_encoder(seed)
            alone = np.abs(networks.embedding({"enc": encoder}, seen)).mean()
            self.assertAlmostEqual(float(magnitude), float(alone), places=5)
        self.assertEqual(len(set(together.tolist())), 3)

    def test_they_are_those_of_a_run_with_this_seed(self) -> None:
        """A run splits its key for the loop, then in four; the learner takes the first of each."""
        networks = Networks.build(tiny=True)
        spec = env_spec(networks.agent.env_args)
        key = jax.random.split(jax.random.split(jax.random.PRNGKey(2))[0], 4)[0]
        sizes = (spec.obs_dim, spec.action_dim, spec.discrete)
        learner = init_learner(key, networks.agent.dreamer_config, *sizes)
        wanted = learner.world_model_state.params["enc"]
        found = networks.initial_encoder(2)
        self.assertEqual(jax.tree.structure(found), jax.tree.structure(wanted))
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(ours, theirs)

"""Ajax's probe of ``matched``: what it starts from and what it is given, at tiny widths."""

import unittest

import jax
import numpy as np
from ajax.agents.DreamerV3.learner import draw_train_noise

from ajax_side.networks import Networks
from ajax_side.probe_matched import context_batch, probe, sizes, start
from shared.errors import UserError
from shared.probes.matched_case import Case, draw_noise, of_text
from shared.probes.parameter_map import PAIRS, to_ajax
from shared.records.arrays import Arrays


def parameters(networks: Networks) -> Arrays:
    """The reference's tensors, every element another number."""
    shapes = networks.shapes()
    made = {}
    for index, pair in enumerate(PAIRS):
        shape = shapes[pair.ajax]
        wide = shape if pair.kept is None else (*shape[:-1], pair.kept + 1)
        made[pair.reference] = index + np.linspace(0, 0.5, int(np.prod(wide))).reshape(wide)
    return {name: each.astype(np.float32) for name, each in made.items()}


class Start(unittest.TestCase):
    def test_every_tensor_is_the_references_and_the_optimisers_are_new(self) -> None:
        networks = Networks.build(tiny=True)
        given = parameters(networks)
        learner = start(networks, networks.agent.dreamer_config, given)
        groups = {
            "world_model": learner.world_model_state.params,
            "actor": learner.actor_state.params,
            "critic": learner.critic_state.params,
            "slow_critic": learner.critic_state.target_params,
        }
        wanted = to_ajax(given, networks.shapes())
        found = jax.tree_util.tree_leaves_with_path(groups)
        self.assertEqual(len(found), len(wanted))
        for path, each in found:
            np.testing.assert_array_equal(each, wanted["/".join(part.key for part in path)])
        self.assertEqual(int(learner.world_model_state.step), 0)
        self.assertFalse(any(leaf.any() for leaf in jax.tree.leaves(learner.actor_state.opt_state)))


class Given(unittest.TestCase):
    def test_noise_has_the_shapes_that_ajax_draws(self) -> None:
        networks = Networks.build(tiny=True)
        config = networks.agent.dreamer_config
        own = draw_train_noise(jax.random.PRNGKey(0), config, 16, 64, 2, True)
        found = draw_noise(0, 0, sizes(networks, config))
        self.assertEqual(
            {name: each.shape for name, each in found.items()},
            {name: each.shape for name, each in own._asdict().items()},
        )

    def test_every_field_goes_to_its_place_and_actions_are_one_hot(self) -> None:
        rng = np.random.default_rng(0)
        batch = {
            "vector": rng.normal(size=(2, 3, 4)),
            "action": np.array([[0, 1, 1], [1, 0, 0]], np.int32),
            "deter": rng.normal(size=(2, 5)),
            "stoch": rng.integers(0, 9, (2, 6)),
            "reward": rng.normal(size=(2, 3)),
            "is_first": np.array([[1, 0, 0], [0, 0, 0]], bool),
            "is_last": np.array([[0, 0, 1], [0, 1, 0]], bool),
            "is_terminal": np.array([[0, 0, 0], [0, 1, 0]], bool),
        }
        found = context_batch(batch, 2)
        np.testing.assert_array_equal(found.action[0], [[1, 0], [0, 1], [0, 1]])
        places = {"obs": "vector", "context_deter": "deter", "context_stoch": "stoch"}
        places |= {name: name for name in ("reward", "is_first", "is_last", "is_terminal")}
        for place, name in places.items():
            np.testing.assert_array_equal(getattr(found, place), batch[name], err_msg=place)

    def test_a_case_without_runs_is_checked_only(self) -> None:
        def asked(**changes: str) -> Arrays:
            return probe(Case(True, 1, 0, (), changes, {}, {}).arrays())

        self.assertEqual(of_text(asked(lam="0.9", warmup="1001")["before"]),
                         {"lam": 0.95, "warmup": 1000})  # fmt: skip
        for changes, reason in (
            ({"lamda": "0.9"}, "has no lamda; did you mean lam"),
            ({"warmup": "soon"}, "give a value of type int"),
            ({"lam": "1.5"}, "Ajax's configuration refuses it: lam must be"),
            (
                {"units": "32"},
                r"--change ajax\.units=32: .* would be .* in place of .*, and the rec",
            ),
        ):
            with self.assertRaisesRegex(UserError, reason):
                asked(**changes)

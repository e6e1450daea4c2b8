"""The reference's probes of ``matched``: given noise is what its samples use, at tiny widths."""

import unittest
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from dreamerv3 import jaxutils
from dreamerv3 import ninjax as nj

from ref_side.forced_noise import forced
from ref_side.networks import Networks
from ref_side.probe_matched import probe, sizes, start, whole_batch
from ref_side.probe_record import rows_for
from shared.errors import UserError
from shared.probes.matched_case import CONTEXT, FIELDS, Case, draw_noise, networks_of
from shared.protocol import updates

SHAPES = {"posterior": (2, 3, 4, 5), "prior": (6, 7, 4, 5), "action": (6, 8, 2)}


def noise() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {name: rng.gumbel(size=each).astype(np.float32) for name, each in SHAPES.items()}


def logits(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(1).normal(size=shape), jnp.float32)


def loss(replayed: Any, imagined: Any, action: Any, *, first_action: bool = True) -> Any:
    """Samples as a training step does: both scans, and an action between them."""
    seed = jax.random.PRNGKey(0)

    def sample(given: Any) -> Any:
        return jaxutils.OneHotDist(given).sample(seed=seed)

    def observe(carry: Any, x: Any) -> Any:
        return carry, sample(x)

    def imagine(carry: Any, _: Any) -> Any:
        return carry, (sample(imagined), sample(action))

    def body() -> Any:
        _, seen = jaxutils.scan(observe, 0.0, replayed, axis=1)
        start_action = sample(action) if first_action else None
        _, dreamt = jaxutils.scan(imagine, 0.0, jnp.arange(7), False)
        return seen, start_action, dreamt

    return nj.pure(body)({}, seed=seed)[1]


class ForcedNoise(unittest.TestCase):
    """Against what tfp itself does with its noise."""

    def test_a_sample_is_the_stock_one_for_the_noise_that_the_stock_one_drew(self) -> None:
        used = []
        gumbel = jax.random.gumbel

        def spy(key: Any, shape: Any, dtype: Any) -> Any:
            used.append(gumbel(key, shape, dtype))
            return used[-1]

        given = logits(2, 3, 4, 5)
        with patch.object(jax.random, "gumbel", spy):
            stock = jaxutils.OneHotDist(given).sample(seed=jax.random.PRNGKey(3))
        self.assertEqual(len(used), 1)
        own = {**noise(), "posterior": np.asarray(used[0]).reshape(2, 3, 4, 5)}
        with forced(own):
            seen, *_ = loss(given, logits(6, 4, 5), logits(6, 2))
        np.testing.assert_array_equal(seen, stock)

    def test_every_sample_gets_its_own_slice(self) -> None:
        given, replayed = noise(), logits(2, 3, 4, 5)
        imagined, action = logits(6, 4, 5), logits(6, 2)
        with forced(given):
            seen, first, (latents, actions) = loss(replayed, imagined, action)
        wanted = np.argmax(replayed + given["posterior"], -1)
        np.testing.assert_array_equal(np.argmax(seen, -1), wanted)
        np.testing.assert_array_equal(
            np.argmax(first, -1), np.argmax(action + given["action"][:, 0], -1)
        )
        for step in range(7):
            np.testing.assert_array_equal(
                np.argmax(latents[step], -1), np.argmax(imagined + given["prior"][:, step], -1)
            )
            np.testing.assert_array_equal(
                np.argmax(actions[step], -1),
                np.argmax(action + given["action"][:, step + 1], -1),
            )

    def test_samples_are_straight_through_as_the_stock_ones(self) -> None:
        action = logits(6, 2)

        def total(values: Any) -> Any:
            with forced(noise()):
                return (loss(logits(2, 3, 4, 5), logits(6, 4, 5), values)[1] ** 2).sum()

        def stock(values: Any) -> Any:
            sample = jaxutils.OneHotDist(values).sample(seed=jax.random.PRNGKey(0))
            chosen = jnp.argmax(action + noise()["action"][:, 0], -1)
            probabilities = jax.nn.softmax(values)
            wanted = (
                jax.nn.one_hot(chosen, 2) + probabilities - jax.lax.stop_gradient(probabilities)
            )
            return (wanted**2).sum() + 0 * sample.sum()

        np.testing.assert_allclose(jax.grad(total)(action), jax.grad(stock)(action), rtol=1e-5)

    def test_another_number_of_samples_is_refused(self) -> None:
        given = (logits(2, 3, 4, 5), logits(6, 4, 5), logits(6, 2))
        with self.assertRaisesRegex(RuntimeError, "left over: action"), forced(noise()):
            loss(*given, first_action=False)
        with self.assertRaisesRegex(RuntimeError, "no noise for 1 samples"), forced(noise()):
            loss(logits(2, 3, 4, 6), *given[1:])

    def test_nothing_stays_replaced(self) -> None:
        before = jaxutils.scan, jaxutils.OneHotDist._sample_n
        with forced(noise()):
            self.assertIsNot(jaxutils.scan, before[0])
            loss(logits(2, 3, 4, 5), logits(6, 4, 5), logits(6, 2))
        self.assertEqual((jaxutils.scan, jaxutils.OneHotDist._sample_n), before)
        self.assertNotIn("_sample_n", vars(jaxutils.OneHotDist))


class Start(unittest.TestCase):
    def test_given_networks_replace_the_agents_own(self) -> None:
        networks = Networks(tiny=True)
        own = jax.jit(networks.initial)(np.zeros(2, np.uint32))
        given = {name: each + 1 for name, each in networks_of(own).items()}
        state = start(networks, given)
        self.assertEqual(state.keys(), own.keys())
        for name, each in state.items():
            wanted = given.get(name, own[name])
            for ours, theirs in zip(jax.tree.leaves(each), jax.tree.leaves(wanted), strict=True):
                np.testing.assert_array_equal(ours, theirs)
        small = {name: each[..., :1] for name, each in given.items()}
        with self.assertRaisesRegex(UserError, "change no setting that decides a size"):
            start(networks, small)

    def test_changed_settings_reach_the_agent(self) -> None:
        networks = Networks(tiny=True, changes={"opt.agc": "0.1", "retnorm.rate": "0.02"})
        self.assertEqual(networks.agent.config.opt.agc, 0.1)
        self.assertEqual(networks.agent.retnorm.rate, 0.02)
        self.assertEqual(networks.stock.opt.agc, 0.3)
        with self.assertRaisesRegex(UserError, r"has no opt\.acg; did you mean opt\.agc"):
            Networks(tiny=True, changes={"opt.acg": "0.1"})

    def test_a_setting_that_decides_a_size_is_refused_before_anything_runs(self) -> None:
        case = Case(True, 1, 0, (), {"critic.units": "32"}, {}, {})
        reason = r"--change reference\.critic\.units=32: agent/critic/.* in place of"
        with self.assertRaisesRegex(UserError, reason):
            probe(case.arrays())


class Batches(unittest.TestCase):
    def test_a_batch_is_whole_again(self) -> None:
        networks = Networks(tiny=True)
        batch = {name: np.ones_like(networks.blank[name]) for name in FIELDS}
        batch |= {name: 1 + networks.blank[name][:, 0] for name in CONTEXT}
        whole = whole_batch(networks, batch)
        self.assertEqual(
            {name: (each.shape, each.dtype) for name, each in whole.items()},
            {name: (each.shape, each.dtype) for name, each in networks.blank.items()},
        )
        for name in CONTEXT:
            np.testing.assert_array_equal(whole[name][:, 0], 1)
            self.assertFalse(whole[name][:, 1:].any())
        self.assertFalse(networks.blank["deter"].any())

    def test_sizes_are_those_of_a_training_step(self) -> None:
        found = sizes(Networks(tiny=True).config)
        self.assertEqual(draw_noise(0, 0, found)["posterior"].shape, (16, 64, 32, 4))
        self.assertEqual(draw_noise(0, 0, found)["action"].shape, (1024, 16, 2))

    def test_rows_of_a_recording_hold_its_updates(self) -> None:
        for wanted in (1, 2, 9, 200, 1500):
            self.assertGreaterEqual(updates(rows_for(wanted)), wanted)
            self.assertLess(updates(rows_for(wanted) - 16), wanted)

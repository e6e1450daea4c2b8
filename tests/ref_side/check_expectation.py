"""The two forms of the two-hot expectation, at the reference's own head (protocol section 8)."""

import unittest
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dreamerv3 import jaxutils, nets
from dreamerv3 import ninjax as nj

from ref_side.arms import exact_mean

BATCH, BINS = 2048, 255


def head_bins() -> Any:
    """The bins of the reference's reward and critic heads, from the head itself."""

    def bins(inputs: Any) -> Any:
        return nets.Dist((), "symexp_twohot", bins=BINS, outscale=0.0, name="head")(inputs).bins

    inputs = jnp.zeros((1, 8))
    parameters = nj.init(bins)({}, inputs, seed=np.zeros(2, np.uint32))
    return nj.pure(bins)(parameters, inputs, seed=np.zeros(2, np.uint32))[1]


class Expectation(unittest.TestCase):
    """Both forms under jit, against float64."""

    bins: Any
    literal: Callable[[Any], Any]
    exact: Callable[[Any], Any]

    @classmethod
    def setUpClass(cls) -> None:
        cls.bins = head_bins()

        def under_jit(mean: Callable[[Any], Any]) -> Callable[[Any], Any]:
            compiled = jax.jit(lambda logits: mean(jaxutils.TwoHotDist(logits, cls.bins)))
            return lambda logits: np.asarray(compiled(jnp.asarray(logits, jnp.float32)))

        cls.literal = staticmethod(under_jit(jaxutils.TwoHotDist.mean))
        cls.exact = staticmethod(under_jit(exact_mean))

    def in_double(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expectation and expected magnitude of the bins in float64, pairs summed first."""
        wide = logits.astype(np.float32).astype(np.float64)
        weights = np.exp(wide - wide.max(-1, keepdims=True))
        probabilities = weights / weights.sum(-1, keepdims=True)
        bins = np.asarray(self.bins, np.float64)
        terms = probabilities * bins
        return (terms + terms[..., ::-1]).sum(-1) / 2, np.abs(terms).sum(-1)

    def test_the_bins_are_255_and_mirror_symmetric(self) -> None:
        bins = np.asarray(self.bins)
        self.assertEqual(bins.shape, (BINS,))
        np.testing.assert_array_equal(bins, -bins[::-1])
        self.assertEqual(bins[BINS // 2], 0)
        self.assertAlmostEqual(bins[-1] / 4.85e8, 1, places=3)

    def test_the_exact_form_is_zero_at_zero_logits(self) -> None:
        np.testing.assert_array_equal(self.exact(np.zeros((BATCH, BINS))), np.zeros(BATCH))

    def test_the_literal_form_is_not(self) -> None:
        value = self.literal(np.zeros((BATCH, BINS)))
        self.assertGreater(np.abs(value).max(), 0.01)
        self.assertLess(np.abs(value).max(), 0.5)

    def test_on_mirrored_logits_only_the_literal_form_is_noise(self) -> None:
        half = np.random.default_rng(0).normal(0, 1e-4, (BATCH, BINS // 2))
        middle = np.zeros((BATCH, 1))
        logits = np.concatenate([half, middle, half[:, ::-1]], -1)
        truth, _ = self.in_double(logits)
        self.assertLess(np.abs(self.exact(logits) - truth).max(), 1e-6)
        spread = (self.literal(logits) - truth).std()
        self.assertGreater(spread, 0.05)
        self.assertLess(spread, 0.15)

    def test_on_random_logits_both_stay_within_rounding(self) -> None:
        epsilon = np.finfo(np.float32).eps
        for scale in (1e-4, 1e-2, 1.0, 3.0):
            logits = np.random.default_rng(1).normal(0, scale, (BATCH, BINS))
            truth, magnitude = self.in_double(logits)
            # A logit's distance from the largest is rounded by half an epsilon of itself, and exp
            # makes that a relative error; exp, two sums and a product add a few more.
            allowed = (3 + np.ptp(logits, -1) / 2) * epsilon * magnitude
            for form in (self.literal, self.exact):
                with self.subTest(scale=scale, form=form):
                    error = np.abs(form(logits) - truth)
                    self.assertLessEqual((error / allowed).max(), 1)

    def test_both_forms_agree_where_the_answer_is_large(self) -> None:
        logits = np.zeros((BINS - 130, BINS))
        logits[np.arange(BINS - 130), np.arange(130, BINS)] = 60.0
        np.testing.assert_allclose(self.exact(logits), self.bins[130:], rtol=1e-6)
        np.testing.assert_allclose(self.literal(logits), self.bins[130:], rtol=1e-6)

    def test_gradients_of_both_forms_agree(self) -> None:
        logits = np.random.default_rng(2).normal(0, 1, (4, BINS)).astype(np.float32)
        # Small bins: the outer ones would drown the rest in either form.
        bins = jnp.linspace(-1, 1, BINS, dtype=jnp.float32)

        def gradient(mean: Callable[[Any], Any]) -> np.ndarray:
            total = jax.grad(lambda x: mean(jaxutils.TwoHotDist(x, bins)).sum())
            return np.asarray(total(jnp.asarray(logits)))

        np.testing.assert_allclose(
            gradient(exact_mean), gradient(jaxutils.TwoHotDist.mean), atol=1e-7
        )

"""The two forms of the expectation at the head, under jit (protocol section 8)."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from ajax.distributional import TwoHot

from ajax_side.expectation import literal_decode

N_PREDICTIONS = 4096
EPSILON = float(np.finfo(np.float32).eps)
HEAD = TwoHot.dreamerv3()
BINS = np.asarray(HEAD.bins(), np.float64)

exact = jax.jit(HEAD.decode)
literal = jax.jit(lambda logits: literal_decode(HEAD, logits))


def in_double(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Expectation of the bins, and of their magnitudes, in float64 from float32 logits."""
    wide = np.asarray(logits, np.float64)
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    # Mirror pairs are added first: a plain sum over +-4.85e8 would lose the result.
    half = BINS.size // 2
    mean = (weights[..., half + 1 :] - weights[..., :half][..., ::-1]) @ BINS[half + 1 :]
    return mean, weights @ np.abs(BINS)


def mirror_symmetric(scale: float) -> np.ndarray:
    draws = np.random.default_rng(0).normal(size=(N_PREDICTIONS, 128)) * scale
    return np.concatenate([draws, draws[:, -2::-1]], axis=-1).astype(np.float32)


class Expectations(unittest.TestCase):
    def test_bins_are_the_protocols(self) -> None:
        self.assertEqual((BINS.size, BINS[127]), (255, 0.0))
        self.assertAlmostEqual(BINS[-1] / 4.85e8, 1.0, places=2)
        np.testing.assert_array_equal(BINS, -BINS[::-1])

    def test_exact_form_is_zero_at_zero_logits(self) -> None:
        zeros = jnp.zeros((N_PREDICTIONS, 255))
        np.testing.assert_array_equal(exact(zeros), 0.0)

    def test_literal_form_is_off_at_zero_logits_only_when_fused(self) -> None:
        zeros = jnp.zeros((N_PREDICTIONS, 255))
        constant = np.asarray(literal(zeros))
        self.assertEqual(np.unique(constant).size, 1)
        self.assertTrue(0.01 < abs(constant[0]) < 0.5, constant[0])
        with jax.disable_jit():
            np.testing.assert_array_equal(literal_decode(HEAD, zeros[:4]), 0.0)

    def test_mirror_symmetric_logits(self) -> None:
        logits = mirror_symmetric(1e-4)
        mean, _ = in_double(logits)
        self.assertLess(np.abs(exact(logits) - mean).max(), 1e-6)
        noise = float(np.std(literal(logits) - mean))
        self.assertTrue(0.05 < noise < 0.15, noise)

    def test_random_logits_stay_within_softmax_rounding(self) -> None:
        for scale in (1e-4, 1.0):
            logits = np.random.default_rng(1).normal(size=(N_PREDICTIONS, 255)) * scale
            logits = logits.astype(np.float32)
            mean, magnitude = in_double(logits)
            for form in (exact, literal):
                error = np.abs(np.asarray(form(logits), np.float64) - mean)
                self.assertLess((error / (3 * EPSILON * magnitude)).max(), 1.0)

    def test_the_two_forms_agree_where_nothing_cancels(self) -> None:
        logits = np.full((1, 255), -40.0, np.float32)
        logits[0, 200] = 40.0
        np.testing.assert_allclose(exact(logits), BINS[200], rtol=1e-6)
        np.testing.assert_allclose(literal(logits), BINS[200], rtol=1e-6)

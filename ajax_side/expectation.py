"""The reference's form of the two-hot expectation (protocol section 8, D22), for Ajax's head."""

from typing import Any

import jax
import jax.numpy as jnp


def literal_expectation(logits: jax.Array, bins: jax.Array) -> jax.Array:
    """Expectation ``[...]`` of ``bins [n]`` under ``softmax(logits [..., n])``, ``n`` odd, float32.

    The middle term plus the sum over mirror pairs ``(i, j)`` of ``p_i b_i + p_j b_j``. The order
    of operations is the reference's, because it decides what XLA fuses: both halves are
    multiplied by their bins, the lower products are mirrored, and the pairs are added before
    the sum. XLA then contracts ``mirrored + p_j * b_j`` into one fused multiply-add, which
    rounds one product of each pair and not the other: that is the noise of D22.
    """
    middle = logits.shape[-1] // 2
    probabilities = jax.nn.softmax(logits, axis=-1)
    weighted_below = probabilities[..., :middle] * bins[:middle]
    weighted_middle = probabilities[..., middle : middle + 1] * bins[middle : middle + 1]
    weighted_above = probabilities[..., middle + 1 :] * bins[middle + 1 :]
    pairs = jnp.flip(weighted_below, axis=-1) + weighted_above
    return weighted_middle.sum(axis=-1) + pairs.sum(axis=-1)


def literal_decode(self: Any, logits: jax.Array) -> jax.Array:
    """Stands in for ``TwoHot.decode``: scalars ``[...]`` from logits ``[..., num_bins]``."""
    mean = literal_expectation(jnp.asarray(logits, jnp.float32), self.bins())
    return self._inverse(mean)  # the identity on DreamerV3's bins

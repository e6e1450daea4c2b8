"""Given noise in place of the reference's own draws, inside its own traced training step.

A training step samples latents in two scans (posterior, imagination) and actions in one of them
and before it. Two names are replaced while it is traced: ``jaxutils.scan``, so that each step of a
scan gets its slice of the noise, and the draw below ``OneHotDist.sample``, which is Gumbel's: the
largest logit plus noise. What the sample is made of it (straight-through) stays the reference's.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from dreamerv3 import jaxutils

_SCAN = jaxutils.scan
#: Axis of time of the two scans of a training step: that over a replayed batch, and imagination.
_REPLAYED, _IMAGINED = 1, 0


@contextmanager
def forced(noise: Mapping[str, Any]) -> Iterator[None]:
    """While this lasts, traced samples use ``noise`` as :mod:`shared.probes.matched_case` has it.

    Raises ``RuntimeError`` at the end of a step that took another number of samples, or samples of
    another shape, than the noise is for.
    """
    feed = _Feed(noise)

    def scan(
        body: Callable[..., Any], carry: Any, xs: Any, unroll: Any = False, axis: int = 0
    ) -> Any:
        def step(carry: Any, inputs: Any) -> Any:
            x, given = inputs
            with feed.step(given):
                return body(carry, x)

        return _SCAN(step, carry, (xs, feed.of_scan(axis)), unroll, axis)

    def draw(self: Any, n: int, seed: Any = None) -> Any:
        del seed
        return feed.draw(self.logits_parameter(), n)

    jaxutils.scan = scan
    # What it inherits is not touched.
    jaxutils.OneHotDist._sample_n = draw
    try:
        yield
        feed.check_used()
    finally:
        jaxutils.scan = _SCAN
        del jaxutils.OneHotDist._sample_n


class _Feed:
    """Hands out every piece of the noise once: to ``latent`` and ``action`` samples of a step."""

    def __init__(self, noise: Mapping[str, Any]) -> None:
        swapped = {name: jnp.swapaxes(noise[name], 0, 1) for name in ("prior", "action")}
        self._of_scan = {
            _REPLAYED: {"latent": noise["posterior"]},
            _IMAGINED: {"latent": swapped["prior"], "action": swapped["action"][1:]},
        }
        self._start = {"action": swapped["action"][0]}
        self._left: dict[str, Any] = {}

    def of_scan(self, axis: int) -> dict[str, Any]:
        """Noise of all steps of a scan, time on ``axis``."""
        if axis == _REPLAYED:
            # The loss begins with this scan, and samples the first action after it. It is traced
            # more than once.
            self._left = dict(self._start)
        return self._of_scan[axis]

    @contextmanager
    def step(self, given: dict[str, Any]) -> Iterator[None]:
        """Samples inside are those of one step of a scan."""
        outside, self._left = self._left, dict(given)
        yield
        self.check_used()
        self._left = outside

    def draw(self, logits: Any, n: int) -> Any:
        """One-hot samples ``[1, ..., classes]`` for ``logits [..., classes]``."""
        kind = "latent" if logits.ndim > 2 else "action"
        noise = self._left.pop(kind, None)
        if noise is None or noise.shape != logits.shape or n != 1:
            raise RuntimeError(f"no noise for {n} samples of {kind} logits {logits.shape}")
        return jax.nn.one_hot(jnp.argmax(logits + noise, -1), logits.shape[-1])[None]

    def check_used(self) -> None:
        if self._left:
            raise RuntimeError(f"noise was left over: {', '.join(self._left)}")

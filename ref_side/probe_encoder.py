"""The reference's initial encoder over many seeds, its parameters, and what its networks compute.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ref_side.cartpole import CartPole
from ref_side.networks import Networks
from shared.probes.encoder_case import BATCH, INITIAL, LENGTH, SHAKEN, STATES, shake, states
from shared.probes.parameter_map import is_network
from shared.protocol import N_ACTIONS
from shared.records.arrays import Arrays, above

_ENCODER = "agent/enc/"


def observations(batch: int, length: int) -> Any:
    """CartPole under a random policy, a new episode after each end: ``[batch, length, 4]``."""
    rng = np.random.default_rng(0)

    def rows() -> Iterator[Any]:
        while True:
            pole = CartPole.reset(rng)
            yield pole.state.copy()
            ended = False
            while not ended:
                step = pole.step(int(rng.integers(N_ACTIONS)))
                ended = step.terminated or step.truncated
                yield step.observation

    return np.stack([[row for row, _ in zip(rows(), range(length))] for _ in range(batch)])  # noqa: B905


def magnitudes(networks: Networks, seeds: Any, seen: Any) -> Any:
    """Mean absolute encoder output of freshly initialised agents, ``[seeds]``."""

    def magnitude(seed: Any) -> Any:
        drawn = networks.initial(seed)
        encoder = {name: each for name, each in drawn.items() if name.startswith(_ENCODER)}
        return jnp.abs(networks.embedding(encoder, seen)).mean()

    pairs = np.stack([seeds, np.zeros_like(seeds)], -1).astype(np.uint32)
    return np.asarray(jax.jit(jax.vmap(magnitude))(pairs))


def probe(arrays: Arrays) -> Arrays:
    """``magnitude [seeds]``, the inputs it made, and parameters and outputs of the first seed.

    Reads ``seeds [seeds]`` and ``tiny []``. Parameters lie below ``<set>/parameters``, outputs
    below ``<set>/outputs``.
    """
    networks = Networks(tiny=bool(arrays["tiny"]))
    seen = observations(BATCH, LENGTH)
    rssm = networks.config.dyn.rssm
    given = states(rssm.deter, rssm.stoch, rssm.classes, N_ACTIONS)
    given["observation"] = seen.reshape(-1, seen.shape[-1])[:: BATCH * LENGTH // STATES][:STATES]
    found = {
        "observations": seen,
        "magnitude": magnitudes(networks, arrays["seeds"], seen),
        **above(given, "given"),
    }
    compute: Callable[[Any, Any], Any] = jax.jit(networks.outputs)
    drawn = jax.jit(networks.initial)(np.array([arrays["seeds"][0], 0], np.uint32))
    initial = {name: np.asarray(each) for name, each in drawn.items() if is_network(name)}
    for name, parameters in ((INITIAL, initial), (SHAKEN, shake(initial))):
        found |= above(parameters, f"{name}/parameters")
        computed = compute(parameters, given)
        found |= above({key: np.asarray(each) for key, each in computed.items()}, f"{name}/outputs")
    return found

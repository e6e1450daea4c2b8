"""Ajax's initial encoder over many seeds, and what its networks compute from given parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import unflatten_dict

from ajax_side.networks import Networks
from shared.probes.encoder_case import INITIAL, SHAKEN
from shared.probes.parameter_map import to_ajax
from shared.records.arrays import Arrays, above, below


def magnitudes(networks: Networks, seeds: Any, observations: Any) -> Any:
    """Mean absolute encoder output of freshly initialised agents, ``[seeds]``."""

    def magnitude(seed: Any) -> Any:
        world_model = {"enc": networks.initial_encoder(seed)}
        return jnp.abs(networks.embedding(world_model, observations)).mean()

    return np.asarray(jax.jit(jax.vmap(magnitude))(jnp.asarray(seeds)))


def probe(arrays: Arrays) -> Arrays:
    """``magnitude [seeds]``, tensors filled, and outputs from the reference's parameters.

    Reads ``seeds``, ``tiny`` and what the reference's probe of this name found. Outputs lie
    below ``<set>/outputs``; ``parameters []`` counts Ajax's optimised parameters.
    """
    networks = Networks.build(tiny=bool(arrays["tiny"]))
    shapes = networks.shapes()
    sizes = {name: int(np.prod(shape)) for name, shape in shapes.items()}
    optimised = sum(size for name, size in sizes.items() if not name.startswith("slow_critic/"))
    found: Arrays = {
        "magnitude": magnitudes(networks, arrays["seeds"], arrays["observations"]),
        "parameters": np.asarray(optimised),
        "tensors": np.asarray(len(shapes)),
    }
    given, compute = below(arrays, "given"), jax.jit(networks.outputs)
    for name in (INITIAL, SHAKEN):
        filled = to_ajax(below(arrays, f"{name}/parameters"), shapes)
        computed = compute(unflatten_dict(filled, sep="/"), given)
        found |= above({key: np.asarray(each) for key, each in computed.items()}, f"{name}/outputs")
    return found

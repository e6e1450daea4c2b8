"""The reference's own training step on recorded batches, with given noise, update by update.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dreamerv3 import jaxutils
from dreamerv3 import ninjax as nj

from ref_side.arms import patch_code
from ref_side.forced_noise import forced
from ref_side.networks import Networks
from shared.errors import UserError
from shared.metrics import REFERENCE_TO_AJAX
from shared.probes.changes import check_sizes
from shared.probes.matched_case import (
    CONTEXT,
    NORMALISER,
    SLOW_DISTANCE,
    Case,
    Run,
    Sizes,
    arm_of,
    as_text,
    follow,
)
from shared.probes.parameter_map import is_network
from shared.protocol import N_ACTIONS, Form
from shared.records.arrays import Arrays, above

State = dict[str, Any]
#: A training step ``(state, batch, noise) -> (state, metrics)``, and the figures of a state.
Programs = tuple[Callable[..., Any], Callable[[Any], Any]]

_STOCK_MEAN = jaxutils.TwoHotDist.mean
#: All that a training step draws without given noise: the samples of ``*/dist``, which are dropped.
_SEED = np.zeros(2, np.uint32)


def probe(arrays: Arrays) -> Arrays:
    """``<run>/<metric> [updates]`` of every run of a ``shared.probes.matched_case.Case``.

    Besides ``<run>/digest/...`` of what it was given, and ``before``, the stock values of what the
    case changes. A case without runs is only checked. Raises ``UserError`` for a change that the
    configuration does not allow.
    """
    case = Case.of(arrays)
    networks = Networks(tiny=case.tiny, changes=case.changes)
    if not case.runs:
        stock = Networks(tiny=case.tiny)
        check_sizes("reference", case.changes, shapes(stock), shapes(networks))
    found = {"before": as_text({key: networks.stock.flat[key] for key in case.changes})}
    programs: dict[Form, Programs] = {}
    for run in case.runs:
        jaxutils.TwoHotDist.mean = _STOCK_MEAN
        patch_code(arm_of("reference", run.form), jaxutils)
        if run.form not in programs:
            programs[run.form] = _compiled(networks)
        found |= above(train(networks, case, run, programs[run.form]), run.name)
    return found


def train(networks: Networks, case: Case, run: Run, programs: Programs) -> Arrays:
    """Metrics ``[updates]`` of one run, and what it was given."""
    own_step, figures = programs

    def step(state: State, batch: Arrays, noise: Arrays) -> tuple[State, State]:
        state, metrics = own_step(state, whole_batch(networks, batch), noise)
        return state, jax.device_get({**metrics, **figures(state)})

    state = start(networks, case.start_of(run))
    return follow(case, run, sizes(networks.config), state, step)


def sizes(config: Any) -> Sizes:
    """Axes of a training step."""
    rssm = config.dyn.rssm
    length = config.batch_length - config.replay_context
    return Sizes(config.batch_size, length, config.imag_length, rssm.stoch, rssm.classes, N_ACTIONS)


def shapes(networks: Networks) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor of the networks, by the reference's names."""
    initial = jax.eval_shape(networks.initial, _SEED)
    return {name: each.shape for name, each in initial.items() if is_network(name)}


def start(networks: Networks, parameters: Mapping[str, Any]) -> State:
    """The agent's own initial state, counters and optimiser included, with these networks in it."""
    state: State = dict(jax.jit(networks.initial)(_SEED))
    own = {name: each.shape for name, each in state.items() if is_network(name)}
    given = {name: each.shape for name, each in parameters.items()}
    if own != given:
        name = min(name for name in own.keys() | given if own.get(name) != given.get(name))
        raise UserError(
            f"the recording's {name} is {given.get(name)}, the reference's {own.get(name)}: change "
            "no setting that decides a size"
        )
    return state | {name: jnp.array(each) for name, each in parameters.items()}


def whole_batch(networks: Networks, batch: Arrays) -> State:
    """A batch as the replay would give it: latents of row 0, zeros where nothing is read."""
    data = {name: each.copy() for name, each in networks.blank.items()}
    for name, each in batch.items():
        if name in CONTEXT:
            data[name][:, 0] = each
        else:
            data[name] = each
    return data


def _compiled(networks: Networks) -> Programs:
    agent = networks.agent
    carry = nj.pure(agent.init_train)({}, networks.config.batch_size, seed=_SEED)[1]

    # Functions of this call: jax keeps what it compiled by function.
    def step(state: State, data: Any, noise: Any, seed: Any) -> Any:
        with forced(noise):
            state, (outs, carried, metrics) = nj.pure(agent.train)(state, data, carry, seed=seed)
        # All that the stock program returns is computed: what is fused depends on it.
        return state, outs, carried, metrics

    def figures(state: State) -> State:
        squares = (
            jnp.square(each - state[name.replace("/critic/", "/slowcritic/")]).sum()
            for name, each in state.items()
            if name.startswith("agent/critic/")
        )
        bounds = (state[f"agent/retnorm/{name}/value"] for name in ("low", "high"))
        return {
            SLOW_DISTANCE: jnp.sqrt(sum(squares)),
            **dict(zip(NORMALISER, bounds, strict=True)),
        }

    compiled = jax.jit(step)

    def run(state: State, data: Any, noise: Any) -> tuple[State, State]:
        state, _, _, metrics = compiled(state, data, noise, _SEED)
        return state, {name: each for name, each in metrics.items() if name in REFERENCE_TO_AJAX}

    return run, jax.jit(figures)

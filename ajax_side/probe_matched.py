"""Ajax's own training step on recorded batches, with given noise, update by update."""

import importlib
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from ajax.agents.DreamerV3.learner import LearnerState, TrainNoise, train_step
from ajax.agents.DreamerV3.networks import encode_action
from ajax.agents.DreamerV3.world_model import ReplayContextBatch
from flax.traverse_util import unflatten_dict

from ajax_side.arms import apply_arm
from ajax_side.networks import Networks
from shared.errors import UserError
from shared.metrics import AJAX_TO_REFERENCE
from shared.probes.changes import changed_values, check_sizes
from shared.probes.matched_case import (
    NORMALISER,
    SLOW_DISTANCE,
    Case,
    Run,
    Sizes,
    arm_of,
    as_text,
    follow,
)
from shared.probes.parameter_map import to_ajax
from shared.protocol import Form
from shared.records.arrays import Arrays, above

_TWO_HOT = importlib.import_module("ajax.distributional").TwoHot
_STOCK_DECODE = _TWO_HOT.decode
#: A training step ``(state, batch, noise) -> (state, metrics)``, and the figures of a state.
Programs = tuple[Callable[..., Any], Callable[[Any], Any]]


def probe(arrays: Arrays) -> Arrays:
    """``<run>/<metric> [updates]`` of every run of a ``shared.probes.matched_case.Case``.

    Metrics have the reference's names. Besides ``<run>/digest/...`` of what it was given, and
    ``before``, the stock values of what the case changes. A case without runs is only checked.
    Raises ``UserError`` for a change that the configuration does not allow.
    """
    case = Case.of(arrays)
    networks = Networks.build(tiny=case.tiny)
    stock = networks.agent.dreamer_config
    current = asdict(stock)
    values = changed_values("ajax", current, case.changes)
    try:
        config = replace(stock, **values)
    except ValueError as error:
        raise UserError(f"--change: Ajax's configuration refuses it: {error}") from None
    if not case.runs:
        check_sizes("ajax", case.changes, networks.shapes(), networks.shapes(config))
    found = {"before": as_text({key: current[key] for key in case.changes})}
    programs: dict[Form, Programs] = {}
    for run in case.runs:
        _TWO_HOT.decode = _STOCK_DECODE
        apply_arm(arm_of("ajax", run.form))
        if run.form not in programs:
            programs[run.form] = _compiled(config)
        found |= above(train(networks, config, case, run, programs[run.form]), run.name)
    return found


def train(networks: Networks, config: Any, case: Case, run: Run, programs: Programs) -> Arrays:
    """Metrics ``[updates]`` of one run, and what it was given."""
    actions = networks.actions
    own_step, figures = programs

    def step(state: LearnerState, batch: Arrays, noise: Arrays) -> tuple[Any, dict[str, Any]]:
        state, metrics = own_step(state, context_batch(batch, actions), TrainNoise(**noise))
        found = jax.device_get({**metrics, **figures(state)})
        return state, {AJAX_TO_REFERENCE.get(name, name): each for name, each in found.items()}

    state = start(networks, config, case.start_of(run))
    return follow(case, run, sizes(networks, config), state, step)


def sizes(networks: Networks, config: Any) -> Sizes:
    """Axes of a training step."""
    agent = networks.agent.agent_config
    return Sizes(
        *(agent.batch_size, agent.batch_length, config.imag_horizon),
        *(config.stoch, config.classes, networks.actions),
    )


def start(networks: Networks, config: Any, parameters: Arrays) -> LearnerState:
    """Ajax's own initial learner, optimisers included, with the reference's parameters in it."""
    learner = networks.learner(config)
    filled = unflatten_dict(to_ajax(parameters, networks.shapes(config)), sep="/")

    def like(own: Any, given: Any) -> Any:
        return jax.tree.map(lambda _, each: jnp.array(each), own, given)

    critic = learner.critic_state
    return learner.replace(
        world_model_state=learner.world_model_state.replace(
            params=like(learner.world_model_state.params, filled["world_model"])
        ),
        actor_state=learner.actor_state.replace(
            params=like(learner.actor_state.params, filled["actor"])
        ),
        critic_state=critic.replace(
            params=like(critic.params, filled["critic"]),
            target_params=like(critic.target_params, filled["slow_critic"]),
        ),
    )


def context_batch(batch: Arrays, actions: int) -> ReplayContextBatch:
    """A recorded batch as Ajax's replay gathers it."""
    return ReplayContextBatch(
        obs=batch["vector"],
        action=encode_action(batch["action"], actions),
        reward=batch["reward"],
        is_first=batch["is_first"],
        is_last=batch["is_last"],
        is_terminal=batch["is_terminal"],
        context_deter=batch["deter"],
        context_stoch=batch["stoch"],
    )


def _compiled(config: Any) -> Programs:
    # Functions of this call: jax keeps what it compiled by function.
    def step(state: LearnerState, batch: Any, noise: TrainNoise) -> Any:
        return train_step(state, batch, noise, config=config)

    def figures(state: LearnerState) -> dict[str, Any]:
        critic = state.critic_state
        apart = jax.tree.map(jnp.subtract, critic.params, critic.target_params)
        bounds = (state.retnorm.lo, state.retnorm.hi)
        return {
            SLOW_DISTANCE: optax.global_norm(apart),
            **dict(zip(NORMALISER, bounds, strict=True)),
        }

    compiled = jax.jit(step)

    def run(state: LearnerState, batch: Any, noise: TrainNoise) -> tuple[Any, Any]:
        # The latents that would be written back to the replay are computed as in training.
        state, _, metrics = compiled(state, batch, noise)
        return state, metrics

    return run, jax.jit(figures)

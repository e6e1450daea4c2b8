"""Ajax's agent, its resolved configuration, the one training call, and what is left after it."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from ajax.agents.DreamerV3.DreamerV3 import DreamerV3
from ajax.logging.wandb_logging import LoggingConfig

from shared.configuration import ajax_resolved, widths
from shared.errors import UserError
from shared.protocol import N_ENVS

ENVIRONMENT, MODEL_SIZE = "CartPole-v1", "1m"


@dataclass(frozen=True)
class Plan:
    """The size of a run: seeds trained together, rows in all, rows between log points, episodes."""

    seeds: tuple[int, ...]
    rows: int
    every: int
    episodes: int
    tiny: bool


def build_agent(plan: Plan) -> Any:
    """``DreamerV3("CartPole-v1", model_size="1m")``, at tiny widths where the plan says so.

    Raises :class:`UserError` where it resolves to other values than the protocol's (section 3).
    """
    options = widths(tiny=True) if plan.tiny else {}
    agent = DreamerV3(ENVIRONMENT, model_size=MODEL_SIZE, **options)
    actual = {**asdict(agent.dreamer_config), **asdict(agent.agent_config)}
    for name, expected in ajax_resolved(tiny=plan.tiny).items():
        if actual.get(name) != expected:
            raise UserError(
                f"this Ajax resolves {name} to {actual.get(name)}, the protocol says {expected}: "
                "run the pinned release or the published commit"
            )
    if agent.env_args.n_envs != N_ENVS:
        raise UserError(f"this Ajax runs {agent.env_args.n_envs} environments, not {N_ENVS}")
    return agent


def describe(agent: Any, plan: Plan) -> dict[str, Any]:
    """The agent's part of ``config.json`` (protocol section 7)."""
    return {
        "constructor": {key: _plain(value) for key, value in agent.config.items()},
        "dreamer_config": asdict(agent.dreamer_config),
        "agent_config": asdict(agent.agent_config),
        "schedule": {
            "first_update_step": agent.schedule.first_update_step,
            "first_update_tick": agent.schedule.first_update_tick,
            "total_updates": agent.schedule.total_updates(plan.rows // N_ENVS),
        },
        "n_envs": agent.env_args.n_envs,
        # The call sizes its own ring; train() below compares it with this.
        "ring_rows": agent._ring_rows(plan.rows),
    }


def train(agent: Any, plan: Plan, ring_rows: int) -> tuple[Any, Mapping[str, np.ndarray]]:
    """One vmapped call over the plan's seeds: the final state, and every logged metric.

    Leaves of the state and metrics have a leading seed axis; metrics are ``[seeds, log points]``
    in the release. Returns when the computation and its callbacks are done.
    """
    logging = LoggingConfig(
        config={}, log_frequency=plan.every, use_wandb=False, use_tensorboard=False
    )
    state, metrics = agent.train(
        seed=list(plan.seeds),
        n_timesteps=plan.rows,
        num_episode_test=plan.episodes,
        logging_config=logging,
    )
    jax.block_until_ready(state)
    jax.effects_barrier()
    if agent.replay_rows_per_env != ring_rows:
        raise UserError(
            f"Ajax sized its replay ring to {agent.replay_rows_per_env} rows per environment, "
            f"config.json says {ring_rows}"
        )
    return state, {name: np.asarray(value) for name, value in metrics.items()}


def final_state(state: Any, seeds: Sequence[int]) -> bytes:
    """Content of ``ajax_final.npz``; every array has a leading seed axis, in ``seeds``' order.

    ``seeds``, ``rows``, ``updates``, ``retnorm_low``, ``retnorm_high``: ``[seeds]``. Rolling
    buffer of each environment's last training-episode returns: ``return_buffer``
    ``[seeds, slots, envs]``, ``return_count`` (filled slots), ``return_index`` (next slot to
    write) and ``return_sum``: ``[seeds, envs]``. S2 is the mean over environments of
    ``return_sum / return_count``.
    """
    returns = state.collector_state.episodic_return_state
    arrays = {
        "seeds": np.asarray(seeds),
        "rows": state.collector_state.timestep,
        "updates": state.n_updates,
        "retnorm_low": state.retnorm.lo,
        "retnorm_high": state.retnorm.hi,
        "return_buffer": np.asarray(returns.buffer)[..., 0],
        "return_count": np.asarray(returns.count)[..., 0],
        "return_index": np.asarray(returns.index)[..., 0],
        "return_sum": np.asarray(returns.sum)[..., 0],
    }
    content = io.BytesIO()
    plain = {name: np.asarray(value) for name, value in arrays.items()}
    np.savez(content, allow_pickle=False, **plain)
    return content.getvalue()


def _plain(value: Any) -> Any:
    """A constructor argument as JSON data; objects are named by their type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return type(value).__name__

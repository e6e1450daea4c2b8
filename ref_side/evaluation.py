"""Evaluation of the reference's agent (protocol section 6).

Fresh environments, one episode each, the sampled policy, the latest trained parameters. The jitted
functions are called directly, with a copy of the parameters: neither the agent's random stream nor
its pending parameter swap notices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from shared.protocol import EVALUATION_TAG, POLICY_TAG


@dataclass(frozen=True)
class Outcome:
    """Return and length of each evaluation episode, in the order of the environments."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]


def environment_rng(seed: int, index: int) -> np.random.Generator:
    """Reset stream of evaluation environment ``index``; the same at every evaluation."""
    return np.random.default_rng([seed, EVALUATION_TAG, index])


def evaluate(
    agent: Any,
    make_env: Callable[[np.random.Generator], Any],
    *,
    seed: int,
    episodes: int,
) -> Outcome:
    """One episode in each of ``episodes`` environments that ``make_env`` builds from a generator.

    ``agent`` is the reference's agent. A finished environment keeps its last observation, which
    the policy sees and whose action is ignored.
    """
    policy = _Policy(agent, seed, episodes)
    envs = [make_env(environment_rng(seed, index)) for index in range(episodes)]
    returns, lengths = np.zeros(episodes), np.zeros(episodes, int)
    rows = [env.step({"action": np.int32(0), "reset": True}) for env in envs]
    while not all(row["is_last"] for row in rows):
        actions = policy(rows)
        for index, env in enumerate(envs):
            if not rows[index]["is_last"]:
                rows[index] = env.step({"action": actions[index], "reset": False})
                returns[index] += rows[index]["reward"]
                lengths[index] += 1
    return Outcome(tuple(returns.tolist()), tuple(lengths.tolist()))


class _Policy:
    """The agent's sampling policy on a batch of environments, from a zero carry."""

    def __init__(self, agent: Any, seed: int, episodes: int) -> None:
        self._agent = agent
        self._rng = np.random.default_rng([seed, EVALUATION_TAG, POLICY_TAG])
        self._params = jax.device_put(
            {key: agent.params[key].copy() for key in agent.policy_keys}, agent.policy_mirrored
        )
        self._carry = agent._init_policy(self._params, self._seed(), episodes)

    def _seed(self) -> Any:
        limits = np.iinfo(np.uint32)
        seed = self._rng.integers(0, limits.max, 2, np.uint32)
        return jax.device_put(seed, self._agent.policy_sharded)

    def __call__(self, rows: list[dict[str, Any]]) -> Any:
        """Actions ``[environments]`` int32 for one row of each environment."""
        stacked = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
        observation = jax.device_put(
            {key: value for key, value in stacked.items() if key in self._agent.keys},
            self._agent.policy_sharded,
        )
        actions, _, self._carry = self._agent._policy(
            self._params, observation, self._carry, self._seed(), "eval"
        )
        return np.asarray(actions["action"])

"""Ajax's networks without its training loop: their parameters, and what they compute."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from ajax.agents.DreamerV3.distributions import OneHot
from ajax.agents.DreamerV3.learner import LearnerState, init_learner
from ajax.agents.DreamerV3.networks import (
    RSSM,
    Actor,
    RSSMState,
    WorldModel,
    features,
    make_critic,
)
from ajax.agents.DreamerV3.replay import StreamReplay
from ajax.agents.DreamerV3.train_DreamerV3 import env_spec, init_dreamer
from flax.traverse_util import flatten_dict

from ajax_side.training import Plan, build_agent

#: The size of a run matters to nothing that is computed here.
_ROWS = 1600


@dataclass(frozen=True)
class Networks:
    """Ajax's networks at the protocol's configuration; ``agent`` is the real ``DreamerV3``."""

    agent: Any

    @classmethod
    def build(cls, *, tiny: bool) -> "Networks":
        """The agent of a run, as ``ajax_side.training`` builds it."""
        return cls(build_agent(Plan((0,), _ROWS, 400, 2, tiny)))

    @property
    def _spec(self) -> Any:
        return env_spec(self.agent.env_args)

    @property
    def actions(self) -> int:
        """Number of actions, which are one-hot vectors of this size."""
        return int(self._spec.action_dim)

    def learner(self, config: Any = None) -> LearnerState:
        """A new learner, optimisers included; ``config``: another than the agent's own."""
        chosen, spec = config or self.agent.dreamer_config, self._spec
        sizes = (spec.obs_dim, spec.action_dim, spec.discrete)
        return init_learner(jax.random.PRNGKey(0), chosen, *sizes)

    def initial_encoder(self, seed: Any) -> Any:
        """Parameters of the encoder as a run of ``seed`` (a scalar) starts with them."""
        agent = self.agent
        replay = StreamReplay(
            n_envs=agent.env_args.n_envs,
            capacity=agent._ring_rows(_ROWS),
            batch_size=agent.agent_config.batch_size,
            batch_length=agent.agent_config.batch_length,
        )
        # The training loop initialises with the first half of the run's key.
        key, _ = jax.random.split(jax.random.PRNGKey(seed))
        state = init_dreamer(key, agent.env_args, agent.dreamer_config, self._spec, replay, ())
        return state.world_model_state.params["enc"]

    def shapes(self, config: Any = None) -> dict[str, tuple[int, ...]]:
        """Shape of every parameter tensor, by the names of ``shared.probes.parameter_map``.

        ``config``: another than the agent's own.
        """
        state = jax.eval_shape(lambda: self.learner(config))
        groups = {
            "world_model": state.world_model_state.params,
            "actor": state.actor_state.params,
            "critic": state.critic_state.params,
            "slow_critic": state.critic_state.target_params,
        }
        return {name: each.shape for name, each in flatten_dict(groups, sep="/").items()}

    def embedding(self, world_model: Any, observations: Any) -> Any:
        """The encoder's output ``[..., units]`` for observations ``[..., 4]``."""
        model = WorldModel(self.agent.dreamer_config, observations.shape[-1])
        return model.apply({"params": world_model}, observations, method=WorldModel.encode)

    def outputs(self, groups: Any, given: Any) -> Any:
        """What every network computes from ``given``, by the names of ``OUTPUTS``."""
        config, world = self.agent.dreamer_config, groups["world_model"]
        model = WorldModel(config, given["observation"].shape[-1])
        rssm, carry = {"params": world["rssm"]}, RSSMState(given["deter"], given["stoch"])
        # Samples are not compared: both sides draw differently.
        noise = jnp.zeros_like(given["stoch"])
        embedding = self.embedding(world, given["observation"])
        observed = (carry, embedding, given["action"], given["is_first"], noise)
        _, seen = RSSM(config).apply(rssm, *observed, method=RSSM.observe_step)
        imagined = (carry, given["action"], noise)
        _, dreamt = RSSM(config).apply(rssm, *imagined, method=RSSM.imagine_step)
        feature = features(given["deter"], given["stoch"])
        actor = Actor(config, given["action"].shape[-1], discrete=True)
        critic = make_critic(config)

        def head(method: Any) -> Any:
            return model.apply({"params": world}, feature, method=method)

        return {
            "encoder": embedding,
            "observe/deter": seen.deter,
            "observe/logits": OneHot.from_logits(seen.logits, config.unimix).logits,
            "imagine/deter": dreamt.deter,
            "imagine/logits": OneHot.from_logits(dreamt.logits, config.unimix).logits,
            "decoder": head(WorldModel.decode),
            "reward": head(WorldModel.reward_logits),
            "continue": head(WorldModel.cont_logit),
            "actor": actor.apply({"params": groups["actor"]}, feature).logits,
            "critic": critic.apply({"params": groups["critic"]}, feature),
            "slow_critic": critic.apply({"params": groups["slow_critic"]}, feature),
        }

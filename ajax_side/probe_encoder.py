"""Ajax's initial encoder over many seeds, and what its networks compute from given parameters."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
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
from flax.traverse_util import flatten_dict, unflatten_dict

from ajax_side.training import Plan, build_agent
from shared.arrays import Arrays, above, below
from shared.encoder_case import INITIAL, SHAKEN
from shared.parameter_map import to_ajax

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
        spec = env_spec(agent.env_args)
        state = init_dreamer(key, agent.env_args, agent.dreamer_config, spec, replay, ())
        return state.world_model_state.params["enc"]

    def shapes(self, config: Any = None) -> dict[str, tuple[int, ...]]:
        """Shape of every parameter tensor, by the names of ``shared.parameter_map``.

        ``config``: another than the agent's own.
        """
        chosen = config or self.agent.dreamer_config
        spec = env_spec(self.agent.env_args)
        sizes = (spec.obs_dim, spec.action_dim, spec.discrete)
        state: LearnerState = jax.eval_shape(
            lambda key: init_learner(key, chosen, *sizes), jax.random.PRNGKey(0)
        )
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

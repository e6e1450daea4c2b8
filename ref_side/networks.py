"""The reference's networks without its training loop: their parameters, and what they compute.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

from collections.abc import Mapping
from typing import Any

import dreamerv3
import jax.numpy as jnp
import numpy as np
from dreamerv3 import ninjax as nj

from ref_side.environment import CartPoleEnv
from ref_side.session import resolve
from shared.configuration import reference_overrides
from shared.probes.changes import changed_values

Parameters = dict[str, Any]


class Networks:
    """The reference agent's networks at the protocol's configuration, without its training loop.

    ``changes``: keys of its configuration and their new values, as text.
    """

    def __init__(self, *, tiny: bool, changes: Mapping[str, str] | None = None) -> None:
        resolved = resolve(reference_overrides(seed=0, rows=1600, logdir="unused", tiny=tiny))
        self.changed = changed_values("reference", resolved.flat, changes or {})
        self.stock = resolved
        self.config = resolved.update(self.changed)
        env = dreamerv3.wrap_env(CartPoleEnv(np.random.default_rng()), self.config)
        agent = dreamerv3.Agent.inner(env.obs_space, env.act_space, self.config, name="agent")
        self.agent = agent
        spaces = {**env.obs_space, **env.act_space, **agent.aux_spaces}
        self.blank = {
            name: np.zeros((self.config.batch_size, self.config.batch_length, *space.shape))
            .astype(space.dtype)
            for name, space in spaces.items()
            if name != "reset" and not name.startswith("log_")
        }  # fmt: skip

    def initial(self, seed: Any) -> Parameters:
        """Parameters as the stock agent draws them; ``seed`` is uint32 ``[2]``: run seed and 0."""
        size = self.config.batch_size
        carry = nj.pure(self.agent.init_train)({}, size, seed=seed)[1]
        return nj.init(self.agent.train)({}, self.blank, carry, seed=seed)  # type: ignore[no-any-return]

    def embedding(self, parameters: Parameters, observations: Any) -> Any:
        """The encoder's output ``[..., units]`` for observations ``[batch, length, 4]``."""
        data = {"vector": observations, "is_first": jnp.zeros(observations.shape[:2], bool)}
        return nj.pure(self.agent.enc)(parameters, data)[1]

    def outputs(self, parameters: Parameters, given: Any) -> Any:
        """What every network computes from ``given``, by the names of ``OUTPUTS``."""
        return nj.pure(self._outputs)(parameters, given, seed=np.zeros(2, np.uint32))[1]

    def _outputs(self, given: Any) -> Any:
        agent = self.agent
        feature = {name: given[name] for name in ("deter", "stoch")}
        first = {"vector": given["observation"], "is_first": given["is_first"]}
        embedding = agent.enc(first, bdims=1)
        _, seen = agent.dyn.observe(
            dict(feature), given["action"], embedding, given["is_first"], bdims=1
        )
        _, imagined = agent.dyn.imagine(dict(feature), given["action"], bdims=1)
        return {
            "encoder": embedding,
            "observe/deter": seen["deter"],
            "observe/logits": seen["logit"],
            "imagine/deter": imagined["deter"],
            "imagine/logits": imagined["logit"],
            # The head's output before its distribution maps it back from symlog space.
            "decoder": agent.dec(feature, bdims=1)["vector"]._mode,
            "reward": agent.rew(feature, bdims=1).logits,
            "continue": agent.con(feature, bdims=1).logits,
            "actor": agent.actor(feature, bdims=1)["action"].logits,
            "critic": agent.critic(feature, bdims=1).logits,
            "slow_critic": agent.slowcritic(feature, bdims=1).logits,
        }

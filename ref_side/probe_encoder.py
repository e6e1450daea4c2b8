"""The reference's initial encoder over many seeds, its parameters, and what its networks compute.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dreamerv3
import jax
import jax.numpy as jnp
import numpy as np
from dreamerv3 import ninjax as nj

from ref_side.cartpole import CartPole
from ref_side.environment import CartPoleEnv
from ref_side.session import resolve
from shared.arrays import Arrays, above
from shared.changes import changed_values
from shared.configuration import reference_overrides
from shared.encoder_case import BATCH, INITIAL, LENGTH, SHAKEN, STATES, shake, states
from shared.parameter_map import is_network
from shared.protocol import N_ACTIONS

Parameters = dict[str, Any]
_ENCODER = "agent/enc/"


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

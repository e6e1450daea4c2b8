"""Inputs of the ``encoder`` instrument, and which outputs of the networks are compared."""

import numpy as np

from shared.records.arrays import Arrays

#: Latent states, each with an action and an episode-start flag, on which the networks are run.
STATES = 64
#: Observations on which the initial magnitude is measured: ``[BATCH, LENGTH, 4]``.
BATCH, LENGTH = 16, 65
#: Sets of parameters: as initialised, and with noise on every tensor, so that no tensor is zero
#: or one throughout (biases, norm scales, the two-hot heads' kernels) and hides a wrong mapping.
INITIAL, SHAKEN = "initial", "shaken"
SHAKE = 0.05

#: Name of an output -> what it is; each is ``[STATES, ...]``.
OUTPUTS = {
    "encoder": "embedding of an observation",
    "observe/deter": "RSSM step with an observation: recurrent state",
    "observe/logits": "RSSM step with an observation: posterior logits, mixed",
    "imagine/deter": "RSSM step without one: recurrent state",
    "imagine/logits": "RSSM step without one: prior logits, mixed",
    "decoder": "reconstruction, symlog space",
    "reward": "logits of the reward head",
    "continue": "logit of the continue head",
    "actor": "logits of the policy, mixed",
    "critic": "logits of the critic",
    "slow_critic": "logits of the slow critic",
}


def states(deter: int, stoch: int, classes: int, actions: int) -> Arrays:
    """Random inputs of the networks, the same in every call.

    ``deter [STATES, deter]``, ``stoch [STATES, stoch, classes]`` one-hot, ``action [STATES,
    actions]`` one-hot, all float32; ``is_first [STATES]`` bool, true for a quarter.
    """
    rng = np.random.default_rng(0)
    return {
        "deter": np.tanh(rng.normal(size=(STATES, deter))).astype(np.float32),
        "stoch": np.eye(classes, dtype=np.float32)[rng.integers(classes, size=(STATES, stoch))],
        "action": np.eye(actions, dtype=np.float32)[rng.integers(actions, size=STATES)],
        "is_first": np.arange(STATES) % 4 == 0,
    }


def shake(parameters: Arrays) -> Arrays:
    """Every tensor with normal noise of scale ``SHAKE`` added, the same in every call."""
    rng = np.random.default_rng(1)
    return {
        name: (each + SHAKE * rng.normal(size=each.shape)).astype(np.float32)
        for name, each in sorted(parameters.items())
    }

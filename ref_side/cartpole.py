"""CartPole in numpy: the arithmetic of gymnax's CartPole-v1, every value float32.

A port of the *dynamics* of gymnax 1.0.1's ``CartPole-v1`` (protocol section 4). float32 sums depend
on their order, so each formula keeps gymnax's order of operations; constants are numpy float32
scalars, because numpy would otherwise compute with Python's doubles. Needs numpy only.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Bools: TypeAlias = npt.NDArray[np.bool_]

GRAVITY = np.float32(9.8)
POLE_MASS = np.float32(0.1)
TOTAL_MASS = np.float32(1.1)
#: Half of the pole's length.
LENGTH = np.float32(0.5)
POLE_MASS_LENGTH = np.float32(0.05)
FORCE = np.float32(10.0)
#: Seconds per step.
TAU = np.float32(0.02)
X_THRESHOLD = np.float32(2.4)
ANGLE_THRESHOLD = np.float32(12 * 2 * np.pi / 360)
MAX_STEPS = 500
#: Reset states are uniform within plus or minus this, in each variable.
RESET_RANGE = 0.05

_ONE, _FOUR_THIRDS = np.float32(1.0), np.float32(4.0 / 3.0)


def next_state(state: Floats, action: npt.ArrayLike) -> Floats:
    """The state one explicit Euler step later; velocities are those before the step.

    ``state`` is ``[..., 4]`` float32 (position m, velocity m/s, angle rad, angular velocity rad/s),
    ``action`` is ``[...]`` with 0 for a push to the left and 1 to the right.
    """
    x, x_dot, theta, theta_dot = (state[..., index] for index in range(4))
    push = np.asarray(action, np.float32)
    force = FORCE * push - FORCE * (_ONE - push)
    cosine, sine = np.cos(theta), np.sin(theta)
    # Squares are products: numpy's float32 ** int is a double.
    drive = (force + POLE_MASS_LENGTH * (theta_dot * theta_dot) * sine) / TOTAL_MASS
    theta_acc = (GRAVITY * sine - cosine * drive) / (
        LENGTH * (_FOUR_THIRDS - POLE_MASS * (cosine * cosine) / TOTAL_MASS)
    )
    x_acc = drive - POLE_MASS_LENGTH * theta_acc * cosine / TOTAL_MASS
    moved = (
        x + TAU * x_dot,
        x_dot + TAU * x_acc,
        theta + TAU * theta_dot,
        theta_dot + TAU * theta_acc,
    )
    return np.stack(moved, axis=-1)


def outside(state: Floats) -> Bools:
    """Whether cart or pole is strictly beyond its threshold; ``[..., 4]`` -> ``[...]``."""
    x, theta = state[..., 0], state[..., 2]
    return np.asarray((np.abs(x) > X_THRESHOLD) | (np.abs(theta) > ANGLE_THRESHOLD))


@dataclass(frozen=True)
class Step:
    """Outcome of one step: the observation after it, its reward, and how the episode stands."""

    observation: Floats
    reward: np.float32
    terminated: bool
    truncated: bool


class CartPole:
    """One CartPole: ``state`` is ``[4]`` float32, ``time`` the steps since its reset."""

    def __init__(self, state: Floats, time: int = 0) -> None:
        self.state = np.asarray(state, np.float32)
        self.time = time

    @classmethod
    def reset(cls, rng: np.random.Generator) -> "CartPole":
        """A new episode: four uniform draws from ``rng``, in the order of the state."""
        return cls(rng.uniform(-RESET_RANGE, RESET_RANGE, size=4).astype(np.float32))

    def step(self, action: int) -> Step:
        """Advance by one step. The reward is 1 unless the state before it was already terminal."""
        ended = bool(outside(self.state)) or self.time >= MAX_STEPS
        self.state = next_state(self.state, action)
        self.time += 1
        return Step(
            observation=self.state.copy(),
            reward=np.float32(0.0 if ended else 1.0),
            terminated=bool(outside(self.state)),
            truncated=self.time >= MAX_STEPS,
        )

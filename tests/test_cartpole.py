"""The CartPole port, with numpy alone; the check against gymnax runs in the Ajax environment."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ref_side import cartpole
from ref_side.cartpole import CartPole, Floats, next_state, outside

REPO = Path(__file__).resolve().parent.parent


def euler_in_double(state: list[float], action: int) -> list[float]:
    """The textbook equations of motion (Barto, Sutton and Anderson 1983; Florian 2007)."""
    x, x_dot, theta, theta_dot = state
    force = 10.0 if action == 1 else -10.0
    sine, cosine = math.sin(theta), math.cos(theta)
    inertia = (force + 0.1 * 0.5 * theta_dot**2 * sine) / 1.1
    theta_acc = (9.8 * sine - cosine * inertia) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    x_acc = inertia - 0.1 * 0.5 * theta_acc * cosine / 1.1
    return [
        x + 0.02 * x_dot,
        x_dot + 0.02 * x_acc,
        theta + 0.02 * theta_dot,
        theta_dot + 0.02 * theta_acc,
    ]


def random_states(count: int, seed: int = 0) -> Floats:
    scale = np.array([2.4, 3.0, 0.2, 3.0])
    return (np.random.default_rng(seed).uniform(-1, 1, (count, 4)) * scale).astype(np.float32)


def test_steps_agree_with_the_equations_of_motion_in_double_precision() -> None:
    states = random_states(200)
    for action in (0, 1):
        moved = next_state(states, np.full(200, action))
        expected = [euler_in_double(state.astype(float).tolist(), action) for state in states]
        np.testing.assert_allclose(moved, expected, atol=1e-6, rtol=0)


def test_everything_is_float32_whatever_the_shape() -> None:
    states = random_states(5)
    for state, action in ((states, np.zeros(5, int)), (states[0], 1), (states[0], np.int32(0))):
        moved = next_state(state, action)
        assert moved.dtype == np.float32
        assert moved.shape == state.shape


def test_a_batch_is_its_members() -> None:
    states, actions = random_states(64), np.arange(64) % 2
    each = [next_state(state, action) for state, action in zip(states, actions, strict=True)]
    np.testing.assert_allclose(next_state(states, actions), each, atol=1e-7, rtol=0)


def test_mirrored_states_move_in_mirror() -> None:
    states = random_states(50, seed=1)
    np.testing.assert_array_equal(next_state(-states, 0), -next_state(states, 1))


@pytest.mark.parametrize(("index", "limit"), [(0, 2.4), (2, 12 * 2 * math.pi / 360)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_thresholds_are_strict(index: int, limit: float, sign: int) -> None:
    state = np.zeros(4, np.float32)
    state[index] = sign * np.float32(limit)
    assert not outside(state)
    state[index] = np.nextafter(state[index], np.float32(sign * 10))
    assert outside(state)


def test_velocities_end_no_episode() -> None:
    assert not outside(np.array([0, 100, 0, -100], np.float32))


def test_resets_follow_the_generator() -> None:
    first, again = (CartPole.reset(np.random.default_rng([3, 7])).state for _ in range(2))
    np.testing.assert_array_equal(first, again)
    rng = np.random.default_rng([3, 7])
    states = np.stack([CartPole.reset(rng).state for _ in range(2000)])
    np.testing.assert_array_equal(states[0], first)
    assert states.dtype == np.float32
    assert (np.abs(states) <= np.float32(0.05)).all()
    np.testing.assert_allclose(states.mean(0), 0, atol=0.004)
    np.testing.assert_allclose(states.std(0), 0.1 / math.sqrt(12), rtol=0.05)


def test_constant_pushes_end_by_termination_with_reward_one_each_step() -> None:
    pole = CartPole(np.zeros(4, np.float32))
    rewards, terminated = [], False
    while not terminated:
        step = pole.step(1)
        rewards.append(float(step.reward))
        terminated = step.terminated
        assert not step.truncated
    assert rewards == [1.0] * len(rewards)
    assert 5 <= len(rewards) <= 20
    # A step from a terminal state is worth nothing.
    assert float(pole.step(1).reward) == 0.0


def test_the_time_limit_truncates_after_step_500() -> None:
    pole = CartPole(np.zeros(4, np.float32), time=498)
    assert not pole.step(0).truncated
    step = pole.step(1)
    assert step.truncated
    assert not step.terminated
    assert float(step.reward) == 1.0
    assert float(pole.step(0).reward) == 0.0


def test_an_observation_is_no_view_of_the_state() -> None:
    pole = CartPole(np.zeros(4, np.float32))
    observation = pole.step(0).observation
    pole.state[:] = 9.0
    assert (observation != 9.0).all()


def test_constants_are_float32() -> None:
    names = [name for name in vars(cartpole) if name.isupper() and name != "MAX_STEPS"]
    wrong = [
        name
        for name in names
        if name != "RESET_RANGE" and not isinstance(getattr(cartpole, name), np.float32)
    ]
    assert not wrong


def test_the_physics_need_neither_jax_nor_the_reference() -> None:
    """The port check imports it in the Ajax environment, where the reference is not."""
    script = (
        "import sys, ref_side.cartpole;print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout
    assert not {"jax", "embodied", "dreamerv3"} & set(loaded.split())

"""``python -m ajax_side.port_check``: the reference side's CartPole against gymnax's, jitted.

The checks are those of protocol section 4. Both environments are the real ones: gymnax's as Ajax
makes it, and the port's rows as the reference's driver would see them.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from shared.errors import EXIT_NO, UserError, run_command
from shared.protocol import MAX_EPISODE_STEPS, N_ACTIONS
from shared.provenance.roots import REPO
from shared.variables import leave_users_shell, set_jax_environment

ENVIRONMENT = "CartPole-v1"
N_STATES = 400
N_ROWS = 600
TOLERANCE = 1e-6
RESET_RANGE = 0.05
#: Half of the states are drawn from this share of the thresholds, the others from all of it.
_NEAR = 0.98

Floats = npt.NDArray[np.float32]
#: What a step gives: observation, reward, terminated, truncated.
Outcome = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Check:
    """One line of the table; ``largest`` is the largest difference seen, ``limit`` what passes."""

    name: str
    compared: int
    largest: float
    limit: float

    @property
    def passed(self) -> bool:
        """False also where the difference is not a number."""
        return self.largest <= self.limit


@dataclass(frozen=True)
class Gymnax:
    """gymnax's CartPole, its step jitted; states are ``[..., 4]`` float32."""

    #: (state [n, 4], time [n], action [n]) -> outcome, without automatic reset.
    step: Callable[[Floats, Any, Any], Outcome]
    x_threshold: float
    angle_threshold: float


def make_gymnax() -> Gymnax:
    """The environment that Ajax makes for ``CartPole-v1``."""
    import gymnax
    import jax
    from gymnax.environments.classic_control.cartpole import EnvState

    environment, parameters = gymnax.make(ENVIRONMENT)
    key = jax.random.PRNGKey(0)  # gymnax's steps are deterministic

    def one(state: Any, time: Any, action: Any) -> Outcome:
        before = EnvState(time, *state)
        observation, after, reward, terminated, _ = environment.step_env(
            key, before, action, parameters
        )
        return observation, reward, terminated, environment.is_truncated(after, parameters)

    jitted = jax.jit(jax.vmap(one))

    def step(state: Floats, time: Any, action: Any) -> Outcome:
        outcome = jitted(state, np.asarray(time, np.int32), np.asarray(action, np.int32))
        observation, reward, terminated, truncated = (np.asarray(each) for each in outcome)
        return observation, reward, terminated, truncated

    angle = float(parameters.theta_threshold_radians)
    return Gymnax(step, float(parameters.x_threshold), angle)


# --- single steps ---------------------------------------------------------------------------


def draw_states(gymnax: Gymnax, rng: np.random.Generator) -> Floats:
    """``[N_STATES, 4]`` states inside the thresholds, half of them near one of the two."""
    limits = np.array([gymnax.x_threshold, 3.0, gymnax.angle_threshold, 3.0])
    states = rng.uniform(-1, 1, size=(N_STATES, 4)) * limits
    near = np.arange(N_STATES // 2)
    column = np.where(near % 2, 0, 2)  # position and angle in turn
    sign = rng.choice([-1.0, 1.0], size=near.size)
    states[near, column] = sign * limits[column] * rng.uniform(_NEAR, 1, size=near.size)
    return np.asarray(states, np.float32)


def check_steps(port: ModuleType, gymnax: Gymnax, time: int) -> Iterator[Check]:
    """Every state times both actions, each state entered at ``time`` steps."""
    states = np.repeat(draw_states(gymnax, np.random.default_rng(time)), N_ACTIONS, axis=0)
    actions = np.tile(np.arange(N_ACTIONS), N_STATES)
    expected = gymnax.step(states, np.full(len(states), time), actions)
    steps = [
        port.CartPole(state, time=time).step(int(action))
        for state, action in zip(states, actions, strict=True)
    ]
    parts = ("observation", "reward", "terminated", "truncated")
    for name, theirs in zip(parts, expected, strict=True):
        ours = np.array([getattr(step, name) for step in steps])
        limit = TOLERANCE if name == "observation" else 0.0
        yield Check(f"step at time {time}: {name}", len(steps), difference(ours, theirs), limit)


# --- rows in lockstep -----------------------------------------------------------------------


def check_rollout(
    environment: ModuleType, gymnax: Gymnax, name: str, act: Callable[[Floats], int]
) -> Iterator[Check]:
    """``N_ROWS`` rows of the port, each step beside gymnax's from the same state.

    Row 0 of an episode of L steps is its reset row, row L its last one, and the row after that
    the next reset. (Left to its own states gymnax would drift off: the pole amplifies the last
    digit a hundredfold within an episode.)
    """
    finished: list[Any] = []
    rows = environment.CartPoleEnv(np.random.default_rng([0, 0]), finished.append)
    state, time, last = np.zeros(4, np.float32), 0, True
    observations, flags, ends = [0.0], [0.0], []
    for index in range(N_ROWS):
        reset, action = last, act(state)
        row = rows.step({"action": np.int32(action), "reset": np.bool_(reset)})
        if reset:
            time, expected = 0, (True, 0.0, False, False)
            observations.append(max(0.0, float(np.abs(row["vector"]).max()) - RESET_RANGE))
        else:
            outcome = gymnax.step(state[None], [time], [action])
            observation, reward, terminated, truncated = (each[0] for each in outcome)
            time, ended = time + 1, bool(terminated or truncated)
            expected = (False, float(reward), ended, bool(terminated))
            observations.append(difference(row["vector"], observation))
            if ended:
                ends.append((index, time, float(time), bool(terminated)))
        state, last = np.asarray(row["vector"]), bool(row["is_last"])
        seen = (row["is_first"], row["reward"], last, row["is_terminal"])
        flags.append(difference(seen, expected))
    yield Check(f"{name}: observation", N_ROWS, max(observations), TOLERANCE)
    yield Check(f"{name}: reward and flags of rows", N_ROWS, max(flags), 0.0)
    seen_ends = [(each.row_last, each.length, each.score, each.terminal) for each in finished]
    yield Check(f"{name}: episodes", len(ends), float(seen_ends != ends or not ends), 0.0)


def random_actions() -> Callable[[Floats], int]:
    """Either action with equal probability: episodes of about 20 steps."""
    rng = np.random.default_rng(1)
    return lambda _: int(rng.integers(N_ACTIONS))


def balance(state: Floats) -> int:
    """Push towards where the pole falls: keeps it up until the time limit ends the episode."""
    x, x_dot, theta, theta_dot = (float(each) for each in state)
    return int(0.02 * x + 0.06 * x_dot + theta + 0.3 * theta_dot > 0)


def difference(ours: Any, theirs: Any) -> float:
    """Largest absolute difference; NaN counts as infinitely far off."""
    gap = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
    return float(np.where(np.isnan(gap), np.inf, gap).max())


# --- command --------------------------------------------------------------------------------


def load_port(directory: Path) -> tuple[ModuleType, ModuleType]:
    """The port's ``cartpole`` (physics) and ``environment`` (rows) modules from their package.

    The reference's ``embodied`` is not installed in this environment. The row class takes two
    names from it, a base class without behaviour and the description of a space; both are given.
    """
    if not (directory / "cartpole.py").is_file():
        raise UserError(f"{directory}: holds no cartpole.py; name the port's directory with --port")
    embodied = ModuleType("embodied")
    embodied.Env, embodied.Space = object, lambda *arguments: arguments  # type: ignore[attr-defined]
    sys.modules.setdefault("embodied", embodied)
    sys.path.insert(0, str(directory.resolve().parent))
    name = directory.resolve().name
    physics = importlib.import_module(f"{name}.cartpole")
    return physics, importlib.import_module(f"{name}.environment")


def all_checks(directory: Path) -> list[Check]:
    """Every check of protocol section 4, in the table's order."""
    physics, environment = load_port(directory)
    gymnax = make_gymnax()
    return [
        *check_steps(physics, gymnax, time=0),
        *check_steps(physics, gymnax, time=MAX_EPISODE_STEPS - 1),
        *check_rollout(environment, gymnax, "random actions", random_actions()),
        *check_rollout(environment, gymnax, "balanced to the limit", balance),
    ]


def main() -> int:
    """Run the command; status 1 when a check fails."""
    parser = argparse.ArgumentParser(
        prog="nox -s port_check --",
        description="Compare the numpy port of CartPole with gymnax's, step by step and in "
        "lockstep (protocol section 4). Runs inside the Ajax environment; status 1 when a check "
        "fails.",
    )
    parser.add_argument(
        "--port",
        type=Path,
        default=REPO / "ref_side",
        metavar="DIR",
        help="package directory with the port's cartpole.py and environment.py",
    )
    options = parser.parse_args()
    set_jax_environment("ajax")
    checks = all_checks(options.port)
    print(f"{'check':44} {'compared':>8} {'largest difference':>19} {'limit':>7}")
    for check in checks:
        verdict = "PASS" if check.passed else "FAIL"
        print(
            f"{check.name:44} {check.compared:8} {check.largest:19.3g} {check.limit:7.0g} {verdict}"
        )
    failed = sum(not check.passed for check in checks)
    print(f"{len(checks) - failed} of {len(checks)} checks pass")
    return EXIT_NO if failed else 0


if __name__ == "__main__":
    leave_users_shell()
    run_command(main)

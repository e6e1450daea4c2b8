"""CartPole as the reference's ``embodied.Env``, with a record of its finished episodes.

Importing this module imports ``embodied``: verify the checkout and put it on the path first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import embodied
import numpy as np

from ref_side.cartpole import CartPole, Floats
from shared.protocol import N_ACTIONS, STATE_SIZE


@dataclass(frozen=True)
class FinishedEpisode:
    """``row_last`` is the 0-based index of the episode's last row among the environment's rows."""

    row_last: int
    length: int
    score: float
    terminal: bool


class CartPoleEnv(embodied.Env):  # type: ignore[misc]  # the checkout carries no types
    """An episode of L steps is L + 1 rows, its reset row first (protocol section 4)."""

    def __init__(
        self,
        rng: np.random.Generator,
        on_episode: Callable[[FinishedEpisode], None] | None = None,
    ) -> None:
        """Reset states are drawn from ``rng``; ``on_episode`` is called at each episode's end."""
        self._rng = rng
        self._on_episode = on_episode
        self._pole: CartPole | None = None
        self._rows = 0
        self._score = 0.0

    @cached_property
    def obs_space(self) -> dict[str, Any]:
        """Spaces of a row: ``vector`` float32 [4], ``reward`` float32, three flags."""
        flags = ("is_first", "is_last", "is_terminal")
        return {
            "vector": embodied.Space(np.float32, (STATE_SIZE,)),
            "reward": embodied.Space(np.float32),
            **{flag: embodied.Space(bool) for flag in flags},
        }

    @cached_property
    def act_space(self) -> dict[str, Any]:
        """Spaces of an action: ``action`` int32 in [0, 2), ``reset`` bool."""
        return {
            "action": embodied.Space(np.int32, (), 0, N_ACTIONS),
            "reset": embodied.Space(bool),
        }

    def step(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """The next row: a reset row where ``action["reset"]`` says so, else one step.

        Raises ``RuntimeError`` when an ended episode, or none, is stepped without a reset.
        """
        self._rows += 1
        if action["reset"]:
            self._pole, self._score = CartPole.reset(self._rng), 0.0
            return _row(self._pole.state.copy(), np.float32(0.0), is_first=True)
        if self._pole is None:
            raise RuntimeError("CartPole was stepped before a reset: its episode has ended")
        time, step = self._pole.time + 1, self._pole.step(int(action["action"]))
        self._score += float(step.reward)
        last = step.terminated or step.truncated
        if last:
            self._pole = None
            if self._on_episode is not None:
                ended = FinishedEpisode(self._rows - 1, time, self._score, step.terminated)
                self._on_episode(ended)
        return _row(step.observation, step.reward, is_last=last, is_terminal=step.terminated)


def _row(
    vector: Floats,
    reward: np.float32,
    *,
    is_first: bool = False,
    is_last: bool = False,
    is_terminal: bool = False,
) -> dict[str, Any]:
    return {
        "vector": vector,
        "reward": reward,
        "is_first": is_first,
        "is_last": is_last,
        "is_terminal": is_terminal,
    }

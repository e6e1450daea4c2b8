"""How the bench drives a side: training stands still between ticks until it is asked for more.

A process of the bench is a side's real training with a :class:`Pace` at the end of every tick (16
rows, after row 1040 eight updates). It reads commands from stdin and writes replies to stdout, one
JSON object a line; whatever else the side prints goes to stderr.

command  ``{"ticks": 3}`` and whatever else the side's ``prepare`` understands
reply    ``{"marks": [...], "peak_bytes": ..., ...}``: ``ticks + 1`` readings of the system's
         monotonic clock in seconds, which processes share, at the ends of ticks
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from shared.protocol import FIRST_UPDATE_ROW, N_ENVS, ROWS_PER_UPDATE

#: The first update falls into this tick; its end is the end of a process's start-up.
FIRST_TICK = FIRST_UPDATE_ROW // N_ENVS
UPDATES_PER_TICK = N_ENVS // ROWS_PER_UPDATE


def take_stdout() -> TextIO:
    """The process's stdout, for replies alone: prints and C libraries write to stderr from now."""
    sys.stdout.flush()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


class Pace:
    """Holds training at the end of a tick until a command asks for more.

    ``settle`` waits until what the side has started is computed, ``prepare`` is given each
    command before training goes on, and what ``report`` returns is added to each reply.
    ``skip`` ticks after a command are not timed: of them a part may have been computed before.
    Without further commands the process ends, with status 0.
    """

    def __init__(
        self,
        replies: TextIO,
        *,
        commands: TextIO | None = None,
        settle: Callable[[], None] = lambda: None,
        prepare: Callable[[Mapping[str, Any]], None] = lambda _: None,
        report: Callable[[], Mapping[str, Any]] = dict,
        skip: int = 0,
        leave: Callable[[], None] = lambda: os._exit(0),
    ) -> None:
        self._replies, self._commands = replies, commands or sys.stdin
        self._settle, self._prepare, self._report = settle, prepare, report
        self._skip, self._leave = skip, leave
        self._first = self._last = FIRST_TICK
        self._marks: list[float] = []

    def tick(self, done: int) -> None:
        """To be called at the end of every tick, with the number of ticks done so far."""
        if done < self._first:
            return
        if done < self._last:
            self._mark()
            return
        self._settle()
        self._mark()
        self._reply()
        line = self._commands.readline()
        if not line:
            self._leave()
            return
        command = json.loads(line)
        self._prepare(command)
        self._first = done + self._skip
        self._last = self._first + int(command["ticks"])
        self._marks = []
        if not self._skip:
            self._mark()

    def _mark(self) -> None:
        self._marks.append(time.monotonic())

    def _reply(self) -> None:
        reply = {"marks": self._marks, "peak_bytes": peak_bytes(), **self._report()}
        self._replies.write(json.dumps(reply) + "\n")
        self._replies.flush()


def peak_bytes() -> int:
    """The most memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

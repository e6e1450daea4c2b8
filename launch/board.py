"""The live board: the round's table at the foot of a terminal, events as lines above it.

Written on the standard library: the launcher runs in nox's own Python, where nothing else is sure
to be installed.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from launch.plan import Job
from launch.progress import duration
from launch.state import RoundState
from launch.supervise import Outcome
from launch.table import fit, table_lines

#: Seconds between two drawings.
DRAW_EVERY_S = 1.0
_ERASE_BELOW = "\x1b[J"


def is_live(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that understands how to move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Whether colours are wanted there (https://no-color.org)."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


class Screen:
    """Lines at the foot of a terminal that are drawn over again and again.

    The cursor stands below them, in its first column; what is printed there scrolls them away, so
    :meth:`erase` comes first.
    """

    def __init__(self, stream: TextIO, *, notes: bool) -> None:
        self._stream, self._notes = stream, notes
        self._colour = has_colour(stream)
        #: Lengths of the lines that stand there.
        self._drawn: list[int] = []

    def draw(self, *states: RoundState) -> None:
        """Show ``states`` in the place of what was shown before."""
        width, height = shutil.get_terminal_size()
        # The last column stays free: some terminals break a line that fills it.
        lines = fit(table_lines(states, width - 1, notes=self._notes), height - 1)
        shown = "".join(f"{each.drawn(width - 1, colour=self._colour)}\n" for each in lines)
        self._write(self._back(width) + shown)
        self._drawn = [min(len(each.text), width - 1) for each in lines]

    def erase(self) -> None:
        """Take the lines away."""
        if self._drawn:
            self._write(self._back(shutil.get_terminal_size().columns))
            self._drawn = []

    def leave(self) -> None:
        """Let the lines stand; what is drawn next comes below them."""
        self._drawn = []

    def _back(self, width: int) -> str:
        """To the first line and away with the rest; a narrowed terminal has wrapped the lines."""
        rows = sum(max(1, -(-length // width)) for length in self._drawn)
        return (f"\x1b[{rows}A" if rows else "") + f"\r{_ERASE_BELOW}"

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a terminal that has gone away ends no round
            self._stream.write(text)
            self._stream.flush()


class Board:
    """A watcher that keeps the round's table on the terminal; ``read`` gives its present state."""

    def __init__(
        self,
        read: Callable[[], RoundState],
        say: Callable[[str], None],
        stream: TextIO = sys.stdout,
    ) -> None:
        # What its notes would say has been said as events.
        self._read, self._say, self._screen = read, say, Screen(stream, notes=False)
        self._next = 0.0

    def started(self, job: Job) -> None:  # noqa: ARG002
        """The table shows it."""
        self._next = 0.0

    def ended(self, outcome: Outcome) -> None:
        """A line above the table."""
        took = duration(outcome.seconds)
        why = f": {outcome.problem}" if outcome.problem else ""
        self._line(f"{outcome.job.name}: {outcome.word} after {took}{why}")

    def stopping(self, cause: str, running: Sequence[Job]) -> None:
        """A line above the table."""
        self._line(f"{cause} to {', '.join(job.name for job in running)}")

    def tick(self, running: Sequence[Job]) -> None:  # noqa: ARG002
        """Draw the table when it is time."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DRAW_EVERY_S
            self._screen.draw(self._read())

    def close(self) -> None:
        """Leave the last state of the table on the terminal."""
        self._screen.draw(self._read())
        self._screen.leave()

    def _line(self, text: str) -> None:
        self._screen.erase()
        self._say(text)
        self._next = 0.0

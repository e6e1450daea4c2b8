"""The live board: the round's table at the foot of a terminal, events as lines above it."""

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.live import Live

from launch.plan import Job
from launch.progress import duration
from launch.state import RoundState
from launch.supervise import Outcome
from launch.table import rounds_view

#: Seconds between two drawings.
DRAW_EVERY_S = 1.0


def live_view(console: Console) -> Live:
    """A place at the foot of the terminal that is drawn over again and again, on demand."""
    return Live(console=console, auto_refresh=False)


class Board:
    """A watcher that keeps the round's table on the terminal; ``read`` gives its present state.

    What is printed meanwhile stands above it.
    """

    def __init__(
        self, read: Callable[[], RoundState], say: Callable[[str], None], console: Console
    ) -> None:
        self._read, self._say, self._console = read, say, console
        self._live = live_view(console)
        self._next = 0.0

    def started(self, job: Job) -> None:  # noqa: ARG002
        """The table shows it."""
        self._next = 0.0

    def ended(self, outcome: Outcome) -> None:
        """A line above the table."""
        why = f": {outcome.problem}" if outcome.problem else ""
        self._say(f"{outcome.job.name}: {outcome.word} after {duration(outcome.seconds)}{why}")
        self._next = 0.0

    def stopping(self, cause: str, running: Sequence[Job]) -> None:
        """A line above the table."""
        self._say(f"{cause} to {', '.join(job.name for job in running)}")
        self._next = 0.0

    def tick(self, running: Sequence[Job]) -> None:  # noqa: ARG002
        """Draw the table when it is time."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DRAW_EVERY_S
            self._draw()

    def close(self) -> None:
        """Leave the last state of the table on the terminal."""
        try:
            self._draw()
        finally:
            self.leave()

    def leave(self) -> None:
        """Give the terminal back as it is."""
        self._live.stop()

    def _draw(self) -> None:
        # What its notes would say has been said as events.
        view = rounds_view(self._console, self._read(), notes=False)
        self._live.start()
        self._live.update(view, refresh=True)

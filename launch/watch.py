"""Who watches a round: the live board or plain lines. A watcher that fails ends no round."""

import sys
from collections.abc import Callable, Sequence

from launch.board import Board, is_live
from launch.lock import read_launcher
from launch.plan import Job, Plan
from launch.progress import PlainLines
from launch.state import RoundState, round_state
from launch.supervise import Outcome, Watcher
from launch.tell import say
from shared.layout import RunLayout


def watch(plan: Plan, limit: int, *, live: bool, every_s: float) -> "SafeWatcher":
    """Lines every ``every_s`` seconds; first the board, where it is wanted (``live``) and can be.

    Of a round with ``limit`` processes at a time.
    """
    lines = PlainLines(plan.round, RunLayout(plan.out), say, every_s)
    if not live or not is_live(sys.stdout):
        return SafeWatcher(say, lines)

    def read() -> RoundState:
        launcher = read_launcher(plan.out)
        return round_state(plan.round, plan.out, plan.jobs, limit=limit, launcher=launcher)

    return SafeWatcher(say, Board(read, say), lines)


class SafeWatcher:
    """Tells the first of its watchers that has not failed; the processes run on with none too.

    Watchers read files that other processes write, maybe on a disk that is out of reach for a
    while. What ends the supervisor kills every process, and a watcher is not worth that.
    """

    def __init__(self, say: Callable[[str], None], *watchers: Watcher) -> None:
        self._say, self._watchers = say, list(watchers)

    def started(self, job: Job) -> None:
        """Passed on."""
        self._tell(lambda watcher: watcher.started(job))

    def ended(self, outcome: Outcome) -> None:
        """Passed on."""
        self._tell(lambda watcher: watcher.ended(outcome))

    def stopping(self, cause: str, running: Sequence[Job]) -> None:
        """Passed on."""
        self._tell(lambda watcher: watcher.stopping(cause, running))

    def tick(self, running: Sequence[Job]) -> None:
        """Passed on."""
        self._tell(lambda watcher: watcher.tick(running))

    def close(self) -> None:
        """Leave the board's last state on the terminal."""
        self._tell(lambda watcher: watcher.close() if isinstance(watcher, Board) else None)

    def _tell(self, tell: Callable[[Watcher], None]) -> None:
        while self._watchers:
            try:
                tell(self._watchers[0])
                return
            except Exception as error:
                what = "board" if isinstance(self._watchers.pop(0), Board) else "lines"
                left = "with plain lines" if self._watchers else "unwatched until its end"
                why = f"{type(error).__name__}: {error}".splitlines()[0]
                self._say(f"the {what} of this round failed ({why}); it goes on {left}")

"""Who watches a round: the live board or plain lines. A watcher that fails ends no round."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from launch.announcements import say
from launch.board import Board
from launch.lock import read_launcher
from launch.plan import Job, Plan
from launch.progress import PlainLines
from launch.state import RoundState, round_state
from launch.supervise import Outcome, Watcher
from launch.table import is_live, terminal
from shared.records.layout import RunLayout


def watch(plan: Plan, limit: int, *, live: bool, every_s: float) -> "SafeWatcher":
    """Lines every ``every_s`` seconds; first the board, where it is wanted (``live``) and can be.

    Of a round with ``limit`` processes at a time.
    """
    lines = PlainLines(plan.round, RunLayout(plan.out), say, every_s)
    console = terminal()
    if not live or not is_live(console):
        return SafeWatcher(say, lines)

    def read() -> RoundState:
        launcher = read_launcher(plan.out)
        return round_state(plan.round, plan.out, plan.jobs, limit=limit, launcher=launcher)

    return SafeWatcher(say, Board(read, say, console), lines)


class SafeWatcher:
    """Tells the first of its watchers that has not failed; the last one stays, failed or not.

    Watchers read files that other processes write, maybe on a disk that is out of reach for a
    while. What ends the supervisor kills every process, and a watcher is not worth that.
    """

    def __init__(self, say: Callable[[str], None], *watchers: Watcher) -> None:
        self._say, self._watchers = say, list(watchers)
        #: Whether the last one, which stays, has been reported.
        self._said = False

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
        while True:
            try:
                tell(self._watchers[0])
            except Exception as error:
                if not self._replace(error):
                    return
            else:
                return

    def _replace(self, error: Exception) -> bool:
        """Say that the first watcher has failed; whether another one takes its place."""
        failed, left = self._watchers[0], self._watchers[1:]
        if isinstance(failed, Board):
            with suppress(Exception):
                failed.leave()
        if not left and self._said:
            return False
        what = "board" if isinstance(failed, Board) else "lines"
        then = "with plain lines" if left else "and what is said of it has gaps"
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        with suppress(Exception):
            self._say(f"the {what} of this round failed ({why}); it goes on {then}")
        self._said = not left
        self._watchers = left or self._watchers
        return bool(left)

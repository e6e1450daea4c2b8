"""How far a process is, from the files it writes while it runs; and a round told as plain lines."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from launch.plan import Job
from launch.supervise import Outcome
from shared.errors import RecordError
from shared.protocol import Round, updates
from shared.records import layout
from shared.records.files import read_tail
from shared.records.layout import RunLayout
from shared.records.rows import LARGEST_COUNT

#: Seconds between two lines about a running process.
LINE_EVERY_S = 60.0
#: Bytes that hold as many lines as are looked at.
_TAIL_BYTES = 2**16
#: The speed is that of the last lines of progress only: evaluations and other load come and go.
RECENT_LINES = 20


@dataclass(frozen=True)
class Snapshot:
    """State of one process: rows and updates done and in all, and its last evaluation.

    ``rate`` is updates per second lately, ``evaluation`` the mean over its seeds at row
    ``evaluation_rows``; ``None`` while not known.
    """

    rows: int
    updates: int
    total_rows: int
    rate: float | None = None
    evaluation: float | None = None
    evaluation_rows: int | None = None

    @property
    def left_s(self) -> float | None:
        """Estimated seconds of training left, >= 0; ``None`` while the speed is not known."""
        if self.rate is None:
            return None
        return max(0, updates(self.total_rows) - self.updates) / self.rate

    def __str__(self) -> str:
        if not self.rows:
            return "nothing recorded yet (building, compiling, first rows)"
        parts = [
            f"row {self.rows} of {self.total_rows}",
            f"{self.updates} of {updates(self.total_rows)} updates",
        ]
        if self.rate is not None:
            parts.append(f"{self.rate:.2f} updates/s")
        if self.evaluation is not None:
            parts.append(f"evaluation {self.evaluation:.1f} at row {self.evaluation_rows}")
        if self.left_s is not None:
            parts.append(f"{duration(self.left_s)} left")
        return ", ".join(parts)


def snapshot(job: Job, run: RunLayout, total_rows: int) -> Snapshot:
    """The state of ``job`` from its files; all zero before it has written any."""
    lines = tail(job.directory / layout.PROGRESS, RECENT_LINES, "updates")
    last = lines[-1] if lines else {"rows": 0.0, "updates": 0.0}
    # A mean that is not a number is null: then there is no evaluation to show.
    evaluations = [
        tail(run.seed_dir(job.side, seed) / layout.EVALUATIONS, 1, "mean") for seed in job.seeds
    ]
    means = [each[-1] for each in evaluations if each]
    known = len(means) == len(job.seeds) and len({each["rows"] for each in means}) == 1
    return Snapshot(
        rows=int(last["rows"]),
        updates=int(last["updates"]),
        total_rows=total_rows,
        rate=_rate(lines),
        evaluation=sum(each["mean"] for each in means) / len(means) if known else None,
        evaluation_rows=int(means[0]["rows"]) if known else None,
    )


def tail(path: Path, count: int, *needs: str) -> list[dict[str, float]]:
    """The numbers of the last ``count`` lines of a JSON-lines file that is being written.

    A missing file has none. A line that is cut short, is no JSON or lacks the number ``rows`` or
    one of ``needs`` is passed over: this is a glance at a running process, and the reader of the
    records judges the file.
    """
    try:
        text = read_tail(path, _TAIL_BYTES).decode(errors="replace")
    except (OSError, RecordError):
        return []
    found: list[dict[str, float]] = []
    for line in text.splitlines()[-count:]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            numbers = {
                key: value
                for key, value in row.items()
                if isinstance(value, int | float) and abs(value) <= LARGEST_COUNT
            }
            found += [numbers] if numbers.keys() >= {"rows", *needs} else []
    return found


def _rate(lines: Sequence[dict[str, float]]) -> float | None:
    """Updates per second over ``lines`` that have updates; steps of a clock backwards left out."""
    training = [line for line in lines if line.get("updates", 0) > 0 and "wall_s" in line]
    seconds = done = 0.0
    for before, after in pairwise(training):
        if after["wall_s"] > before["wall_s"] and after["updates"] >= before["updates"]:
            seconds += after["wall_s"] - before["wall_s"]
            done += after["updates"] - before["updates"]
    return done / seconds if done > 0 else None


def duration(seconds: float) -> str:
    """``45 s``, ``12 min`` or ``3 h 05 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


class PlainLines:
    """Tells a round as lines of text, one per event, and one per process every minute or so."""

    def __init__(
        self, chosen: Round, run: RunLayout, say: Callable[[str], None], every_s: float
    ) -> None:
        self._round, self._run, self._say, self._every_s = chosen, run, say, every_s
        self._next = time.monotonic() + every_s

    def started(self, job: Job) -> None:
        """A line that names the process's log."""
        self._say(f"{job.name}: started (log: {self._run.log(job.name)})")

    def ended(self, outcome: Outcome) -> None:
        """A line with what went wrong and where to look, or how long it took."""
        name, took = outcome.job.name, duration(outcome.seconds)
        if outcome.problem is None:
            self._say(f"{name}: finished after {took}")
        else:
            log = self._run.log(name)
            self._say(f"{name}: {outcome.word} after {took}: {outcome.problem}; see {log}")

    def stopping(self, cause: str, running: Sequence[Job]) -> None:
        """A line that says which processes were told to end."""
        self._say(f"{cause} to {', '.join(job.name for job in running)}")

    def tick(self, running: Sequence[Job]) -> None:
        """Every ``every_s`` seconds, a line for each running process."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every_s
            for job in running:
                self._say(f"{job.name}: {snapshot(job, self._run, self._round.rows)}")

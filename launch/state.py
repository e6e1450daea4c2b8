"""In which state is every process of a round? Read from its files alone, as the board shows it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from launch.finished import missing_files, read_done
from launch.identity import Fate
from launch.lock import Launcher
from launch.plan import Job
from launch.processes import problem, read_process
from launch.progress import Snapshot, snapshot
from shared.protocol import Round, updates
from shared.records.layout import RunLayout

#: Exit codes of processes that SIGHUP, SIGINT or SIGTERM ended: asked to, they did not fail.
_STOPPED = (129, 130, 143)


class State(StrEnum):
    """One word for a process; capitals call for the user's attention."""

    WAITING = "waiting"
    STARTING = "starting"
    TRAINING = "training"
    FINISHED = "finished"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    #: Its launcher or the machine went away, and the process too: there is no exit code.
    BROKEN = "BROKEN"
    #: It runs, but its launcher is gone.
    ORPHAN = "ORPHAN"
    NOT_RUN = "not run"
    #: It was started on another machine, or the directory is a copy.
    UNKNOWN = "unknown"


RUNNING = (State.STARTING, State.TRAINING)
ENDED_BADLY = (State.STOPPED, State.FAILED, State.BROKEN, State.ORPHAN)


@dataclass(frozen=True)
class ProcessState:
    """One process: its state, how far it is, and what there is to say about it."""

    job: Job
    state: State
    snapshot: Snapshot
    note: str | None = None

    @property
    def fraction(self) -> float:
        """The part of its updates that is done, 0 to 1."""
        if self.state is State.FINISHED:
            return 1.0
        total = updates(self.snapshot.total_rows)
        return min(1.0, self.snapshot.updates / total) if total else 0.0

    @property
    def left_s(self) -> float:
        """Estimated seconds of work left: by its own speed, else by what such a process takes."""
        if self.state is State.FINISHED:
            return 0.0
        known = self.snapshot.left_s
        return self.job.expected_s * (1.0 - self.fraction) if known is None else known


@dataclass(frozen=True)
class RoundState:
    """A round: its launcher, its processes in the order of the plan, and how many run at once."""

    round: Round
    out: Path
    launcher: Launcher | None
    limit: int
    processes: tuple[ProcessState, ...]

    @property
    def running(self) -> bool:
        """Whether a launcher works for it."""
        return self.launcher is not None and self.launcher.runs

    @property
    def fraction(self) -> float:
        """The part of the work that is done, each process weighed by the time that it takes."""
        work = sum(each.job.expected_s for each in self.processes)
        return sum(each.job.expected_s * each.fraction for each in self.processes) / work

    @property
    def left_s(self) -> float:
        """Estimated seconds until the last process ends, ``limit`` at a time in their order."""
        busy = sorted(each.left_s for each in self.processes if each.state in RUNNING)
        slots = [*[0.0] * (self.limit - len(busy)), *busy]
        for each in self.processes:
            if each.state is State.WAITING:
                slots.sort()
                slots[0] += each.left_s
        return max(slots, default=0.0)


def round_state(
    chosen: Round, out: Path, jobs: Sequence[Job], *, limit: int, launcher: Launcher | None
) -> RoundState:
    """The state of a round whose processes ``jobs`` write below ``out``."""
    run = RunLayout(out)
    runs = launcher is not None and launcher.runs
    processes = tuple(process_state(job, run, chosen.rows, launched=runs) for job in jobs)
    return RoundState(chosen, out, launcher, limit, processes)


def process_state(job: Job, run: RunLayout, total_rows: int, *, launched: bool) -> ProcessState:
    """The state of one process; ``launched`` says that a launcher works for the directory."""
    seen = snapshot(job, run, total_rows)
    code = read_done(job.name, run)
    if code is not None:
        missing = missing_files(job.expected_files, run.root)
        if code == 0 and not missing:
            # Its lines of progress may be coarser than its end, and are not published.
            done = replace(seen, rows=total_rows, updates=updates(total_rows))
            return ProcessState(job, State.FINISHED, done)
        state = State.STOPPED if code in _STOPPED else State.FAILED
        return ProcessState(job, state, seen, problem(code, missing, run.log(job.name)))
    identity = read_process(job.name, run)
    if identity is None:
        return _without_process(job, run, seen, launched=launched)
    fate = identity.fate(run.root)
    if launched and fate in (Fate.RUNS, Fate.GONE):  # that it has ended will be on record at once
        return ProcessState(job, State.TRAINING if seen.updates else State.STARTING, seen)
    state, note = _WITHOUT_LAUNCHER[fate]
    return ProcessState(job, state, seen, f"{note} (pid {identity.pid})")


_WITHOUT_LAUNCHER = {
    Fate.RUNS: (State.ORPHAN, "runs on, though its launcher is gone"),
    Fate.GONE: (State.BROKEN, "ended after its launcher was gone, with no exit code on record"),
    Fate.REBOOTED: (State.BROKEN, "the machine rebooted while it ran"),
    Fate.COPIED: (State.UNKNOWN, "this directory is a copy of the one that it was started for"),
    Fate.ELSEWHERE: (State.UNKNOWN, "started on another machine"),
}


def _without_process(job: Job, run: RunLayout, seen: Snapshot, *, launched: bool) -> ProcessState:
    """The state of a process that was never started, or left nothing to know it by."""
    if launched:
        return ProcessState(job, State.WAITING, seen)
    if job.directory.exists() or run.log(job.name).exists():
        return ProcessState(job, State.UNKNOWN, seen, "no exit code and no process is on record")
    return ProcessState(job, State.NOT_RUN, seen)

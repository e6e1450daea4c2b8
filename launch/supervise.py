"""Runs a plan's processes, a few at a time, and sees every one of them to its end.

Each process leads a session of its own, so that the terminal's Ctrl-C reaches the launcher alone,
and what a process starts ends with it. Its output goes to ``<name>.log``, its exit code, when it is
known, to ``<name>.DONE``. One that fails leaves the others running.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from launch.finished import missing_files
from launch.gate import Gate, OpenGate
from launch.plan import Job
from launch.processes import problem, record_process
from launch.signals import StopSignals
from shared.errors import UserError
from shared.records.files import write_exit_code
from shared.records.layout import RunLayout
from shared.records.own_directory import OwnDirectories
from shared.variables import child_environment

#: Seconds between two looks at the processes.
POLL_S = 0.1
#: Seconds that a process has between SIGTERM and SIGKILL, to finish the line that it writes.
GRACE_S = 20.0

#: What a shell's exit status says of a command that could not be started.
NOT_STARTED, NOT_FOUND = 126, 127


@dataclass(frozen=True)
class Outcome:
    """How one process ended; ``exit_code`` is 128 + signal for one that a signal ended.

    ``problem`` says in words what was wrong, ``None`` for a process that did all of its work;
    ``stopped`` tells the launcher's doing from the process's own failure.
    """

    job: Job
    exit_code: int
    seconds: float
    problem: str | None = None
    stopped: bool = False

    @property
    def word(self) -> str:
        """``finished``, ``STOPPED`` or ``FAILED``."""
        if self.problem is None:
            return "finished"
        return "STOPPED" if self.stopped else "FAILED"


@dataclass(frozen=True)
class Result:
    """Outcomes in the order of ending, and the jobs that a stop kept from starting."""

    outcomes: tuple[Outcome, ...]
    not_started: tuple[Job, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The outcomes with a problem."""
        return tuple(outcome for outcome in self.outcomes if outcome.problem is not None)


class Watcher(Protocol):
    """Who is told what happens: plain lines or a live board.

    What it raises ends the supervisor, and with it every process: ``launch.watchers`` lets nothing
    through.
    """

    def started(self, job: Job) -> None:
        """``job``'s process runs."""

    def ended(self, outcome: Outcome) -> None:
        """A process has ended, or could not be started."""

    def stopping(self, cause: str, running: Sequence[Job]) -> None:
        """``running`` were sent a signal, because of ``cause``."""

    def tick(self, running: Sequence[Job]) -> None:
        """Called every :data:`POLL_S` seconds."""


@dataclass
class _Running:
    job: Job
    process: "subprocess.Popen[bytes]"
    begun: float
    #: The last signal that the supervisor sent.
    sent: signal.Signals | None = None


def supervise(
    jobs: Sequence[Job],
    layout: RunLayout,
    *,
    limit: int,
    watcher: Watcher,
    signals: StopSignals,
    gate: Gate | None = None,
    own: OwnDirectories | None = None,
    inherited: Mapping[str, str] = os.environ,
    grace_s: float = GRACE_S,
) -> Result:
    """Run ``jobs`` in their order, at most ``limit`` at a time, until all have ended.

    A job that ``gate`` holds back is overtaken by those behind it.

    The first stop signal sends SIGTERM to every process, and SIGKILL after ``grace_s`` seconds; a
    second one sends SIGKILL at once. Whatever happens, no process is left running.

    Once the output directory is not the launcher's ``own`` any more, every process is stopped in
    the same way, and ``UserError`` says so: neither it nor what has its name is written to.
    """
    gate, own = gate or OpenGate(), own or OwnDirectories(layout.root)
    return _Supervisor(jobs, layout, limit, watcher, signals, gate, own, inherited, grace_s).run()


class _Supervisor:
    def __init__(
        self,
        jobs: Sequence[Job],
        layout: RunLayout,
        limit: int,
        watcher: Watcher,
        signals: StopSignals,
        gate: Gate,
        own: OwnDirectories,
        inherited: Mapping[str, str],
        grace_s: float,
    ) -> None:
        self._waiting, self._gate, self._own = list(jobs), gate, own
        self._layout, self._limit, self._watcher = layout, limit, watcher
        self._signals, self._inherited, self._grace_s = signals, inherited, grace_s
        self._running: list[_Running] = []
        self._outcomes: list[Outcome] = []
        self._kill_at = float("inf")

    def run(self) -> Result:
        try:
            while self._running or (self._waiting and not self._signals.count):
                self._own.check()
                self._obey()
                # First, so that what waits takes a free place at once.
                self._collect()
                self._gate.look([each.job for each in self._running])
                self._start()
                self._watcher.tick([each.job for each in self._running])
                time.sleep(POLL_S)
        except UserError:
            self._give_up()
            raise
        finally:
            # Only an error of the launcher, or a lost directory, leaves something to kill here.
            for each in self._running:
                _signal_group(each.process, signal.SIGKILL)
        return Result(tuple(self._outcomes), tuple(self._waiting))

    def _give_up(self) -> None:
        """End every process without a word in the output directory, which is another's."""
        for stop in (signal.SIGTERM, signal.SIGKILL):
            running = [each for each in self._running if each.process.poll() is None]
            if running:
                jobs = [each.job for each in running]
                self._watcher.stopping(f"the output directory is gone: {stop.name}", jobs)
            for each in running:
                _signal_group(each.process, stop)
            deadline = time.monotonic() + self._grace_s
            while time.monotonic() < deadline and any(
                each.process.poll() is None for each in running
            ):
                time.sleep(POLL_S / 2)

    def _obey(self) -> None:
        """Pass stop signals on."""
        self._signals.look()
        if not self._signals.count:
            return
        now = time.monotonic()
        if self._kill_at == float("inf"):
            self._kill_at = now + self._grace_s
        again = self._signals.count > 1
        stop = signal.SIGKILL if again or now >= self._kill_at else signal.SIGTERM
        due = [each for each in self._running if each.sent not in (stop, signal.SIGKILL)]
        if due:
            name = self._signals.first.name if self._signals.first else ""
            late = f"no end within {self._grace_s:.0f} s"
            cause = name if stop is signal.SIGTERM else ("a second signal" if again else late)
            self._watcher.stopping(f"{cause}: {stop.name}", [each.job for each in due])
        for each in due:
            each.sent = stop
            _signal_group(each.process, stop)

    def _start(self) -> None:
        while len(self._running) < self._limit and not self._signals.count:
            running = [each.job for each in self._running]
            allowed = (each for each in self._waiting if self._gate.allows(each, running))
            if (job := next(allowed, None)) is None:
                return
            self._waiting.remove(job)
            begun = time.monotonic()
            try:
                process = self._spawn(job)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError)
                what = f"could not be started: {error.strerror} ({error.filename})"
                self._end(job, NOT_FOUND if missing else NOT_STARTED, begun, what)
                continue
            self._running.append(_Running(job, process, begun))
            self._watcher.started(job)

    def _spawn(self, job: Job) -> "subprocess.Popen[bytes]":
        self._own.check()
        with self._layout.log(job.name).open("ab") as log:
            process = subprocess.Popen(
                job.argv,
                cwd=job.cwd,
                env=child_environment(job.env, self._inherited),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            record_process(job, process.pid, self._layout)
        except OSError:
            # A process that a later start could not find again must not run on.
            _signal_group(process, signal.SIGKILL)
            process.wait()
            raise
        return process

    def _collect(self) -> None:
        """Take note of the processes that have ended."""
        for each in list(self._running):
            returned = each.process.poll()
            if returned is not None:
                # What it started and left behind.
                _signal_group(each.process, signal.SIGKILL)
                self._running.remove(each)
                # One that reports when it has ended (--no-callbacks) may be seen by no other look.
                self._gate.look([each.job])
                missing = missing_files(each.job.expected_files, self._layout.root)
                code = exit_code(returned, sent=each.sent, complete=not missing)
                stopped = each.sent is not None
                what = problem(code, missing, self._layout.log(each.job.name))
                self._end(each.job, code, each.begun, what, stopped)

    def _end(
        self, job: Job, code: int, begun: float, what: str | None, stopped: bool = False
    ) -> None:
        self._own.check()
        try:
            write_exit_code(self._layout.done(job.name), code)
        except OSError as error:
            done = self._layout.done(job.name).name
            what = f"{what or 'ended'}; {done} could not be written ({error.strerror})"
        outcome = Outcome(job, code, time.monotonic() - begun, what, stopped)
        self._outcomes.append(outcome)
        self._watcher.ended(outcome)


def exit_code(returned: int, *, sent: signal.Signals | None, complete: bool) -> int:
    """Exit code for DONE of a process that ``returned`` this to Popen.

    A process that the launcher stopped and that nevertheless says 0 is believed only if its files
    are ``complete``: it may have ended by itself just then.
    """
    if returned < 0:
        return 128 - returned
    if sent is not None and returned == 0 and not complete:
        return 128 + sent
    return returned


def run_foreground(
    argv: Sequence[str], environment: Mapping[str, str], directory: Path, signals: StopSignals
) -> int:
    """Run one short command on this terminal; its exit code, 128 + signal if one ended it.

    A stop signal is passed on. Raises ``OSError`` where the command cannot be started.
    """
    process = subprocess.Popen(argv, env=dict(environment), cwd=directory)
    passed_on = signals.count
    try:
        while (returned := process.poll()) is None:
            if signals.count > passed_on:
                passed_on = signals.count
                process.send_signal(signal.SIGTERM if signals.count == 1 else signal.SIGKILL)
            time.sleep(POLL_S / 2)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return exit_code(returned, sent=None, complete=True)


def _signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Signal the process and everything it started; a group that is gone is left alone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)

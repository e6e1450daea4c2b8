"""Real child processes under supervision: what a kill, a stop or a failure does to the others."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from launch.plan import Job
from launch.processes import describe_exit
from launch.signals import StopSignals
from launch.supervise import (
    Outcome,
    Result,
    Watcher,
    exit_code,
    run_foreground,
    supervise,
)
from launch.watchers import SafeWatcher
from shared.records.layout import RunLayout

#: Writes its process id, then sleeps; a test ends it.
SLEEPER = """
import os, sys, time
open(sys.argv[1] + ".tmp", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".tmp", sys.argv[1])
print("sleeping", flush=True)
time.sleep(60)
"""
#: As SLEEPER, deaf to SIGTERM.
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER
#: Sleeps through a child of its own; both write their process ids.
PARENT = (
    """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1] + ".child"])
"""
    + SLEEPER
)
#: Notes when it runs, for a second.
CLOCK = """
import sys, time
begun = time.time()
time.sleep(0.6)
open(sys.argv[1], "w").write(f"{begun} {time.time()}")
"""


class Log:
    """A watcher that remembers; ``on_tick`` is called as long as processes run."""

    def __init__(self, on_tick: Callable[[], None] = lambda: None) -> None:
        self.lines: list[str] = []
        self._on_tick = on_tick

    def started(self, job: Job) -> None:
        self.lines.append(f"started {job.name}")

    def ended(self, outcome: Outcome) -> None:
        self.lines.append(f"ended {outcome.job.name} {outcome.exit_code}")

    def stopping(self, cause: str, running: Sequence[Job]) -> None:
        self.lines.append(f"{cause} to {' '.join(job.name for job in running)}")

    def tick(self, running: Sequence[Job]) -> None:  # noqa: ARG002
        self._on_tick()


def job(root: Path, name: str, code: str, *arguments: str, expected: Sequence[str] = ()) -> Job:
    return Job(
        name=name,
        side="reference",
        seeds=(0,),
        argv=(sys.executable, "-c", code, str(root / f"{name}.pid"), *arguments),
        cwd=root,
        env={},
        directory=root / name,
        expected_files=tuple(root / each for each in expected),
        expected_s=1.0,
    )


def run(
    root: Path,
    jobs: Sequence[Job],
    *,
    limit: int = 9,
    watcher: Watcher | None = None,
    **more: float,
) -> Result:
    with StopSignals() as signals:
        return supervise(
            jobs, RunLayout(root), limit=limit, watcher=watcher or Log(), signals=signals, **more
        )


def done(root: Path, name: str) -> str:
    return (root / f"{name}.DONE").read_text()


def pid(root: Path, name: str) -> int:
    return int((root / f"{name}.pid").read_text())


def alive(number: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False
    )
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def when(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Does something, from a thread, once some files exist."""
    threads: list[threading.Thread] = []

    def after(paths: Sequence[Path], action: Callable[[], None]) -> None:
        def wait() -> None:
            eventually(lambda: all(path.exists() for path in paths))
            action()

        threads.append(threading.Thread(target=wait, name=request.node.name))
        threads[-1].start()

    yield after
    for thread in threads:
        thread.join(30)


def test_exit_codes_logs_and_files(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        [
            job(tmp_path, "fine", "print('out'); open('made', 'w')", expected=["made"]),
            job(tmp_path, "three", "import sys; print('bad', file=sys.stderr); sys.exit(3)"),
            job(tmp_path, "forgot", "pass", expected=["forgot/records.jsonl"]),
        ],
    )
    problems = {each.job.name: each.problem for each in result.outcomes}
    assert problems == {
        "fine": None,
        "three": "exit code 3",
        "forgot": "ended with 0 but left no forgot/records.jsonl",
    }
    assert {each.job.name for each in result.failed} == {"three", "forgot"}
    assert done(tmp_path, "fine") == done(tmp_path, "forgot") == "0\n"
    assert done(tmp_path, "three") == "3\n"
    assert (tmp_path / "fine.log").read_text() == "out\n"
    assert (tmp_path / "three.log").read_text() == "bad\n"


def test_the_last_error_of_a_log_is_part_of_the_problem(tmp_path: Path) -> None:
    says = "import sys; print('x' * 9000, flush=True); sys.exit('error: loss is NaN')"
    other = "import sys; print('error: not the last line\\nmore'); sys.exit(1)"
    result = run(tmp_path, [job(tmp_path, "a", says), job(tmp_path, "b", other)])
    assert {each.job.name: each.problem for each in result.outcomes} == {
        "a": "exit code 1, error: loss is NaN",
        "b": "exit code 1",
    }


def test_order_and_limit(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e"]
    watcher = Log()
    run(tmp_path, [job(tmp_path, name, CLOCK) for name in names], limit=2, watcher=watcher)
    assert [line for line in watcher.lines if line.startswith("started")] == [
        f"started {name}" for name in names
    ]
    spans = [tuple(map(float, (tmp_path / f"{n}.pid").read_text().split())) for n in names]
    at_once = [sum(begun <= start < ended for begun, ended in spans) for start, _ in spans]
    assert max(at_once) == 2


def test_a_killed_process_leaves_the_others_running(
    tmp_path: Path, when: Callable[..., None]
) -> None:
    when(
        [tmp_path / "victim.pid", tmp_path / "other.pid"],
        lambda: os.kill(pid(tmp_path, "victim"), signal.SIGKILL),
    )
    # The others end by themselves, only after the victim's end is on record.
    wait = "import os, time\nwhile not os.path.exists('victim.DONE'): time.sleep(0.05)\n"
    note = "import sys; open(sys.argv[1], 'w').write('0')\n"
    result = run(
        tmp_path,
        [
            job(tmp_path, "victim", SLEEPER),
            job(tmp_path, "other", note + wait + "open('result', 'w')", expected=["result"]),
            job(tmp_path, "later", "open('result2', 'w')", expected=["result2"]),
        ],
        limit=2,
    )
    assert [each.job.name for each in result.failed] == ["victim"]
    assert result.failed[0].problem == "ended by SIGKILL (exit code 137)"
    assert result.not_started == ()
    assert (done(tmp_path, "victim"), done(tmp_path, "other")) == ("137\n", "0\n")
    assert done(tmp_path, "later") == "0\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_and_marks_every_process(
    tmp_path: Path, when: Callable[..., None], number: signal.Signals
) -> None:
    when([tmp_path / "a.pid", tmp_path / "b.pid"], lambda: os.kill(os.getpid(), number))
    watcher = Log()
    jobs = [job(tmp_path, name, SLEEPER) for name in "abc"]
    result = run(tmp_path, jobs, limit=2, watcher=watcher)
    assert done(tmp_path, "a") == done(tmp_path, "b") == "143\n"
    assert f"{number.name}: SIGTERM to a b" in watcher.lines
    assert [each.name for each in result.not_started] == ["c"]
    assert not (tmp_path / "c.DONE").exists()
    assert {each.problem for each in result.outcomes} == {"ended by SIGTERM (exit code 143)"}
    assert {each.word for each in result.outcomes} == {"STOPPED"}
    assert not alive(pid(tmp_path, "a"))


def test_a_process_deaf_to_sigterm_is_killed_after_the_grace_period(
    tmp_path: Path, when: Callable[..., None]
) -> None:
    when([tmp_path / "deaf.pid"], lambda: os.kill(os.getpid(), signal.SIGTERM))
    watcher = Log()
    run(tmp_path, [job(tmp_path, "deaf", DEAF)], watcher=watcher, grace_s=1.0)
    assert done(tmp_path, "deaf") == "137\n"
    assert watcher.lines[1:3] == [
        "SIGTERM: SIGTERM to deaf",
        "no end within 1 s: SIGKILL to deaf",
    ]


def test_a_second_signal_kills_at_once(tmp_path: Path, when: Callable[..., None]) -> None:
    begun: list[float] = []
    watcher = Log()

    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: any("SIGTERM to" in line for line in watcher.lines))
        begun.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    when([tmp_path / "deaf.pid"], twice)
    run(tmp_path, [job(tmp_path, "deaf", DEAF)], watcher=watcher, grace_s=50.0)
    assert time.monotonic() - begun[0] < 10
    assert done(tmp_path, "deaf") == "137\n"
    assert "a second signal: SIGKILL to deaf" in watcher.lines


def test_what_a_process_started_ends_with_it(tmp_path: Path, when: Callable[..., None]) -> None:
    child = tmp_path / "parent.pid.child"
    when([tmp_path / "parent.pid", child], lambda: os.kill(pid(tmp_path, "parent"), signal.SIGKILL))
    run(tmp_path, [job(tmp_path, "parent", PARENT, SLEEPER)])
    eventually(lambda: not alive(int(child.read_text())))


def test_an_error_of_the_launcher_leaves_no_process_behind(tmp_path: Path) -> None:
    started = tmp_path / "a.pid"

    def fail() -> None:
        if started.exists():
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        run(tmp_path, [job(tmp_path, "a", SLEEPER)], watcher=Log(fail))
    eventually(lambda: not alive(pid(tmp_path, "a")))


class Broken(Log):
    """Fails at everything, as on a disk that is out of reach."""

    def fail(self, *_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "/OUT")

    started = ended = stopping = tick = fail  # type: ignore[assignment]


def test_a_watcher_that_fails_ends_no_process(tmp_path: Path) -> None:
    said: list[str] = []
    next_one = Log()
    jobs = [job(tmp_path, "a", CLOCK), job(tmp_path, "b", "import sys; sys.exit(3)")]
    run(tmp_path, jobs, limit=1, watcher=SafeWatcher(said.append, Broken(), next_one))
    assert (done(tmp_path, "a"), done(tmp_path, "b")) == ("0\n", "3\n")
    assert said == [
        "the lines of this round failed (OSError: [Errno 5] Input/output error: '/OUT'); it goes "
        "on with plain lines"
    ]
    assert next_one.lines == ["started a", "ended a 0", "started b", "ended b 3"]


def test_a_round_that_nobody_can_watch_goes_on_and_obeys(
    tmp_path: Path, when: Callable[..., None]
) -> None:
    said: list[str] = []
    when([tmp_path / "a.pid"], lambda: os.kill(os.getpid(), signal.SIGTERM))
    run(tmp_path, [job(tmp_path, "a", SLEEPER)], watcher=SafeWatcher(said.append, Broken()))
    assert done(tmp_path, "a") == "143\n"
    assert [line.rpartition("; ")[2] for line in said] == [
        "it goes on and what is said of it has gaps"
    ]


def test_what_cannot_be_started_is_marked_and_named(tmp_path: Path) -> None:
    absent = job(tmp_path, "absent", "pass")
    nowhere = Job(**{**vars(absent), "name": "nowhere", "cwd": tmp_path / "no such place"})
    absent = Job(**{**vars(absent), "argv": (str(tmp_path / "no-python"),)})
    plain = tmp_path / "plain-file"
    plain.touch(mode=0o644)
    refused = Job(**{**vars(absent), "name": "refused", "argv": (str(plain),)})
    result = run(tmp_path, [absent, nowhere, refused, job(tmp_path, "fine", "pass")])
    assert [done(tmp_path, n) for n in ("absent", "nowhere", "refused", "fine")] == [
        "127\n",
        "127\n",
        "126\n",
        "0\n",
    ]
    problems = [each.problem or "" for each in result.failed]
    assert "could not be started: No such file or directory" in problems[0]
    assert str(tmp_path / "no-python") in problems[0]
    assert str(tmp_path / "no such place") in problems[1]


def test_processes_have_sessions_of_their_own_and_no_terminal_input(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    run(tmp_path, [job(tmp_path, "a", code)])
    assert (tmp_path / "a.log").read_text() == "True ''\n"


def test_an_unwritable_done_file_is_a_failure_of_that_process_only(tmp_path: Path) -> None:
    (tmp_path / "a.DONE").mkdir()  # cannot be replaced by a file, even by root
    result = run(tmp_path, [job(tmp_path, "a", "pass"), job(tmp_path, "b", "pass")])
    (failed,) = result.failed
    assert failed.job.name == "a"
    assert "a.DONE could not be written" in (failed.problem or "")
    assert done(tmp_path, "b") == "0\n"


@pytest.mark.parametrize(
    ("returned", "sent", "complete", "code"),
    [
        (0, None, True, 0),
        (0, None, False, 0),
        (5, None, True, 5),
        (-9, None, True, 137),
        (-15, signal.SIGTERM, False, 143),
        (143, signal.SIGTERM, False, 143),
        (0, signal.SIGTERM, True, 0),  # it ended by itself just then
        (0, signal.SIGTERM, False, 143),  # it says 0, but its files are not there
        (1, signal.SIGTERM, False, 1),
    ],
)
def test_exit_code_on_record(
    returned: int, sent: signal.Signals | None, complete: bool, code: int
) -> None:
    assert exit_code(returned, sent=sent, complete=complete) == code


def test_exit_codes_in_words() -> None:
    assert describe_exit(1) == "exit code 1"
    assert describe_exit(137) == "ended by SIGKILL (exit code 137)"
    assert describe_exit(255) == "exit code 255"


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.count == 0
            os.kill(os.getpid(), signal.SIGINT)
            assert (signals.count, signals.first) == (1, signal.SIGINT)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_foreground_command_is_stopped_by_the_same_signals(
    tmp_path: Path, when: Callable[..., None]
) -> None:
    note = tmp_path / "x.pid"
    when([note], lambda: os.kill(os.getpid(), signal.SIGTERM))
    with StopSignals() as signals:
        command = [sys.executable, "-c", "import sys; sys.exit(4)"]
        assert run_foreground(command, os.environ, tmp_path, signals) == 4
        command = [sys.executable, "-c", SLEEPER, str(note)]
        assert run_foreground(command, os.environ, tmp_path, signals) == 143


def test_the_end_of_the_session_counts_as_one_sigterm() -> None:
    with StopSignals(os.getppid()) as alive:
        alive.look()
    assert (alive.count, alive.first) == (0, None)
    with StopSignals(os.getpid()) as orphaned:  # nobody is its own parent
        orphaned.look()
        orphaned.look()
    assert (orphaned.count, orphaned.first) == (1, signal.SIGTERM)

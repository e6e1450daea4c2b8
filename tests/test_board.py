"""The board: which state each process is in, the table at two widths, and drawing it in place.

The files in tests/test_board/ are the table as a terminal shows it; after a deliberate change,
``nox -s tests -- tests/test_board.py --force-regen`` writes them anew for review.
"""

import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from rich.console import Console

from launch import status as command
from launch.board import Board
from launch.finished import expected_files
from launch.identity import Fate, identify
from launch.lock import Launcher
from launch.places import Places
from launch.plan import Job, plan_round
from launch.processes import record_process
from launch.progress import PlainLines, Snapshot
from launch.state import ENDED_BADLY, ProcessState, RoundState, State, process_state, round_state
from launch.supervise import Outcome
from launch.table import is_live, launcher_words, rounds_view
from launch.watchers import SafeWatcher
from shared.protocol import ROUNDS, Round
from shared.records.digests import finish
from shared.records.launch_info import append_launch
from shared.records.layout import RunLayout
from shared.records.own_directory import OwnDirectories
from tests.inside import ROOT


def planned(out: Path, number: int = 3) -> dict[str, Job]:
    places = Places(ROOT, out, *[ROOT] * 6)
    return {job.name: job for job in plan_round(ROUNDS[str(number)], places).jobs}


def state(launcher: Launcher | None, *, out: Path = Path("/OUT")) -> RoundState:
    """Round 3 with a process in every state that a board may show at once."""
    jobs = planned(out)

    def each(name: str, state: State, *numbers: float, note: str | None = None) -> ProcessState:
        rows, updates, rate, evaluation = (*numbers, *[0.0] * 4)[:4]
        seen = Snapshot(int(rows), int(updates), 24_000)
        if evaluation:
            seen = replace(seen, evaluation=evaluation, evaluation_rows=int(rows) // 400 * 400)
        return ProcessState(jobs[name], state, replace(seen, rate=rate or None), note)

    processes = (
        each("ajax", State.TRAINING, 12_480, 5721, 1.05, 213.25),
        each("ref_s0", State.FINISHED, 24_000, 11_481, 0.6, 500.0),
        each("ref_s1", State.FAILED, 3200, 1081, 0.6, 21.5, note="exit code 1"),
        each("ref_s2", State.TRAINING, 11_200, 5081, 0.64, 98.0),
        each("ref_s3", State.STARTING, 160),
        each("ref_s4", State.WAITING),
    )
    return RoundState(ROUNDS["3"], out, launcher, 3, processes)


RUNS = Launcher(Fate.RUNS, 4321, time.time() + 1e6)  # in the future: an age of 0


def drawn(found: RoundState, width: int, *, colour: bool = False) -> list[str]:
    """The lines of a terminal of ``width`` columns that shows this state."""
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, no_color=not colour, highlight=False
    )
    with console.capture() as printed:
        console.print(rounds_view(console, found))
    return [line.rstrip() for line in printed.get().splitlines()]


def plain(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in lines]


@pytest.mark.parametrize("width", [80, 120])
def test_table(width: int, file_regression: FileRegressionFixture) -> None:
    lines = plain(drawn(state(RUNS), width))
    assert max(map(len, lines)) <= width
    assert not any("\u2026" in line for line in lines), "nothing is cut off"
    file_regression.check("\n".join(lines) + "\n", basename=f"table_{width}")


def test_a_narrow_terminal_cuts_and_says_so() -> None:
    lines = plain(drawn(state(RUNS), 40))
    assert max(map(len, lines)) <= 40
    assert any("\u2026" in line for line in lines)


def test_colours_mark_what_needs_attention() -> None:
    failed = next(line for line in drawn(state(RUNS), 80, colour=True) if "FAILED" in line)
    assert "\x1b[31m" in failed
    assert "\x1b[31m" not in "".join(drawn(state(RUNS), 80))


def test_time_left_packs_what_waits_onto_what_runs() -> None:
    jobs = planned(Path("/OUT"))

    def part(name: str, state: State, left: float) -> ProcessState:
        seen = Snapshot(12_000, 5481, 24_000, rate=(11_481 - 5481) / left)
        return ProcessState(jobs[name], state, seen)

    parts = (
        part("ajax", State.TRAINING, 100.0),
        part("ref_s0", State.TRAINING, 30.0),
        part("ref_s1", State.WAITING, 50.0),
        part("ref_s2", State.WAITING, 40.0),
        part("ref_s3", State.FAILED, 999.0),
    )
    assert RoundState(ROUNDS["3"], Path(), RUNS, 2, parts).left_s == pytest.approx(120.0)
    assert RoundState(ROUNDS["3"], Path(), RUNS, 4, parts).left_s == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("launcher", "words"),
    [
        (None, "no launcher on record"),
        (Launcher(Fate.GONE, 7, None, 1), "ended: not all is well"),
        (Launcher(Fate.GONE, 7, None, 130), "ended: stopped by SIGINT (exit code 130)"),
        (Launcher(Fate.GONE, 7), "BROKEN: its launcher (pid 7) was killed"),
        (Launcher(Fate.REBOOTED, 7), "BROKEN: the machine rebooted"),
        (Launcher(Fate.COPIED, 7), "a copy: whether the original still runs is unknown"),
        (Launcher(Fate.ELSEWHERE, 7), "started on another machine: whether it runs is unknown"),
    ],
)
def test_what_is_known_of_the_launcher(launcher: Launcher | None, words: str) -> None:
    assert launcher_words(launcher) == words
    assert plain(drawn(state(launcher), 119))[0] == f"round 3: {words}"


def test_a_launcher_whose_pid_is_not_on_record() -> None:
    lines = plain(drawn(state(Launcher(Fate.RUNS)), 119))
    assert lines[0] == "round 3: running, its launcher's pid is not on record"


def test_a_round_that_ended_well_and_lost_files_since() -> None:
    lost = state(Launcher(Fate.GONE, 7, None, 0))
    finished = [each for each in lost.processes if each.state is State.FINISHED]
    whole = replace(lost, processes=tuple(finished))
    assert plain(drawn(whole, 119))[0] == "round 3: ended, all is well"
    assert plain(drawn(lost, 119))[0] == (
        "round 3: ended well, but its files are not whole any more"
    )


# --- states from files ----------------------------------------------------------------------


def test_states_of_a_process_from_its_files(tmp_path: Path) -> None:
    job, run = planned(tmp_path)["ref_s0"], RunLayout(tmp_path)

    def now(*, launched: bool) -> State:
        return process_state(job, run, 24_000, launched=launched).state

    assert now(launched=True) is State.WAITING
    assert now(launched=False) is State.NOT_RUN
    record_process(job, os.getpid(), run)
    assert now(launched=True) is State.STARTING
    assert now(launched=False) is State.ORPHAN
    job.directory.mkdir()
    progress = '{"rows": 1120, "updates": 41, "wall_s": 9.0}\n'
    (job.directory / "progress.jsonl").write_text(progress)
    assert now(launched=True) is State.TRAINING
    row = json.loads(run.process("ref_s0").read_text())
    for changes, state in (
        ({"started": "1"}, State.BROKEN),
        ({"boot": "earlier"}, State.BROKEN),
        ({"directory": 1}, State.UNKNOWN),
        ({"boot": "other", "machine": "other"}, State.UNKNOWN),
    ):
        run.process("ref_s0").write_text(json.dumps(row | changes))
        assert now(launched=False) is state, changes
    run.process("ref_s0").unlink()
    assert now(launched=False) is State.UNKNOWN, "started by a version that kept no such file"
    for code, state in ((0, State.FAILED), (1, State.FAILED), (137, State.FAILED)):
        run.done("ref_s0").write_text(f"{code}\n")
        assert now(launched=True) is state
    run.done("ref_s0").write_text("143\n")
    assert now(launched=True) is State.STOPPED
    run.done("ref_s0").write_text("0\n")
    for path in job.expected_files:
        path.touch()
    assert now(launched=False) is State.FINISHED


def test_packed_records_without_lines_of_progress_have_finished(tmp_path: Path) -> None:
    for job in planned(tmp_path).values():
        run = RunLayout(tmp_path)
        run.done(job.name).write_text("0\n")
        for path in job.expected_files:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.name != "progress.jsonl":
                path.with_suffix(path.suffix.replace("jsonl", "jsonl.gz")).touch()
        seen = process_state(job, run, 24_000, launched=False)
        assert (seen.state, seen.snapshot.rows) == (State.FINISHED, 24_000)
        next(job.directory.rglob("records*")).unlink()
        assert process_state(job, run, 24_000, launched=False).state is State.FAILED


def test_the_command_on_record_names_no_place_of_this_machine(tmp_path: Path) -> None:
    run = RunLayout(tmp_path)
    for job in planned(tmp_path).values():
        record_process(job, os.getpid(), run)
        row = json.loads(run.process(job.name).read_text())
        assert row["argv"][row["argv"].index("--out") + 1] == "<out>"
        assert not any(word.startswith("/") for word in row["argv"])


# --- drawing --------------------------------------------------------------------------------


def terminal(**options: object) -> Console:
    return Console(**{"file": io.StringIO(), "force_terminal": True, "width": 100, **options})  # type: ignore[arg-type]


def test_the_board_is_drawn_once_a_second_and_events_stay_above() -> None:
    console = terminal()
    told: list[RoundState] = []

    def read() -> RoundState:
        told.append(state(RUNS))
        return told[-1]

    board = Board(read, lambda line: console.print(line), console)
    for _ in range(3):
        board.tick([])
    assert len(told) == 1, "drawn once a second"
    job = state(RUNS).processes[2].job
    board.ended(Outcome(job, 1, 200.0, "exit code 1"))
    board.tick([])
    board.stopping("SIGINT: SIGTERM", [job])
    board.close()
    print("after", file=console.file)
    lines = plain(console.file.getvalue().splitlines())  # type: ignore[attr-defined]
    ended = next(at for at, line in enumerate(lines) if "ref_s1: FAILED after 3 min" in line)
    stopping = next(at for at, line in enumerate(lines) if "SIGTERM to ref_s1" in line)
    last = max(at for at, line in enumerate(lines) if "round 3: running" in line)
    assert ended < stopping < last
    assert lines[-1].endswith("after")


def test_where_no_board_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert is_live(terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not is_live(terminal())
    assert not is_live(terminal(force_terminal=False))


def test_a_board_that_fails_gives_way_to_lines(tmp_path: Path) -> None:
    """A directory that cannot be looked at for a moment, as on a network disk."""
    job = planned(tmp_path)["ref_s0"]
    said: list[str] = []
    lines = PlainLines(ROUNDS["3"], RunLayout(tmp_path), said.append, 0.0)

    def read() -> RoundState:
        tmp_path.joinpath("gone").stat()
        raise AssertionError

    watcher = SafeWatcher(said.append, Board(read, said.append, terminal()), lines)
    watcher.started(job)
    assert said == []
    watcher.tick([job])
    watcher.ended(Outcome(job, 3, 4.0, "exit code 3"))
    watcher.close()
    failed, progress, ended = said
    assert failed.startswith("the board of this round failed (FileNotFoundError: ")
    assert failed.endswith("); it goes on with plain lines")
    assert progress.startswith("ref_s0: nothing recorded yet")
    assert ended.startswith("ref_s0: FAILED after 4 s: exit code 3; see ")


# --- the command ----------------------------------------------------------------------------


def status(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "launch.status", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def planned_round(out: Path, chosen: Round, *sides: str) -> None:
    fields = {"round": chosen.name, "smoke": "no", "sides": " ".join(sides), "jobs": "2"}
    fields |= {name: str(getattr(chosen, name)) for name in ("rows", "every", "episodes")}
    append_launch(out / "launch_info.txt", fields | {"seeds": " ".join(map(str, chosen.seeds))})


def test_status_shows_the_sides_that_were_started(tmp_path: Path) -> None:
    chosen = replace(ROUNDS["2"], seeds=(4, 7), rows=4000)
    planned_round(tmp_path, chosen, "ajax")
    code, output = status("--root", str(tmp_path))
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()[2:]] == ["ajax", "total:"]
    planned_round(tmp_path, chosen, "reference")
    (tmp_path / "ref_s7.DONE").write_text("1\n")
    before = sorted(tmp_path.rglob("*"))
    code, output = status("--root", str(tmp_path))
    assert code == 1
    assert [line.split()[:3] for line in output.splitlines()[2:5]] == [
        ["ajax", "not", "run"],
        ["ref_s4", "not", "run"],
        ["ref_s7", "FAILED", "0/4000"],
    ]
    assert sorted(tmp_path.rglob("*")) == before, "looking writes nothing"


def test_a_launcher_that_was_killed_between_processes_ended_badly(tmp_path: Path) -> None:
    planned_round(tmp_path, ROUNDS["1"], "ajax")
    row = {"format": 1, "since": time.time(), "exit_code": None}
    row |= identify(os.getpid(), tmp_path).to_json()
    for changes, words in (
        ({"started": "1"}, "was killed"),
        ({"boot": "earlier"}, "rebooted"),
        ({"directory": 1}, "a copy"),
        ({"exit_code": 1}, "not all is well"),
        ({}, "running"),
    ):
        (tmp_path / "launcher.json").write_text(json.dumps(row | changes))
        code, output = status("--root", str(tmp_path))
        assert words in output.splitlines()[0]
        assert code == (0 if words in ("a copy", "running") else 1), words


def test_status_names_a_file_that_was_changed_since_its_process_ended(tmp_path: Path) -> None:
    chosen = replace(ROUNDS["1"], seeds=(4,))
    planned_round(tmp_path, chosen, "reference")
    run = RunLayout(tmp_path)
    for path in expected_files(chosen, "reference", (4,), run):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n")
    finish(run, "ref_s4", OwnDirectories(tmp_path))
    assert status("--root", str(tmp_path))[0] == 0
    (tmp_path / "ref_s4" / "records.jsonl").write_text("{}\n{")
    code, output = status("--root", str(tmp_path))
    assert code == 1
    assert output.splitlines()[-1].startswith(f"{tmp_path}/ref_s4/records.jsonl was changed since")


def test_status_shows_the_parts_of_a_round_one_after_the_other(tmp_path: Path) -> None:
    for name in ("4-exact", "4-literal"):
        assert status("--root", str(tmp_path))[0] == (2 if name == "4-exact" else 0)
        (tmp_path / ROUNDS[name].part).mkdir()
        planned_round(tmp_path / ROUNDS[name].part, ROUNDS[name], "ajax")
    code, output = status("--root", str(tmp_path))
    assert code == 0
    lines = output.splitlines()
    assert lines[0].startswith("round 4-literal: ")
    assert lines[4:6] == ["", "round 4-exact: no launcher on record"]
    (tmp_path / "literal" / "ajax.DONE").write_text("1\n")
    assert status("--root", str(tmp_path))[0] == 1, "one part is enough"
    assert status("--root", str(tmp_path / "exact"))[0] == 0


def test_a_part_of_which_nothing_is_on_record_is_named(tmp_path: Path) -> None:
    literal, exact = tmp_path / "literal", tmp_path / "exact"
    literal.mkdir()
    planned_round(literal, ROUNDS["4-literal"], "ajax")
    alone = status("--root", str(literal))
    assert alone[0] == 0
    for why in ("is not there", "holds no launch_info.txt"):
        said = f"{exact}: {why}, so that it is not shown; has it been started?\n"
        assert status("--root", str(tmp_path)) == (0, alone[1] + said)
        exact.mkdir(exist_ok=True)
    assert status("--root", str(literal)) == alone


def test_a_round_of_parts_is_watched_until_its_launcher_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two parts no lock is held, and the second may have no directory yet."""
    launcher = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    waits = 0

    def part(name: str, exit_code: int | None) -> None:
        out = tmp_path / ROUNDS[name].part
        if not out.exists():
            out.mkdir()
            planned_round(out, ROUNDS[name], "ajax")
        row = {"format": 1, "since": time.time(), "exit_code": exit_code}
        row |= identify(launcher.pid, out).to_json()
        (out / "launcher.json").write_text(json.dumps(row))

    def sleep(_: float) -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            part("4-exact", None)
        if waits == 3:
            part("4-exact", 0)
            launcher.communicate(b"end\n")

    part("4-literal", 0)
    monkeypatch.setattr(command.time, "sleep", sleep)
    assert [each.out.name for each in command.watch(tmp_path / "literal", terminal())] == [
        "literal"
    ]
    assert waits == 0, "one part alone has ended"
    assert [each.out.name for each in command.watch(tmp_path, terminal())] == ["literal", "exact"]
    assert waits == 3


@pytest.mark.parametrize("text", [None, "reference: <reference-checkout> @ abcdef0\n"])
def test_what_is_no_round_is_one_line(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "launch_info.txt").write_text(text)
    code, output = status("--root", str(tmp_path))
    assert (code, output.count("\n")) == (2, 1)
    assert output.startswith(f"error: {tmp_path}")


def test_watching_ends_with_the_round(tmp_path: Path) -> None:
    planned_round(tmp_path, ROUNDS["1"], "ajax")
    (tmp_path / "ajax.DONE").write_text("137\n")
    assert status("--root", str(tmp_path), "--watch")[0] == 1


def test_a_board_reads_the_round_of_the_plan(tmp_path: Path) -> None:
    jobs: Sequence[Job] = tuple(planned(tmp_path, 1).values())
    found = round_state(ROUNDS["1"], tmp_path, jobs, limit=2, launcher=RUNS)
    assert [each.state for each in found.processes] == [State.WAITING] * 4
    assert found.fraction == 0.0
    assert found.left_s > 0.0
    assert not any(each.state in ENDED_BADLY for each in found.processes)

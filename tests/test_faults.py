"""A round in which something breaks; kills and stops of it are in test_round and test_resume."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch.plan import Job
from launch.signals import StopSignals
from launch.supervise import supervise
from shared.records.jsonl import read_jsonl
from shared.records.layout import RunLayout
from tests.inside import ROOT
from tests.rounds import AJAX_ALONE, Launch, end, pid_of, wait_for
from tests.test_supervise import Log, eventually


def status(out: Path) -> tuple[int, str]:
    """What ``python -m launch.status`` says of a directory."""
    command = [sys.executable, "-m", "launch.status", "--root", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def launcher_pid(out: Path) -> int:
    return int(json.loads((out / "launcher.json").read_text())["pid"])


# --- a disk that takes no more --------------------------------------------------------------


def test_a_file_size_limit_during_a_record_loses_nothing(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    code, output = end(launch(*AJAX_ALONE, actions="ajax:limit"))
    assert code == 1
    assert "FAILED ajax: exit code 1; log: " in output
    assert "File too large" in (out / "ajax.log").read_text()
    text = (out / "ajax" / "records.jsonl").read_text()
    whole = [row["rows"] for _, row in read_jsonl(out / "ajax" / "records.jsonl")]
    assert whole == list(range(400, 400 * len(whole) + 1, 400))
    assert len(whole) > 20
    code, output = end(launch(*AJAX_ALONE))
    assert code == 0, output
    assert (out / "aside" / "ajax.1" / "ajax" / "records.jsonl").read_text() == text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_during_a_record_loses_nothing(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    code, output = end(launch(*AJAX_ALONE, actions="ajax:full"))
    assert code == 1
    assert "FAILED ajax: exit code 1; log: " in output
    assert "No space left on device" in (out / "ajax.log").read_text()
    assert end(launch(*AJAX_ALONE))[0] == 0
    kept = out / "aside" / "ajax.1" / "ajax" / "evals.jsonl"
    assert json.loads(kept.read_text()) == {"rows": 400, "mean": 9.5}


def test_a_process_that_cannot_be_noted_does_not_run_on(tmp_path: Path) -> None:
    """A later start could not find it: it would run on beside its successor."""
    (tmp_path / "a.json").mkdir()  # cannot be replaced by a file, even by root
    command = (sys.executable, "-c", "import time; time.sleep(1); open('made', 'w')")
    job = Job("a", "ajax", (0,), command, tmp_path, {}, tmp_path / "a", (), 1.0)
    with StopSignals() as signals:
        result = supervise([job], RunLayout(tmp_path), limit=1, watcher=Log(), signals=signals)
    (failed,) = result.failed
    assert "a.json" in (failed.problem or "")
    assert (tmp_path / "a.DONE").read_text() == "126\n"
    time.sleep(1.2)
    assert not (tmp_path / "made").exists()


# --- two launchers --------------------------------------------------------------------------


def test_a_second_launcher_is_refused_in_one_line(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    first = launch(*AJAX_ALONE, actions="ajax:wait")
    wait_for(out / "ajax" / "pid", first)
    for arguments in (AJAX_ALONE, (*AJAX_ALONE, "--detach")):
        code, output = end(launch(*arguments))
        assert (code, output.count("\n")) == (2, 1), output
        assert f"pid {first.pid} is running this round" in output
    assert not (out / "aside").exists()
    assert first.poll() is None
    first.terminate()
    assert end(first)[0] == 143


def test_of_two_launchers_at_once_one_runs(tmp_path: Path, launch: Launch) -> None:
    both = [launch(*AJAX_ALONE, actions="ajax:train=3") for _ in range(2)]
    ends = [end(process) for process in both]
    assert sorted(code for code, _ in ends) == [0, 2], ends
    assert not (tmp_path / "out" / "aside").exists()
    info = (tmp_path / "out" / "launch_info.txt").read_text()
    assert info.count("launched:") == 1


# --- a detached round -----------------------------------------------------------------------


def test_a_detached_round_goes_on_without_its_terminal(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    begun = time.monotonic()
    code, output = end(launch(*AJAX_ALONE, "--detach", actions="ajax:train=4"))
    assert code == 0, output
    assert time.monotonic() - begun < 30
    pid = launcher_pid(out)
    assert f"detached: launcher pid {pid}, output in {out}/launch.log" in output
    assert os.getsid(pid) == pid, "Ctrl-C and a closed terminal do not reach it"
    assert status(out)[0] == 0
    eventually(lambda: json.loads((out / "launcher.json").read_text())["exit_code"] == 0, 60)
    assert "1 of 1 process finished" in (out / "launch.log").read_text()
    code, output = status(out)
    assert code == 0
    assert output.splitlines()[0] == "round 1 (smoke): ended, all is well"
    assert "ajax     finished  1600/1600  281/281" in output


def test_a_detached_round_is_stopped_by_a_signal(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    process = launch(*AJAX_ALONE, "--detach", actions="ajax:wait")
    assert end(process)[0] == 0
    eventually((out / "ajax" / "pid").exists)
    os.kill(launcher_pid(out), signal.SIGTERM)
    eventually(lambda: json.loads((out / "launcher.json").read_text())["exit_code"] == 143)
    code, output = status(out)
    assert code == 1
    assert output.splitlines()[0] == "round 1 (smoke): ended: stopped by SIGTERM (exit code 143)"
    assert "ajax: ended by SIGTERM (exit code 143); log: " in output


@pytest.fixture
def broken(tmp_path: Path, launch: Launch) -> Path:
    """A detached round whose launcher and processes were killed, as by a loss of power."""
    out = tmp_path / "out"
    assert end(launch(*AJAX_ALONE, "--detach", actions="ajax:wait"))[0] == 0
    eventually((out / "ajax" / "pid").exists)
    os.kill(launcher_pid(out), signal.SIGKILL)
    os.killpg(pid_of(out, "ajax"), signal.SIGKILL)
    return out


def rewrite(out: Path, **changes: object) -> None:
    """Change what the launcher and its process are known by."""
    for name in ("launcher.json", "ajax.json"):
        row = json.loads((out / name).read_text())
        (out / name).write_text(json.dumps(row | changes))


def test_a_killed_round_is_told_from_its_files(broken: Path, launch: Launch) -> None:
    code, output = status(broken)
    assert code == 1
    assert "BROKEN: its launcher (pid " in output.splitlines()[0]
    assert "ajax     BROKEN" in output
    assert "ended after its launcher was gone, with no exit code on record" in output
    assert "to continue, start the same round again" in output
    assert end(launch(*AJAX_ALONE))[0] == 0
    assert status(broken)[0] == 0


def test_a_reboot_is_told_from_its_files(broken: Path, launch: Launch) -> None:
    rewrite(broken, boot="the boot before", pid=os.getpid())
    code, output = status(broken)
    assert code == 1
    assert output.splitlines()[0] == "round 1 (smoke): BROKEN: the machine rebooted"
    assert "ajax: the machine rebooted while it ran" in output
    code, output = end(launch(*AJAX_ALONE))
    assert code == 0, output
    assert "taking over: BROKEN: the machine rebooted" in output
    assert (broken / "aside" / "ajax.1" / "ajax" / "pid").exists()


def test_of_a_copied_directory_nothing_is_claimed(
    broken: Path, launch: Launch, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(broken, copy)
    code, output = status(copy)
    assert code == 0
    assert "a copy: whether the original still runs is unknown" in output
    assert "ajax     unknown" in output
    rewrite(copy, boot="another", machine="another")
    assert status(copy)[1] == output
    # It is continued as any other; what may run for the original is left alone.
    code, output = end(launch(*AJAX_ALONE, "--out", str(copy)))
    assert code == 0, output


def test_processes_of_the_original_are_left_alone_by_a_copy(tmp_path: Path, launch: Launch) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    process = launch(*AJAX_ALONE, actions="ajax:wait")
    wait_for(out / "ajax" / "pid", process)
    shutil.copytree(out, copy)
    code, output = end(launch(*AJAX_ALONE, "--out", str(copy)))
    assert code == 0, output
    assert "runs on without its launcher" not in output
    os.kill(pid_of(out, "ajax"), 0)
    process.terminate()
    assert end(process)[0] == 143


# --- a clock that is set back ---------------------------------------------------------------


def test_a_clock_set_back_makes_no_age_or_time_left_negative(
    tmp_path: Path, launch: Launch
) -> None:
    out = tmp_path / "out"
    process = launch(*AJAX_ALONE, actions="ajax:wait")
    wait_for(out / "ajax" / "pid", process)
    row = json.loads((out / "launcher.json").read_text())
    (out / "launcher.json").write_text(json.dumps(row | {"since": time.time() + 9000}))
    lines = [(1120, 41, 900.0), (1280, 121, 40.0), (1440, 201, 80.0)]  # set back by an hour
    (out / "ajax" / "progress.jsonl").write_text(
        "".join(json.dumps({"rows": r, "updates": u, "wall_s": s}) + "\n" for r, u, s in lines)
    )
    code, output = status(out)
    assert code == 0
    assert f"running, launcher pid {process.pid}, started 0 s ago" in output
    assert "ajax     training  1440/1600  201/281   2.00" in output
    assert "  40 s" in output
    assert "-" not in output.replace(str(out), "")
    process.terminate()
    assert end(process)[0] == 143


# --- packing --------------------------------------------------------------------------------


@pytest.mark.usefixtures("reference")
def test_a_round_takes_little_longer_than_its_work(tmp_path: Path, launch: Launch) -> None:
    """At most 1.05 times the work of its processes over how many run at once.

    From the start of the first process to the end of the last on record: what comes before and
    after takes seconds, of a round's hours. Work is from a process's start to its last file. The
    round's own order packs them: the two short processes follow one another beside the long one.
    """
    out = tmp_path / "out"
    seconds = {"ref_s0": 10, "ref_s1": 5, "ajax": 5}
    actions = ",".join(f"{name}:train={each}" for name, each in seconds.items())
    code, output = end(launch("--jobs", "2", "--no-compare", "--no-compile-cache", actions=actions))
    assert code == 0, output
    begun = {name: (out / f"{name}.json").stat().st_mtime for name in seconds}
    ended = {name: (out / f"{name}.DONE").stat().st_mtime for name in seconds}
    last = {
        name: max(path.stat().st_mtime for path in (out / name).rglob("*") if path.is_file())
        for name in seconds
    }
    work = sum(last[name] - begun[name] for name in seconds)
    wall = max(ended.values()) - min(begun.values())
    assert work > 0.95 * sum(seconds.values()), "they have worked"
    assert wall <= 1.05 * work / 2, output

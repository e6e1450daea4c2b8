"""A second start of a round: what it runs, what it keeps, and when it refuses."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from launch.info import code_digest
from shared.records.launch_info import read_launches
from tests.inside import ROOT
from tests.rounds import AJAX_ALONE, Launch, end, git, pid_of, wait_for

BOTH = ("--no-compare", "--jobs", "3")


def contents(out: Path) -> dict[str, bytes]:
    """Every file of a round but the launcher's own record of when it last looked."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != "launcher.json"
    }


def kill_launcher(process: "subprocess.Popen[str]", out: Path, *names: str) -> list[int]:
    """Kill the launcher once the processes ``names`` are at work; their pids."""
    for name in names:
        wait_for(out / name / "pid", process)
    pids = [pid_of(out, name) for name in names]
    process.kill()
    process.communicate()
    return pids


@pytest.mark.usefixtures("reference")
def test_only_what_did_not_finish_runs_again(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    code, output = end(launch(*BOTH, actions="ref_s1:fail,ajax:forget"))
    assert code == 1, output
    before = contents(out)
    code, output = end(launch(*BOTH))
    assert code == 0, output
    assert "finished already, not run again: ref_s0" in output
    assert "2 processes, at most 3 at a time: ref_s1 ajax" in output
    assert "3 of 3 processes finished" in output
    after = contents(out)
    for path, content in before.items():
        name = path.split("/")[0].split(".")[0]
        moved = f"aside/{name}.1/{path}" if name in ("ref_s1", "ajax") else path
        if path != "launch_info.txt":
            assert after[moved] == content, f"{path} is lost"
    assert (after["ref_s1.DONE"], after["aside/ref_s1.1/ref_s1.DONE"]) == (b"0\n", b"3\n")
    launches = read_launches(out / "launch_info.txt")
    assert after["launch_info.txt"].startswith(before["launch_info.txt"])
    assert [each.sides for each in launches] == [("reference", "ajax")] * 2


def test_every_failed_start_has_a_place_of_its_own(tmp_path: Path, launch: Launch) -> None:
    for _ in range(3):
        assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    aside = tmp_path / "out" / "aside"
    assert sorted(path.name for path in aside.iterdir()) == ["ajax.1", "ajax.2"]
    for place in aside.iterdir():
        assert sorted(path.name for path in place.iterdir()) == [
            "ajax",
            "ajax.DONE",
            "ajax.json",
            "ajax.log",
        ]


def test_a_finished_round_is_only_compared_again(tmp_path: Path, launch: Launch) -> None:
    assert end(launch(*AJAX_ALONE))[0] == 0
    before = contents(tmp_path / "out")
    # Nothing is to be run, so that code and environment do not matter.
    code, output = end(launch(*AJAX_ALONE, "--ajax-python", "/nowhere"))
    assert code == 0, output
    assert "finished already, not run again: ajax" in output
    assert "] scan:" in output
    assert contents(tmp_path / "out") == before, "a start that ran nothing is not on record"
    (tmp_path / "out" / "ajax" / "notes.txt").write_text("/" + "home/somebody/run")
    assert end(launch(*AJAX_ALONE))[0] == 1, "it ends by what follows the processes"


@pytest.mark.usefixtures("reference")
def test_a_side_that_was_never_started_is_added(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    assert end(launch(*AJAX_ALONE))[0] == 0
    (out / "ajax" / "kept").touch()
    # The code and environment of the side that has finished do not matter any more.
    code, output = end(launch(*BOTH, AJAX_XLA_FLAGS=""))
    assert code == 0, output
    assert "2 processes, at most 3 at a time: ref_s0 ref_s1" in output
    assert (out / "ajax" / "kept").exists()
    launches = read_launches(out / "launch_info.txt")
    assert [each.sides for each in launches] == [("ajax",), ("reference",)]


def test_a_dry_run_says_what_would_be_run(tmp_path: Path, launch: Launch) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    before = contents(tmp_path / "out")
    code, output = end(launch(*AJAX_ALONE, "--dry-run"))
    assert code == 0
    assert output.splitlines()[-1].startswith("as things are, ajax: what it left is moved")
    assert contents(tmp_path / "out") == before
    assert end(launch(*AJAX_ALONE))[0] == 0
    _, output = end(launch(*AJAX_ALONE, "--dry-run"))
    assert output.splitlines()[-1] == "as things are, ajax: has finished, is not run again"


@pytest.mark.usefixtures("reference")
def test_what_finishes_after_its_launcher_was_killed_has_finished(
    tmp_path: Path, launch: Launch
) -> None:
    out = tmp_path / "out"
    process = launch("--no-compare", "--jobs", "2", actions="ref_s0:late=2,ref_s1:wait")
    _, pid = kill_launcher(process, out, "ref_s0", "ref_s1")
    deadline = time.monotonic() + 30
    while not (out / "ref_s0.DONE").exists():
        assert time.monotonic() < deadline, "it did not say that it has finished"
        time.sleep(0.05)
    code, output = end(launch("--no-compare", "--dry-run"))
    assert code == 0, output
    assert "as things are, ref_s0: has finished, is not run again" in output
    assert f"as things are, ref_s1: pid {pid} runs on without its launcher, is stopped" in output
    code, output = end(launch("--no-compare"))
    assert code == 0, output
    assert "finished already, not run again: ref_s0" in output
    assert not (out / "aside" / "ref_s0.1").exists()


def test_a_dry_run_names_the_difference_that_a_start_refuses(
    tmp_path: Path, launch: Launch
) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    before = contents(tmp_path / "out")
    more = {"AJAX_XLA_FLAGS": "--xla_other=1"}
    for words in ((), ("--dry-run",)):
        code, output = end(launch(*AJAX_ALONE, *words, **more))
        assert code == 2
        assert "AJAX_XLA_FLAGS was --a=b at the first start, is --xla_other=1 now" in output
    assert "\nnot possible as things are: " in output
    assert contents(tmp_path / "out") == before


# --- when it refuses ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rows", "1200"), "was started with rows 1600, this start asks for 1200"),
        (("--seeds", "3", "4"), "was started with seeds 0 1, this start asks for 3 4"),
        (("--episodes", "3"), "was started with episodes 2, this start asks for 3"),
        (("--every", "800"), "was started with every 400, this start asks for 800"),
    ],
)
def test_another_plan_is_refused(
    tmp_path: Path, launch: Launch, arguments: tuple[str, ...], said: str
) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    refused(tmp_path, launch(*AJAX_ALONE, *arguments), said)


def test_another_round_or_size_is_refused(tmp_path: Path, launch: Launch) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    said = "was started with round 1, this start asks for 2"
    refused(tmp_path, launch(*AJAX_ALONE, of=("--round", "2", "--smoke")), said)
    said = "was started with smoke yes, this start asks for no"
    refused(tmp_path, launch(*AJAX_ALONE, of=("--round", "1")), said)


def test_other_flags_or_packages_are_refused(tmp_path: Path, launch: Launch) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    said = "AJAX_XLA_FLAGS was --a=b at the first start, is empty now; set AJAX_XLA_FLAGS as it"
    refused(tmp_path, launch(*AJAX_ALONE, AJAX_XLA_FLAGS=""), said)
    said = "ajax python was 3.99.1, jax 0.7.2 at the first start, is 3.99.1, jax 0.8.0 now; use"
    refused(tmp_path, launch(*AJAX_ALONE, STAND_IN_JAX="0.8.0"), said)
    said = "ajax packages was sha256 "
    refused(tmp_path, launch(*AJAX_ALONE, STAND_IN_MORE="flax"), said)


def test_other_code_is_refused(tmp_path: Path, launch: Launch, ajax_root: Path) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    source = ajax_root / "src" / "ajax" / "__init__.py"
    source.write_text("x = 1\n")
    said = "; dirty: no at the first start, is <ajax-root> @ "
    refused(tmp_path, launch(*AJAX_ALONE), said)
    git(ajax_root, "commit", "--quiet", "-am", "x")
    refused(
        tmp_path,
        launch(*AJAX_ALONE),
        f"is <ajax-root> @ {git(ajax_root, 'rev-parse', 'HEAD')[:12]}",
    )
    git(ajax_root, "checkout", "--quiet", "HEAD~")
    assert end(launch(*AJAX_ALONE))[0] == 0, "back at the first start's code"


def test_a_start_that_recorded_too_little_is_refused(tmp_path: Path, launch: Launch) -> None:
    assert end(launch(*AJAX_ALONE, actions="ajax:fail"))[0] == 1
    info = tmp_path / "out" / "launch_info.txt"
    lines = info.read_text().splitlines(keepends=True)
    info.write_text("".join(line for line in lines if not line.startswith("ajax code: ")))
    refused(tmp_path, launch(*AJAX_ALONE), "the first start recorded no 'ajax code'")


def test_the_project_code_of_a_side_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("ref_side", "ajax_side", "shared", "launch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("a = 1\n")
    first = code_digest(tmp_path, "reference"), code_digest(tmp_path, "ajax")
    (tmp_path / "launch" / "a.py").write_text("a = 2\n")
    assert (code_digest(tmp_path, "reference"), code_digest(tmp_path, "ajax")) == first
    (tmp_path / "ref_side" / "a.py").write_text("a = 2\n")
    assert code_digest(tmp_path, "reference") != first[0]
    assert code_digest(tmp_path, "ajax") == first[1]
    (tmp_path / "shared" / "b.py").write_text("")
    assert code_digest(tmp_path, "ajax") != first[1]
    assert len({code_digest(ROOT, "reference"), code_digest(ROOT, "ajax")}) == 2


def refused(tmp_path: Path, process: "subprocess.Popen[str]", said: str) -> None:
    """The start ends with one line that has ``said`` in it, and nothing has changed."""
    before = contents(tmp_path / "out")
    code, output = end(process)
    assert (code, output.count("\n")) == (2, 1), output
    assert said in output
    assert "--out" in output
    assert contents(tmp_path / "out") == before


# --- after a stop ---------------------------------------------------------------------------


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_round_goes_on(tmp_path: Path, launch: Launch, number: signal.Signals) -> None:
    out = tmp_path / "out"
    process = launch("--no-compare", "--jobs", "2", actions="ref_s1:wait,ajax:wait")
    for name in ("ref_s1", "ajax"):
        wait_for(out / name / "pid", process)
    process.send_signal(number)
    assert end(process)[0] == 128 + number
    kept = contents(out)
    code, output = end(launch("--no-compare"))
    assert code == 0, output
    assert "finished already, not run again: ref_s0" in output
    assert contents(out)["aside/ref_s1.1/ref_s1/evals.jsonl"] == kept["ref_s1/evals.jsonl"]
    assert contents(out)["aside/ref_s1.1/ref_s1.DONE"] == b"143\n"


@pytest.mark.usefixtures("reference")
def test_a_killed_launchers_processes_do_not_run_on_beside_new_ones(
    tmp_path: Path, launch: Launch
) -> None:
    out = tmp_path / "out"
    process = launch("--no-compare", "--jobs", "2", actions="ref_s1:wait,ajax:wait")
    orphans = kill_launcher(process, out, "ref_s1", "ajax")
    os.kill(orphans[0], 0)  # it runs on
    code, output = end(launch("--no-compare"))
    assert code == 0, output
    assert f"taking over: BROKEN: its launcher (pid {process.pid}) was killed" in output
    for name, pid in zip(("ref_s1", "ajax"), orphans, strict=True):
        assert f"{name}: pid {pid} runs on without its launcher: SIGTERM" in output
        assert (out / "aside" / f"{name}.1" / name / "pid").read_text() == str(pid)
    assert not any(map(runs, orphans))
    assert "finished already, not run again: ref_s0" in output
    assert "3 of 3 processes finished" in output


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

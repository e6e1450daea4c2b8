"""Which process a record means, when pids are reused, machines reboot and folders are copied."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from launch.identity import Fate, Identity, identify, start_of


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_process_that_runs_and_has_ended(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    recorded = identify(sleeper.pid, tmp_path)
    assert Identity.from_json(recorded.to_json()) == recorded
    assert recorded.fate(tmp_path) is Fate.RUNS
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert recorded.fate(tmp_path) is Fate.GONE, "ended, its parent has not noticed yet"
    sleeper.wait()
    assert recorded.fate(tmp_path) is Fate.GONE
    assert start_of(sleeper.pid) is None


def test_a_pid_that_another_program_has(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    recorded = identify(sleeper.pid, tmp_path)
    assert replace(recorded, started="1").fate(tmp_path) is Fate.GONE


def test_another_boot_machine_or_directory(tmp_path: Path) -> None:
    here = identify(os.getpid(), tmp_path)
    assert replace(here, boot="earlier").fate(tmp_path) is Fate.REBOOTED
    assert replace(here, boot="other", machine="other").fate(tmp_path) is Fate.ELSEWHERE
    copy = tmp_path / "copy"
    copy.mkdir()
    assert here.fate(copy) is Fate.COPIED, "the process works for the original"


@pytest.mark.skipif(sys.platform != "linux", reason="renames itself through prctl, Linux only")
def test_a_name_with_parentheses_and_blanks(tmp_path: Path) -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) Z 1 (b', 0, 0, 0); print(flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert identify(process.pid, tmp_path).fate(tmp_path) is Fate.RUNS
        started = start_of(process.pid)
        assert started is not None
        assert started.isdecimal()
    finally:
        process.kill()
        process.communicate()


def test_a_start_is_what_earlier_versions_recorded() -> None:
    stat = Path(f"/proc/{os.getpid()}/stat")
    if not stat.exists():
        pytest.skip("they read /proc")
    assert start_of(os.getpid()) == stat.read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize("row", [{}, {"pid": 1}, {"pid": "x", "started": "1"}, {"pid": None}])
def test_what_is_no_identity_is_none(row: dict[str, object]) -> None:
    assert Identity.from_json(row) is None

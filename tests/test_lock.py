"""One launcher a directory: two are refused, and what a dead one left is no obstacle."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launch import lock
from launch.identity import Fate, identify
from launch.lock import RoundLock, inspect, refuse
from shared.errors import UserError
from tests.inside import ROOT

HOLDER = """
import sys, time
from pathlib import Path
from launch.lock import RoundLock
with RoundLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the lock of tmp_path."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def plant(out: Path, **changes: Any) -> None:
    """A ``launcher.json`` that names this process, with changes."""
    row = {"format": 1, "since": time.time(), "exit_code": None}
    row |= identify(os.getpid(), out).to_json()
    (out / "launcher.json").write_text(json.dumps(row | changes))


def test_the_second_is_refused_and_told_of_the_first(
    tmp_path: Path, holder: "subprocess.Popen[str]"
) -> None:
    before = (tmp_path / "launcher.json").read_bytes()
    with pytest.raises(UserError, match=rf"pid {holder.pid} is running this round; watch it"):
        RoundLock(tmp_path).__enter__()
    assert (tmp_path / "launcher.json").read_bytes() == before
    found = inspect(tmp_path)
    assert found is not None
    assert (found.runs, found.pid) == (True, holder.pid)


@pytest.mark.usefixtures("holder")
def test_a_lock_that_is_held_without_a_record_names_no_pid(tmp_path: Path) -> None:
    (tmp_path / "launcher.json").unlink()
    found = inspect(tmp_path)
    assert found is not None
    assert (found.runs, found.pid) == (True, None)
    words = "another launcher, whose pid is not on record, is running this round; watch it"
    with pytest.raises(UserError, match=words):
        refuse(tmp_path, found)
    with pytest.raises(UserError, match=words) as caught:
        RoundLock(tmp_path).__enter__()
    assert "None" not in str(caught.value)


def test_a_killed_launcher_leaves_no_lock(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    holder.kill()
    holder.wait()
    found = inspect(tmp_path)
    assert found is not None
    assert (found.fate, found.exit_code) == (Fate.GONE, None)
    with RoundLock(tmp_path) as taken:
        assert taken.broken is not None
        assert taken.broken.pid == holder.pid


def test_one_that_came_to_its_end_left_nothing_broken(tmp_path: Path) -> None:
    with RoundLock(tmp_path) as first:
        assert first.broken is None
        first.record(1)
    found = inspect(tmp_path)
    assert found is not None
    assert (found.runs, found.exit_code) == (False, 1)
    with RoundLock(tmp_path) as second:
        assert second.broken is None


@pytest.mark.parametrize(
    ("changes", "fate"),
    [
        ({"pid": 2**22 + 1}, Fate.GONE),  # beyond the largest pid
        ({"started": "1"}, Fate.GONE),  # this pid, but another program
        ({"boot": "earlier"}, Fate.REBOOTED),
        ({"directory": 1}, Fate.COPIED),
    ],
)
def test_a_stale_record_is_taken_over(tmp_path: Path, changes: dict[str, Any], fate: Fate) -> None:
    plant(tmp_path, **changes)
    found = inspect(tmp_path)
    assert found is not None
    assert found.fate is fate
    with RoundLock(tmp_path) as taken:
        assert taken.broken is not None
        assert taken.broken.fate is fate
        own = inspect(tmp_path)
        assert own is not None
        assert (own.runs, own.pid) == (True, os.getpid())


def test_another_machines_launcher_is_not_taken_for_dead(tmp_path: Path) -> None:
    plant(tmp_path, boot="other", machine="other")
    with pytest.raises(UserError, match="another machine"):
        refuse(tmp_path, inspect(tmp_path))  # as a dry run asks
    with pytest.raises(UserError, match=r"another machine .* delete .*launcher\.json"):
        RoundLock(tmp_path).__enter__()
    (tmp_path / "launcher.json").unlink()
    with RoundLock(tmp_path):
        pass


def test_without_locks_the_record_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    plant(tmp_path)
    with pytest.raises(UserError, match=f"pid {os.getpid()} is running this round"):
        RoundLock(tmp_path).__enter__()
    plant(tmp_path, started="1")
    with RoundLock(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_record_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "launcher.json").write_text(text)
    assert inspect(tmp_path) is None
    with RoundLock(tmp_path) as taken:
        assert taken.broken is None


def test_who_looks_does_not_keep_a_launcher_out(tmp_path: Path) -> None:
    with RoundLock(tmp_path) as first:
        first.record(0)
    handle = os.open(tmp_path / "launch.lock", os.O_RDONLY)
    code = f"import fcntl, time; fcntl.flock({handle}, fcntl.LOCK_SH); print(flush=True); "
    looker = subprocess.Popen(
        [sys.executable, "-c", f"{code}time.sleep(0.2)"],
        pass_fds=[handle],
        stdout=subprocess.PIPE,
    )
    os.close(handle)
    assert looker.stdout is not None
    looker.stdout.readline()
    with RoundLock(tmp_path):
        assert looker.wait() == 0
    looker.communicate()


def test_age_is_never_negative(tmp_path: Path) -> None:
    plant(tmp_path, since=time.time() + 3600)
    found = inspect(tmp_path)
    assert found is not None
    assert found.age_s == 0.0


@pytest.mark.parametrize("name", ["launch.lock", "launcher.json"])
def test_a_directory_that_cannot_be_written_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()  # cannot be written, even by root
    with pytest.raises(UserError, match=rf"{name}: cannot be written \(Is a directory\)"):
        RoundLock(tmp_path).__enter__()
    (tmp_path / name).rmdir()
    with RoundLock(tmp_path):
        pass

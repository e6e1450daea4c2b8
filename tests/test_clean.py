"""What ``nox -s clean`` lists and removes, on folders made for it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from launch import clean
from launch.clean import main, mentions
from launch.lock import RoundLock
from shared.errors import UserError

NAMES = [
    "cache/jax/py3.12.1-jax0.7.2-0123abcd",
    "cache/matplotlib",
    "env/ajax-0123456789ab",
    "env/ajax.log",
    "notes",
    "round1",
]
Call = Callable[..., int]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``.work`` with one entry of each kind."""
    work = tmp_path / "repository" / ".work"
    files = {
        "env/ajax-0123456789ab/bin/python": 4,
        "env/ajax.log": 10,
        "cache/jax/py3.12.1-jax0.7.2-0123abcd/jit_train-1-cache": 3_000_000,
        "cache/matplotlib/fontlist.json": 100,
        "round1/launch_info.txt": 20,
        "round1/ref_s0/records.jsonl": 20_000,
        "notes/plan.txt": 10,
    }
    for name, size in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(os.urandom(size))
    monkeypatch.setattr(clean, "WORK", work)
    monkeypatch.setattr(clean, "REPO", work.parent)
    return work


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command with these words; its exit status."""

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["clean", *words])
        return main()

    return run


def everything(work: Path) -> list[Path]:
    return sorted(work.rglob("*"))


@contextmanager
def process(*words: str, cwd: Path | None = None) -> Iterator[int]:
    """A process with these words in its command line, once they can be seen there."""
    code = "print(flush=True); import time; time.sleep(600)"
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            running.stdout.readline()
            yield running.pid
        finally:
            running.kill()


def test_every_entry_is_listed_with_its_size_and_nothing_is_removed(
    work: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(work)
    assert call() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines[: len(NAMES)]] == NAMES
    assert lines[0].split()[:2] == ["3.0", "MB"]
    assert lines[len(NAMES)].split()[2:] == ["in", "all"]
    assert everything(work) == before


def test_only_what_is_named_goes(work: Path, call: Call) -> None:
    before = everything(work)
    gone = (work / "round1", work / "cache" / "jax")
    assert call("--remove", "round1/", ".work/cache/jax", "round1") == 0
    left = [path for path in before if not any(path.is_relative_to(entry) for entry in gone)]
    assert everything(work) == left


@pytest.mark.parametrize(
    "name", ["nothing", ".", "", "..", "round1/ref_s0", "../outside", "/", "env/../round1", "roun*"]
)
def test_a_name_that_is_no_entry_removes_nothing(work: Path, call: Call, name: str) -> None:
    (work.parent / "outside").mkdir()
    before = everything(work.parent)
    with pytest.raises(UserError, match="has no such entry; nox -s clean lists them"):
        call("--remove", "round1", name)
    assert everything(work.parent) == before


def test_without_a_directory_there_is_nothing_to_remove(work: Path, call: Call) -> None:
    shutil.rmtree(work)
    assert call() == 0
    with pytest.raises(UserError, match=r"^--remove round1: \.work/ has no such entry"):
        call("--remove", "round1")
    work.write_text("mine")
    for words in ((), ("--remove", "round1")):
        with pytest.raises(UserError, match=r"^\.work: is a file, where a directory belongs"):
            call(*words)
    assert work.read_text() == "mine"


def test_a_link_is_removed_and_not_what_it_points_to(work: Path, call: Call) -> None:
    elsewhere = work.parent / "elsewhere"
    (elsewhere / "jax").mkdir(parents=True)
    (elsewhere / "jax" / "kept").write_text("kept")
    for name in ("round2", "env", "cache"):
        shutil.rmtree(work / name, ignore_errors=True)
        (work / name).symlink_to(elsewhere)
    for outside in ("env/jax", "cache/jax", "cache/jax/kept"):
        with pytest.raises(UserError, match="has no such entry"):
            call("--remove", outside)
    assert call("--remove", "round2", "env", "cache") == 0
    assert not (work / "round2").is_symlink()
    assert (elsewhere / "jax" / "kept").exists()


def test_what_a_process_works_with_is_refused(
    work: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(work)
    with process("-m", "ref_side.run", "--out", str(work / "round1")) as pid:
        assert call() == 0
        assert f"round1  in use: process {pid}\n" in capsys.readouterr().out
        with pytest.raises(UserError, match=rf"round1: process {pid} .* Nothing was removed"):
            call("--remove", "notes", "round1")
    assert everything(work) == before, "not even what could have gone"
    assert call("--remove", "notes", "round1") == 0


@pytest.mark.parametrize("part", ["", "exact"])
def test_a_launcher_between_two_processes_is_noticed(work: Path, call: Call, part: str) -> None:
    out = work / "round1" / part
    out.mkdir(exist_ok=True)
    with RoundLock(out) as lock:
        with pytest.raises(UserError, match="round1: a launcher works with it"):
            call("--remove", "round1")
        lock.record(0)
    if part:  # this process may be at the next part by now
        with pytest.raises(UserError, match="round1: a launcher works with it"):
            call("--remove", "round1")
        (out / "launcher.json").unlink()
    assert call("--remove", "round1") == 0


def test_a_cache_and_a_directory_of_a_running_process_are_in_use(
    work: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(work / NAMES[0]))
    with process(cwd=work / "notes") as pid:
        for name in (NAMES[0], "notes", "cache", "cache/jax"):
            with pytest.raises(UserError, match=f"process {pid} works with it"):
                call("--remove", name)
    assert call("--remove", "notes", "cache") == 0


def test_a_path_is_not_mistaken_for_one_that_begins_alike() -> None:
    path = Path("/r/.work/round1")
    assert mentions("python --out /r/.work/round1", path)
    assert mentions("python --out=/r/.work/round1/ajax x", path)
    for other in ("/r/.work/round10", "/r/.work/round1-old", "/other/r/.work/round1"):
        assert not mentions(f"python --out {other}", path)


def test_what_cannot_be_removed_is_said(
    work: Path, call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(clean.shutil, "rmtree", refuse)
    assert call("--remove", "round1", "env/ajax.log") == 1
    output = capsys.readouterr().out
    assert output.startswith("round1: not removed, or not all of it (Permission denied)\n")
    assert not (work / "round1").exists(), "what is half gone does not pass for a run"
    assert not (work / "env" / "ajax.log").exists()

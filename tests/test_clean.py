"""What ``nox -s clean`` shows and removes, on folders made for it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from launch import clean, usage
from launch.clean import find, items, main, table
from launch.environments import locate
from launch.lock import RoundLock
from launch.usage import mentions
from shared.errors import UserError
from tests.inside import ROOT, out_of_reach


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``.work`` with one entry of each kind."""
    work = tmp_path / "repository" / ".work"
    files = {
        "env/ajax-0123456789ab/bin/python": 4,
        "env/ajax.log": 10,
        "env/ajax-89abcdef0123.building-01234567/bin/python": 4,
        "cache/jax/py3.12.1-jax0.7.2-0123abcd/jit_train-1-cache": 3_000_000,
        "cache/jax/py3.12.1-jax0.7.2-0123abcd/warm/ajax.json": 3,
        "cache/matplotlib/fontlist.json": 100,
        "round1/launch_info.txt": 20,
        "round1/ref_s0/records.jsonl": 20_000,
        "notes/plan.txt": 10,
    }
    for name, size in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(os.urandom(size))
    for constraints in ROOT.glob("constraints-*.txt"):
        shutil.copy(constraints, work.parent)
    monkeypatch.setattr(clean, "WORK", work)
    monkeypatch.setattr(clean, "REPO", work.parent)
    return work


NAMES = [
    "cache/jax/py3.12.1-jax0.7.2-0123abcd",
    "cache/matplotlib",
    "env/ajax-0123456789ab",
    "env/ajax-89abcdef0123.building-01234567",
    "env/ajax.log",
    "notes",
    "round1",
]


def everything(work: Path) -> list[Path]:
    return sorted(work.rglob("*"))


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["clean", *arguments])
    return main()


@contextmanager
def process(*arguments: str, **more: Path) -> Iterator[int]:
    """A process with these words in its command line."""
    command = [sys.executable, "-c", "import time; time.sleep(60)", *arguments]
    with subprocess.Popen(command, cwd=more.get("cwd")) as running:
        try:
            time.sleep(0.2)
            yield running.pid
        finally:
            running.kill()


def test_every_entry_is_listed_once_with_its_kind_and_size(work: Path) -> None:
    found = {item.name: item for item in items(work)}
    assert list(found) == NAMES
    assert [item.kind for item in found.values()] == [
        "compiled programs",
        "cache",
        "old environment",
        "unfinished build",
        "log of a build",
        "directory",
        "run",
    ]
    assert 3_000_000 <= found[NAMES[0]].size < 3_100_000
    assert all(item.user is None for item in found.values())
    assert all(item.age_s < 60 for item in found.values())


def test_the_environment_in_force_is_told_from_older_ones(work: Path) -> None:
    try:
        home = locate("ajax", work.parent).parent.parent
    except UserError as error:
        out_of_reach(str(error))
    home.mkdir()
    kinds = {item.name: item.kind for item in items(work)}
    assert kinds[f"env/{home.name}"] == "environment"
    assert kinds["env/ajax-0123456789ab"] == "old environment"


def test_without_a_name_nothing_is_removed(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(work)
    assert call(monkeypatch) == call(monkeypatch, "--dry-run") == 0
    assert everything(work) == before
    output = capsys.readouterr().out
    assert "nothing was removed; name what is to go: nox -s clean -- --remove NAME..." in output
    for name in NAMES:
        assert name in output


def test_only_what_is_named_goes(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(work)
    gone = (work / "round1", work / "cache" / "jax")
    assert call(monkeypatch, "--dry-run", "--remove", "round1", "cache/jax") == 0
    assert everything(work) == before
    assert call(monkeypatch, "--remove", "round1/", ".work/cache/jax") == 0
    left = [path for path in before if not any(path.is_relative_to(each) for each in gone)]
    assert everything(work) == left


@pytest.mark.parametrize(
    "name", ["nothing", ".", "", "..", "round1/ref_s0", "../outside", "/", "env/../round1", "roun*"]
)
def test_a_name_that_is_no_entry_removes_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (work.parent / "outside").mkdir()
    before = everything(work.parent)
    with pytest.raises(UserError, match="has no such entry; nox -s clean lists them"):
        call(monkeypatch, "--remove", "round1", name)
    assert everything(work.parent) == before


def test_without_a_directory_there_is_nothing_to_remove(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(work)
    assert call(monkeypatch) == 0
    assert capsys.readouterr().out == ".work/ does not exist: there is nothing to remove\n"
    for more in ((), ("--dry-run",)):
        with pytest.raises(UserError, match=r"^--remove round1: \.work/ has no such entry; nox"):
            call(monkeypatch, "--remove", "round1", *more)
    work.write_text("mine")
    for arguments in ((), ("--remove", "round1")):
        with pytest.raises(UserError, match=r"^\.work: is a file, where a directory belongs"):
            call(monkeypatch, *arguments)
    assert work.read_text() == "mine"


def test_a_link_is_removed_and_not_what_it_points_to(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = work.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    (work / "round2").symlink_to(elsewhere)
    assert find(work, "round2").kind == "link"
    assert call(monkeypatch, "--remove", "round2") == 0
    assert not (work / "round2").is_symlink()
    assert (elsewhere / "kept").exists()


def test_a_running_round_is_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(work)
    with process("-m", "ref_side.run", "--out", str(work / "round1")) as pid:
        assert find(work, "round1").user == f"process {pid}"
        assert "in use" in table(items(work)).splitlines()[-2]
        with pytest.raises(UserError, match=rf"a running round \(process {pid}\)"):
            call(monkeypatch, "--remove", "notes", "round1")
    assert everything(work) == before, "not even what could have gone"
    assert call(monkeypatch, "--remove", "notes", "round1") == 0


def test_a_launcher_between_two_processes_is_noticed(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RoundLock(work / "round1") as lock:
        with pytest.raises(UserError, match=r"a running round \(its launcher\)"):
            call(monkeypatch, "--remove", "round1")
        lock.record(0)
    assert find(work, "round1").user is None
    assert call(monkeypatch, "--remove", "round1") == 0


def test_a_round_of_parts_is_a_run_and_in_use_while_one_of_them_is(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("literal", "exact"):
        (work / "round4" / part).mkdir(parents=True)
        (work / "round4" / part / "launch_info.txt").touch()
    assert find(work, "round4").kind == "run"
    refused = r"a running round \(its launcher\)"
    with RoundLock(work / "round4" / "exact") as lock:
        with pytest.raises(UserError, match=refused):
            call(monkeypatch, "--remove", "round4")
        lock.record(0)
    with pytest.raises(UserError, match=refused):  # this process may be at the next part by now
        call(monkeypatch, "--remove", "round4")
    (work / "round4" / "exact" / "launcher.json").unlink()
    assert call(monkeypatch, "--remove", "round4") == 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_cache_and_a_directory_of_a_running_process_are_in_use(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(work / NAMES[0]))
    with process(cwd=work / "notes") as pid:
        used = {item.name for item in items(work) if item.user == f"process {pid}"}
        assert used == {NAMES[0], "notes"}
        assert find(work, "cache").user == f"process {pid}", "a folder with something in use"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_where_there_is_a_proc_no_ps_is_needed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(work))
    with process("--out", str(work / "round1")) as pid:
        assert find(work, "round1").user == f"process {pid}"


def test_elsewhere_ps_is_asked(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "PROC", work)
    ps = work.parent / "bin" / "ps"
    ps.parent.mkdir()
    monkeypatch.setenv("PATH", str(ps.parent))
    for script, reason in ((None, "not found"), ("echo bad option >&2; exit 1", "bad option")):
        if script is not None:
            ps.write_text(f"#!/bin/sh\n{script}\n")
            ps.chmod(0o755)
        with pytest.raises(UserError, match=rf"ps: {reason}, so that .* install ps"):
            call(monkeypatch, "--remove", "round1")
        assert (work / "round1").exists()
    ps.write_text(f"#!/bin/sh\necho ' 77 python -m x --out {work}/round1 --tiny'\n")
    assert find(work, "round1").user == "process 77"


def test_ages_are_short() -> None:
    seconds = (0.0, 3000.0, 7000.0, 7300.0, 100_000.0, 180_000.0, 86_400.0 * 400)
    assert list(map(clean.age, seconds)) == [
        *("0 min", "50 min", "117 min", "2 h", "28 h", "2 d", "400 d"),
    ]


def test_a_path_is_not_mistaken_for_one_that_begins_alike() -> None:
    path = Path("/r/.work/round1")
    assert mentions("python --out /r/.work/round1", path)
    assert mentions("python --out=/r/.work/round1/ajax x", path)
    assert not mentions("python --out /r/.work/round10", path)
    assert not mentions("python --out /r/.work/round1-old", path)
    assert not mentions("python --out /other/r/.work/round1", path)


def test_what_cannot_be_removed_is_said(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(clean.shutil, "rmtree", refuse)
    assert call(monkeypatch, "--remove", "round1") == 1
    assert capsys.readouterr().out == "round1: not removed, or not all of it (Permission denied)\n"
    assert not (work / "round1").exists(), "what is half gone does not pass for a run"


def test_the_table_adds_up(work: Path) -> None:
    lines = table(items(work)).splitlines()
    assert lines[0].split() == ["in", ".work/", "what", "frees", "age"]
    assert lines[-1].endswith("MB in all")
    assert max(map(len, lines)) <= 80


def test_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "launch.clean", "--remove", "no such thing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1

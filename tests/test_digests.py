"""Digests that a process leaves when it ends, and what they say of later changes."""

import gzip
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import compare
from launch.resume import leftovers
from shared.errors import RecordError, UserError
from shared.records.digests import Changes, changes, finish
from shared.records.layout import RunLayout
from shared.records.own_directory import OwnDirectories
from shared.scan import scan_tree
from tests.conftest import Command
from tests.synthetic import seal


@pytest.fixture
def run(tmp_path: Path) -> RunLayout:
    """A process that has ended, with files that are kept and some that are not."""
    run = RunLayout(tmp_path / "out")
    directory = run.root / "ref_s0"
    (directory / "replay").mkdir(parents=True)
    for name in ("records.jsonl", "evals.jsonl", "progress.jsonl", "checkpoint.ckpt", "replay/a"):
        (directory / name).write_text(f"{name}\n")
    (run.root / "ref_s0.log").write_text("done\n")
    finish(run, "ref_s0", OwnDirectories(run.root, directory))
    return run


def test_digests_are_those_of_sha256sum_and_name_what_is_kept(run: RunLayout) -> None:
    assert run.done("ref_s0").read_text() == "0\n"
    names = [line.split("  ")[1] for line in run.digests("ref_s0").read_text().splitlines()]
    assert names == ["ref_s0/evals.jsonl", "ref_s0/records.jsonl"]
    command = ["sha256sum", "--check", "--strict", "--quiet", "ref_s0.sha256"]
    assert subprocess.run(command, cwd=run.root, check=False).returncode == 0
    assert changes(run, "ref_s0") == Changes(2)
    assert not scan_tree(run.root)


def test_a_process_without_digests_has_none(run: RunLayout) -> None:
    assert changes(run, "ajax") is None


def pack(path: Path) -> None:
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def damage(path: Path) -> None:
    pack(path)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(packed.read_bytes()[:-9])


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        (pack, ()),
        (Path.touch, ()),
        (flip, ("ref_s0/records.jsonl was changed",)),
        (damage, ("ref_s0/records.jsonl was changed",)),
        (Path.unlink, ("ref_s0/records.jsonl is missing",)),
        (pipe, ("ref_s0/records.jsonl is missing",)),
        (lambda path: path.with_name("more").touch(), ("ref_s0/more was added",)),
        (lambda path: path.with_name("progress.jsonl").unlink(), ()),
    ],
)
def test_what_changed_afterwards_is_named(
    change: Callable[[Path], None], faults: tuple[str, ...], run: RunLayout
) -> None:
    change(run.reference_dir(0) / "records.jsonl")
    found = changes(run, "ref_s0")
    assert found is not None and (found.left, found.faults) == (2, faults)


@pytest.mark.parametrize("line", ["x", "0" * 64 + " ref_s0/a", "G" * 64 + "  ref_s0/a"])
def test_a_damaged_file_of_digests_is_refused(line: str, run: RunLayout) -> None:
    run.digests("ref_s0").write_text(f"{line}\n")
    with pytest.raises(RecordError, match=r"ref_s0\.sha256:1: is no line of sha256sum"):
        changes(run, "ref_s0")


def test_a_process_that_lost_its_directory_leaves_neither(run: RunLayout) -> None:
    own = OwnDirectories(run.root, run.reference_dir(0))
    run.root.rename(run.root.with_name("moved"))
    run.root.mkdir()
    with pytest.raises(UserError, match="was removed, moved or replaced"):
        finish(run, "ref_s0", own)
    assert not list(run.root.iterdir())


def test_what_did_not_finish_takes_its_digests_aside(run: RunLayout) -> None:
    class Job:
        name, directory = "ref_s0", run.reference_dir(0)

    assert run.digests("ref_s0") in leftovers(Job, run)  # type: ignore[arg-type]


@pytest.mark.usefixtures("undrawn")
def test_a_comparison_names_the_file_that_was_changed(smoke: Path, command: Command) -> None:
    seal(smoke)
    path = smoke / "ref_s1" / "timing.json"
    path.write_text(path.read_text() + "\n")
    done = command(compare.main, "--smoke", "--root", smoke)
    assert (done.status, done.failed_checks) == (1, ["ref s1 files"])
    assert "FAIL ref s1 files: ref_s1/timing.json was changed" in done.out
    assert "files as they were when the process ended" in (smoke / "compare.md").read_text()

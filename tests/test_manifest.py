"""Digests of a results tree: what changed is named with its line."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.manifest import NAME, manifest_faults, write_manifest
from shared.errors import RecordError
from shared.provenance.roots import REPO

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "round1").mkdir()
    (tmp_path / "round1" / "compare.md").write_text(TEXT)
    (tmp_path / "round1" / "curves.png").write_bytes(b"\x89PNG\x00")
    (tmp_path / "round1" / "records.jsonl.gz").write_bytes(gzip.compress(TEXT.encode()))
    write_manifest(tmp_path)
    return tmp_path


def test_an_untouched_tree_has_no_faults(root: Path) -> None:
    assert manifest_faults(root).lines == []


def test_the_committed_manifest_is_the_one_of_the_tree() -> None:
    assert manifest_faults(REPO / "results").lines == []
    listed = [json.loads(line) for line in (REPO / "results" / NAME).read_text().splitlines()]
    assert listed[0] == {"format": 1}
    files = {p.relative_to(REPO / "results").as_posix() for p in (REPO / "results").rglob("*.*")}
    assert {each["path"] for each in listed[1:]} == files - {NAME}


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "first line": (
        lambda root: (root / "round1/compare.md").write_text("One\ntwo\nthree\n"),
        "round1/compare.md:1: changed",
    ),
    "last line": (
        lambda root: (root / "round1/compare.md").write_text("one\ntwo\nthrew\n"),
        "round1/compare.md:3: changed",
    ),
    "a line more": (
        lambda root: (root / "round1/compare.md").write_text(TEXT + "four\n"),
        "round1/compare.md:4: changed",
    ),
    "a line less": (
        lambda root: (root / "round1/compare.md").write_text("one\ntwo\n"),
        "round1/compare.md:3: changed",
    ),
    "line ends": (
        lambda root: (root / "round1/compare.md").write_bytes(b"one\r\ntwo\r\nthree\r\n"),
        "round1/compare.md:1: changed",
    ),
    "picture": (
        lambda root: (root / "round1/curves.png").write_bytes(b"\x89PNG\x01"),
        "round1/curves.png: changed",
    ),
    "inside an archive": (
        lambda root: (root / "round1/records.jsonl.gz").write_bytes(packed("one\n2\nthree\n")),
        "round1/records.jsonl.gz:2: changed",
    ),
    "damaged archive": (
        lambda root: (root / "round1/records.jsonl.gz").write_bytes(packed(TEXT)[:-9]),
        "round1/records.jsonl.gz: is damaged (cannot be read or unpacked); restore it",
    ),
    "an archive that expands": (
        lambda root: (root / "round1/records.jsonl.gz").write_bytes(packed(" " * (2**26 + 1))),
        "round1/records.jsonl.gz: is damaged (cannot be read or unpacked); restore it",
    ),
    "a file without end": (
        lambda root: os.truncate(root / "round1/curves.png", 2**34),
        "round1/curves.png: is damaged (cannot be read or unpacked); restore it",
    ),
    "a name that a terminal obeys": (
        lambda root: (root / "a\n\x1b[2J").write_text("x"),
        "a\\n\\x1b[2J: is not in the manifest",
    ),
    "missing": (
        lambda root: (root / "round1/curves.png").unlink(),
        "round1/curves.png: is missing",
    ),
    "extra": (
        lambda root: (root / "round1/mine.txt").write_text("x"),
        "round1/mine.txt: is not in the manifest",
    ),
    "extra directory": (
        lambda root: ((root / "new").mkdir(), (root / "new/a.json").write_text("{}")),
        "new/a.json: is not in the manifest",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_named(what: str, root: Path) -> None:
    change, fault = CHANGES[what]
    change(root)
    (found,) = manifest_faults(root).lines
    assert found.startswith(f"{root}/{fault}")


def test_an_archive_packed_again_is_the_same(root: Path) -> None:
    path = root / "round1" / "records.jsonl.gz"
    path.write_bytes(gzip.compress(TEXT.encode(), compresslevel=1, mtime=12345))
    assert manifest_faults(root).lines == []


def test_an_edited_digest_is_a_fault_of_its_file(root: Path) -> None:
    path = root / NAME
    lines = path.read_text().splitlines(keepends=True)
    entry = json.loads(lines[1])
    lines[1] = json.dumps({**entry, "sha256": "0" * 64}) + "\n"
    path.write_text("".join(lines))
    (found,) = manifest_faults(root).lines
    assert found.startswith(f"{root}/{entry['path']}: changed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 2}\n', ":1: format 2 is unknown"),
        ("format 1\n", ":1: not valid JSON"),
        ('{"format": 1}\n{"path": "a"}\n', ":2: names no path and sha256"),
        ('{"format": 1}\n{"path": "a', ":2: the last line is cut short"),
        (None, ": no such file; restore it with git restore "),
    ],
)
def test_a_manifest_that_cannot_be_read(text: str | None, message: str, root: Path) -> None:
    path = root / NAME
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(RecordError) as caught:
        manifest_faults(root)
    assert str(caught.value).startswith(f"{path}{message}")


def test_writing_again_changes_nothing(root: Path) -> None:
    first = (root / NAME).read_bytes()
    write_manifest(root)
    assert (root / NAME).read_bytes() == first


def test_faults_of_several_files_are_all_named(root: Path) -> None:
    (root / "round1" / "compare.md").write_text("one\n")
    (root / "round1" / "curves.png").unlink()
    (root / "round1" / "mine.txt").write_text("x")
    faults = manifest_faults(root)
    found = [fault.removeprefix(f"{root}/round1/").split(":")[0] for fault in faults.lines]
    assert found == ["compare.md", "curves.png", "mine.txt"]
    assert str(faults) == "2 files changed, 1 not listed"


def test_no_manifest_is_written_of_a_damaged_archive(root: Path) -> None:
    path = root / "round1" / "records.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-9])
    before = (root / NAME).read_bytes()
    with pytest.raises(RecordError, match=r"records\.jsonl\.gz: is damaged"):
        write_manifest(root)
    assert (root / NAME).read_bytes() == before

"""Digests of every file under ``results/``: no number there can change unseen.

``MANIFEST.jsonl`` holds one line a file: its path, its sha256, and for text a short digest of
every line, so that a changed number is reported with its line. Gzipped files are digested by
their content.
"""

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.outputs import file_names
from shared.errors import RecordError, printable
from shared.protocol import ROUNDS
from shared.records.files import exists, read_bytes, write_atomic
from shared.records.jsonl import MAX_ROWS_BYTES, dump_line, read_jsonl
from shared.scan import files_below

NAME = "MANIFEST.jsonl"
FORMAT = 1
#: Names of the tables, and of the numbers behind the figures.
_DERIVED = {
    *(name for each in ROUNDS.values() for name in file_names(each.number)),
    "reading.md",
    "reading.json",
    "figures.json",
}
_DAMAGED = "is damaged (cannot be read or unpacked); restore it"
#: Files whose lines are digested one by one.
_TEXT = {".json", ".jsonl", ".md", ".txt", ".yaml", ".DONE"}


@dataclass(frozen=True)
class Faults:
    """What differs from a manifest, a line a file.

    ``changed``: listed files that are changed (with the line), damaged or missing.
    """

    changed: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """All of them."""
        return [*self.changed, *self.unlisted]

    def __str__(self) -> str:
        counted = f"{len(self.changed)} files changed"
        return f"{counted}, {len(self.unlisted)} not listed" if self.unlisted else counted


def _content(path: Path) -> bytes | None:
    """The bytes that are digested; ``None`` of a file that cannot be read or unpacked."""
    try:
        return read_bytes(path, MAX_ROWS_BYTES)
    except RecordError:
        return None


def _is_text(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix in _TEXT


def _line_digests(data: bytes) -> str:
    """Four hexadecimal digits a line: enough to find the line, the sha256 decides."""
    return "".join(f"{zlib.crc32(line) & 0xFFFF:04x}" for line in data.split(b"\n"))


def _entries(root: Path) -> Iterator[dict[str, Any]]:
    for path in files_below(root):
        if path != root / NAME and not path.name.startswith("."):
            data = _content(path)
            name = path.relative_to(root).as_posix()
            if data is None:
                yield {"path": name, "sha256": None}
                continue
            entry = {"path": name, "sha256": hashlib.sha256(data).hexdigest()}
            yield entry | ({"lines": _line_digests(data)} if _is_text(path) else {})


def write_manifest(root: Path) -> None:
    """Digest every file below ``root`` and write its manifest.

    Raises :class:`RecordError`, with nothing written, where an archive cannot be unpacked.
    """
    entries = list(_entries(root))
    for entry in entries:
        if entry["sha256"] is None:
            raise RecordError(f"{root / entry['path']}: {_DAMAGED}")
    lines = [dump_line(entry) for entry in [{"format": FORMAT}, *entries]]
    write_atomic(root / NAME, "".join(lines))


def is_derived(path: str) -> bool:
    """Whether the file is made from others: a table or a figure, which may be made anew."""
    name = Path(path).name
    return Path(path).suffix in {".png", ".svg"} or name in _DERIVED


def manifest_faults(root: Path, *, recorded_only: bool = False) -> Faults:
    """What differs from the manifest of ``root``.

    With ``recorded_only`` tables and figures, and files that are new, are passed over.
    Raises :class:`RecordError` where the manifest itself cannot be read.
    """
    listed = _read_manifest(root)
    changed, unlisted = [], []
    for found in _entries(root):
        expected = listed.pop(found["path"], None)
        where = root / found["path"]
        if recorded_only and (expected is None or is_derived(found["path"])):
            continue
        if expected is None:
            unlisted.append(f"{where}: is not in the manifest; remove it, or run with --update")
        elif found["sha256"] is None:
            changed.append(f"{where}: {_DAMAGED}")
        elif expected["sha256"] != found["sha256"]:
            line = _first_difference(expected.get("lines", ""), found.get("lines", ""))
            changed.append(f"{where}{line}: changed since the manifest was written; restore it")
    gone = [path for path in listed if not (recorded_only and is_derived(path))]
    changed += [f"{root / path}: is missing; restore it" for path in gone]
    return Faults(tuple(map(printable, changed)), tuple(map(printable, unlisted)))


def _read_manifest(root: Path) -> dict[str, dict[str, Any]]:
    """Path -> entry. Raises :class:`RecordError`."""
    if not exists(root / NAME):
        raise RecordError(
            f"{root / NAME}: no such file; restore it with git restore {root.name}/{NAME}"
        )
    listed: dict[str, dict[str, Any]] = {}
    for number, entry in read_jsonl(root / NAME):
        if number == 1:
            if entry.get("format") != FORMAT:
                raise RecordError(f"{root / NAME}:1: format {entry.get('format')!r} is unknown")
            continue
        if not (isinstance(entry.get("path"), str) and isinstance(entry.get("sha256"), str)):
            raise RecordError(f"{root / NAME}:{number}: names no path and sha256; restore it")
        listed[entry["path"]] = entry
    return listed


def _first_difference(expected: str, found: str) -> str:
    for start in range(0, max(len(expected), len(found)), 4):
        if expected[start : start + 4] != found[start : start + 4]:
            return f":{start // 4 + 1}"
    return ""

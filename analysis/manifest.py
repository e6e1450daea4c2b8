"""Digests of every file under ``results/``: no number there can change unseen.

``MANIFEST.jsonl`` holds one line a file: its path, its sha256, and for text a short digest of
every line, so that a changed number is reported with its line. Gzipped files are digested by
their content.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.outputs import file_names
from shared.errors import RecordError
from shared.files import dump_line, read_jsonl, write_atomic
from shared.protocol import ROUNDS
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
#: Files whose lines are digested one by one.
_TEXT = {".json", ".jsonl", ".md", ".txt", ".yaml", ".DONE"}


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return data  # damaged: its digest cannot be the one of its content


def _is_text(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix in _TEXT


def _line_digests(data: bytes) -> str:
    """Four hexadecimal digits a line: enough to find the line, the sha256 decides."""
    return "".join(f"{zlib.crc32(line) & 0xFFFF:04x}" for line in data.split(b"\n"))


def _entries(root: Path) -> Iterator[dict[str, Any]]:
    for path in files_below(root):
        if path != root / NAME and not path.name.startswith("."):
            data = _content(path)
            entry = {
                "path": path.relative_to(root).as_posix(),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            yield entry | ({"lines": _line_digests(data)} if _is_text(path) else {})


def write_manifest(root: Path) -> None:
    """Digest every file below ``root`` and write its manifest."""
    lines = [dump_line(entry) for entry in [{"format": FORMAT}, *_entries(root)]]
    write_atomic(root / NAME, "".join(lines))


def is_derived(path: str) -> bool:
    """Whether the file is made from others: a table or a figure, which may be made anew."""
    name = Path(path).name
    return Path(path).suffix in {".png", ".svg"} or name in _DERIVED


def manifest_faults(root: Path, *, recorded_only: bool = False) -> list[str]:
    """What differs from the manifest, a line a file: changed (with its line), missing, unlisted.

    With ``recorded_only`` tables and figures, and files that are new, are passed over.
    Raises :class:`RecordError` where the manifest itself cannot be read.
    """
    listed: dict[str, dict[str, Any]] = {}
    for number, entry in read_jsonl(root / NAME):
        if number == 1:
            if entry.get("format") != FORMAT:
                raise RecordError(f"{root / NAME}:1: format {entry.get('format')!r} is unknown")
            continue
        if not (isinstance(entry.get("path"), str) and isinstance(entry.get("sha256"), str)):
            raise RecordError(f"{root / NAME}:{number}: names no path and sha256; restore it")
        listed[entry["path"]] = entry
    faults = []
    for found in _entries(root):
        expected = listed.pop(found["path"], None)
        where = root / found["path"]
        if recorded_only and (expected is None or is_derived(found["path"])):
            continue
        if expected is None:
            faults.append(f"{where}: is not in the manifest; remove it, or run with --update")
        elif expected["sha256"] != found["sha256"]:
            line = _first_difference(expected.get("lines", ""), found.get("lines", ""))
            faults.append(f"{where}{line}: changed since the manifest was written; restore it")
    gone = [path for path in listed if not (recorded_only and is_derived(path))]
    return faults + [f"{root / path}: is missing; restore it" for path in gone]


def _first_difference(expected: str, found: str) -> str:
    for start in range(0, max(len(expected), len(found)), 4):
        if expected[start : start + 4] != found[start : start + 4]:
            return f":{start // 4 + 1}"
    return ""

"""What a process leaves when it has come to its end: digests of its files, then its ``DONE``.

``<name>.sha256`` holds a line for each file that is kept, as ``sha256sum`` writes and checks them:
digest, two blanks, path below ``<out>``. A digest is of the unpacked content, so that packing a
file later changes nothing.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.errors import RecordError
from shared.records.files import find, read_bytes, read_text, write_atomic, write_exit_code
from shared.records.jsonl import MAX_ROWS_BYTES
from shared.records.layout import PROGRESS, REFERENCE_CHECKPOINT, REFERENCE_REPLAY, RunLayout
from shared.records.own_directory import OwnDirectories

#: What nothing reads, below the directory of a process: it is not kept in ``results/``.
NOT_KEPT = (PROGRESS, REFERENCE_CHECKPOINT, REFERENCE_REPLAY)
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def finish(run: RunLayout, name: str, own: OwnDirectories) -> None:
    """Say that the process ``name`` has done all its work: its digests first, then ``DONE``.

    Its launcher writes ``DONE`` too, unless it was killed meanwhile. Raises ``UserError`` where
    the directories are not the process's ``own`` any more.
    """
    lines = [f"{_digest(path)}  {relative}\n" for relative, path in _kept(run, name)]
    own.check()
    write_atomic(run.digests(name), "".join(lines))
    own.check()
    write_exit_code(run.done(name), 0)


@dataclass(frozen=True)
class Changes:
    """What became of the ``left`` files of a process since it ended, a phrase each."""

    left: int
    #: Files with other content.
    changed: tuple[str, ...] = ()
    #: Files that are gone, or came afterwards.
    misplaced: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """All phrases."""
        return self.changed + self.misplaced


def changes(run: RunLayout, name: str) -> Changes | None:
    """Which files of the process ``name`` were changed, are missing or were added since it ended.

    ``None`` where it left no digests: it has not ended, or an earlier version of this project ran
    it. Raises ``RecordError`` for a file of digests that is none.
    """
    if not run.digests(name).exists():
        return None
    left, there = _read(run.digests(name)), dict(_kept(run, name))
    changed = [
        f"{path} was changed"
        for path in left
        if path in there and _digest(there[path]) != left[path]
    ]
    missing = [f"{path} is missing" for path in left if path not in there]
    added = [f"{path} was added" for path in there if path not in left]
    return Changes(len(left), tuple(changed), (*missing, *added))


def _kept(run: RunLayout, name: str) -> Iterator[tuple[str, Path]]:
    """Path below ``<out>``, unpacked, and path as given, of every kept file of a process."""
    directory = run.root / name
    for path in sorted(directory.rglob("*")):
        plain = path.with_name(path.name.removesuffix(".gz"))
        kept = plain.relative_to(directory).parts[0] not in NOT_KEPT
        # Of a file that is there packed and unpacked, the unpacked one is read.
        if kept and path.is_file() and find(plain) == path:
            yield plain.relative_to(run.root).as_posix(), plain


def _digest(path: Path) -> str:
    """SHA-256 of the content of ``path`` or its gzipped sibling; a phrase for a damaged one."""
    try:
        return hashlib.sha256(read_bytes(path, MAX_ROWS_BYTES)).hexdigest()
    except RecordError:
        return "cannot be read"


def _read(path: Path) -> dict[str, str]:
    """Path below ``<out>`` -> digest."""
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if (match := _LINE.fullmatch(line)) is None:
            raise RecordError(f"{path}:{number}: is no line of sha256sum; restore the file")
        found[match[2]] = match[1]
    return found

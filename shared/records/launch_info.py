"""``launch_info.txt``: when, on what and from which revisions a round was started (section 7).

The file holds one block of ``key: value`` lines per start. Every block that this project writes
begins with ``format:``; a second start (the other side, on another machine) appends its own, and
two machines' files put one after the other are such a file again. The published rounds' files are
one block without ``format:``; of them the ``reference:`` and ``ajax:`` lines are known.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.errors import RecordError, printable, shown
from shared.protocol import ROUNDS, SIDES, Side
from shared.provenance.roots import AJAX_ROOT, REFERENCE_ROOT, REPO_ROOT
from shared.records.files import read_text, write_atomic
from shared.variables import XLA_FLAGS_VARIABLE

FORMAT = 1
#: A start takes 2 kB.
MAX_BYTES = 2**20
FORMAT_KEY = "format"
#: Key of the line that identifies this project's own code.
PROJECT = "project"
DIFF_KEY = "uncommitted diff vs HEAD sha1"
#: sha1 of nothing: what the published rounds recorded for a checkout without changes.
EMPTY_DIFF = "da39a3ee5e6b4b0d3255bfef95601890afd80709"

_ROOTS = {"reference": REFERENCE_ROOT, "ajax": AJAX_ROOT, PROJECT: REPO_ROOT}
_COMMIT = re.compile(r"^(?:(?P<root>\S.*) )?@ (?P<commit>[0-9a-f]{7,40})\b")
_RELEASE = re.compile(r"^(?P<name>[A-Za-z0-9][\w.\-]*) (?P<version>\d[\w.+!]*)$")
_YES_NO = {"yes": True, "no": False}
_NUMBER = re.compile(r"[0-9]{1,10}")
_NUMBERS = re.compile(r"[0-9]{1,10}( [0-9]{1,10})*")
_ANYTHING, _SIDE = re.compile(".*"), "|".join(SIDES)
#: Key -> what it holds in a block of this project, and that in words: what a reader acts on.
_VALUES: dict[str, tuple[re.Pattern[str], str]] = {
    "round": (re.compile("|".join(map(re.escape, ROUNDS))), f"one of {', '.join(ROUNDS)}"),
    "smoke": (re.compile("yes|no"), "yes or no"),
    "sides": (
        re.compile(rf"({'|'.join(SIDES)})( ({'|'.join(SIDES)}))*"),
        "reference, ajax or both",
    ),
    "seeds": (_NUMBERS, "whole numbers"),
    **dict.fromkeys(("rows", "every", "episodes"), (_NUMBER, "a whole number")),
}


@dataclass(frozen=True)
class Revision:
    """Which code a line names: a checkout's ``commit``, or a release's name, version and digest.

    ``dirty`` is ``None`` where it was not recorded. A tree that is no git checkout has neither
    commit nor distribution.
    """

    commit: str | None = None
    dirty: bool | None = None
    diff_sha1: str | None = None
    distribution: Mapping[str, str] | None = None

    def line(self, key: str) -> str:
        """The value of the line ``key`` (``reference``, ``ajax`` or ``project``)."""
        if self.distribution is not None:
            release = self.distribution
            return f"{release['name']} {release['version']}; digest sha256: {release['digest']}"
        root = f"<{_ROOTS[key]}>"
        if self.commit is None:
            return f"{root}; no git checkout"
        diff = f"; {DIFF_KEY}: {self.diff_sha1}" if self.diff_sha1 is not None else ""
        dirty = "" if self.dirty is None else f"; dirty: {'yes' if self.dirty else 'no'}"
        return f"{root} @ {self.commit}{diff}{dirty}"


def parse_revision(value: str) -> Revision:
    """The revision that a line's value names, as far as it can be read."""
    head, *rest = value.split("; ")
    clauses = dict(part.split(": ", 1) for part in rest if ": " in part)
    if match := _COMMIT.match(head):
        diff = clauses.get(DIFF_KEY)
        dirty = _YES_NO.get(clauses.get("dirty", ""))
        if dirty is None and diff is not None:
            dirty = diff != EMPTY_DIFF
        return Revision(match["commit"], dirty, diff)
    if match := _RELEASE.match(head):
        digest = clauses.get("digest sha256", "")
        return Revision(distribution={**match.groupdict(), "digest": digest})
    return Revision()


@dataclass(frozen=True)
class Launch:
    """One start of a round, or of one side of it: the block's fields in the order of the file."""

    fields: Mapping[str, str]

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides that this start ran; both where the block does not say."""
        named = self.fields.get("sides", "").split()
        return tuple(side for side in SIDES if side in named) or SIDES

    def revision(self, key: str) -> Revision | None:
        """Revision on the line ``reference``, ``ajax`` or ``project``; ``None`` without one."""
        value = self.fields.get(key)
        return None if value is None else parse_revision(value)

    def number(self, key: str) -> int | None:
        """A whole number such as ``rows`` or ``every``; ``None`` where the block has none."""
        value = self.fields.get(key, "").strip()
        return int(value) if _NUMBER.fullmatch(value) else None

    @property
    def seeds(self) -> tuple[int, ...] | None:
        """The seeds of this start; ``None`` where the block has none, or other words."""
        words = self.fields.get("seeds", "").split()
        return tuple(map(int, words)) if words and all(map(_NUMBER.fullmatch, words)) else None


def side_keys(side: Side) -> tuple[str, ...]:
    """Fields that say what ran on a side, beside its arm: code, flags, Python, packages, ours."""
    own = (f"{side} {what}" for what in ("python", "packages", "code"))
    return (side, XLA_FLAGS_VARIABLE[side], *own)


def format_launch(fields: Mapping[str, str]) -> str:
    """One block: ``format:`` and the fields, one line each.

    Raises ``ValueError`` for a key or value that would not read back: this is the caller's bug.
    """
    lines = {FORMAT_KEY: str(FORMAT), **fields}
    for key, value in lines.items():
        if ":" in key or key != key.strip() or len(f"{key}{value}.".splitlines()) != 1:
            raise ValueError(f"launch_info field {key!r}: {value!r} is not one line")
    return "".join(f"{key}: {value}".rstrip() + "\n" for key, value in lines.items())


def append_launch(path: Path, fields: Mapping[str, str]) -> None:
    """Add one block to the file, which appears or changes in one step."""
    before = f"{read_text(path, MAX_BYTES).rstrip()}\n\n" if path.exists() else ""
    write_atomic(path, before + format_launch(fields))


def parse_launches(text: str, where: str) -> tuple[Launch, ...]:
    """The starts that ``text`` records, in its order; lines without a colon are passed over.

    Raises :class:`RecordError` for an unknown format, for a value that no start of this project
    writes, and for a key that a block has twice; ``where`` names the file in it.
    """
    blocks: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        key, colon, value = line.partition(":")
        if not colon:
            continue
        # Values are shown to the user wherever they are compared.
        key, value = key.strip(), printable(value.strip())
        if key == FORMAT_KEY:
            if value != str(FORMAT):
                raise RecordError(
                    f"{where}:{number}: format {value} is unknown (this version reads {FORMAT} "
                    "and the published one); update this project"
                )
            blocks.append({})
        if not blocks:
            blocks.append({})
        block = blocks[-1]
        pattern, words = _VALUES.get(key, (_ANYTHING, ""))
        if FORMAT_KEY in block and not pattern.fullmatch(value):
            raise RecordError(
                f"{where}:{number}: {key} is {shown(value)}, expected {words}; restore the line"
            )
        # Of a block without format, lines that nobody reads may be there twice.
        read = key in (*_ROOTS, *_VALUES) and block.get(key) != value
        if key in block and (FORMAT_KEY in block or read):
            raise RecordError(f"{where}:{number}: {shown(key)} is there twice; remove one line")
        block[key] = value
    return tuple(Launch(block) for block in blocks)


def read_launches(path: Path) -> tuple[Launch, ...]:
    """The starts recorded in the file ``path``, oldest first. Raises :class:`RecordError`."""
    launches = parse_launches(read_text(path, MAX_BYTES), str(path))
    if not launches:
        raise RecordError(f"{path}: holds no 'key: value' line; restore the file")
    return launches


def side_revision(launches: Sequence[Launch], side: Side) -> Revision | None:
    """Revision of ``side`` in the last start that ran it; ``None`` where none names one."""
    found = (launch.revision(side) for launch in launches if side in launch.sides)
    return next((each for each in reversed(list(found)) if each is not None), None)

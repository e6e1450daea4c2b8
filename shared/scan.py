"""Finds what kept files must not hold: absolute paths, user names and host names.

``python -m shared.scan PATH...`` prints every finding as ``file:line: kind: text`` and exits 1 if
there is one.
"""

import argparse
import contextlib
import dataclasses
import getpass
import io
import os
import platform
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.errors import EXIT_NO, UserError, run_command
from shared.metrics import AJAX_TO_REFERENCE, TABLE_METRICS
from shared.protocol import ARMS, SIDE_KEY
from shared.records import layout
from shared.records.files import read_bytes
from shared.records.rows import Episode, Evaluation, Progress, Record

#: First components of absolute paths on the systems that people run this on.
_TOP_LEVEL = (
    "Users|Volumes|home|root|work|tmp|var|private|opt|usr|etc|mnt|media|srv|data|scratch|nix|"
    "gpfs|lustre|lib|lib64|bin|sbin|proc|sys|dev|run|app|workspace|content|kaggle"
)
_ABSOLUTE = re.compile(
    # Not preceded by what makes it part of a URL, of a relative path or of a named root.
    rf"(?<![\w.~/>\-])/(?:{_TOP_LEVEL})(?:/[\w.@+\-]+)+"
    r"|\bfile:///?[\w.]+"
    r"|(?<![\w])[A-Za-z]:\\{1,2}\w[\w. \-]*\\{1,2}[\w.]+"
)
#: Also in text; three characters of noise in a binary file make one of these.
_ABSOLUTE_IN_TEXT = re.compile(
    _ABSOLUTE.pattern + r"|(?<![\w/])~[\w.\-]*/[\w.]+|(?<![\w])[A-Za-z]:\\{1,2}[\w.]+"
)
#: Harmless absolute paths that say nothing of a machine.
_ALLOWED = re.compile(r"^/(?:dev/(?:null|stdout|stderr|shm)|usr/bin/env|bin/(?:sh|bash))$")
#: Bytes of a file, and of what an archive unpacks to.
MAX_BYTES = 2**28
#: Names too common to tell a machine or a person from a word.
_COMMON = {"root", "user", "admin", "runner", "localhost", "ubuntu", "debian", "python", "main"}


@dataclass(frozen=True)
class Finding:
    """One place in a kept file that names a machine or a person."""

    path: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


def local_names() -> dict[str, str]:
    """Names of this machine and its user -> what they are.

    Left out are common words, and the words that every record is full of: a user may be called
    ``max``.
    """
    host = platform.node()
    names = {host: "host name", host.split(".")[0]: "host name"}
    # A container's user may have no entry in the user database.
    with contextlib.suppress(KeyError, OSError):
        names[getpass.getuser()] = "user name"
    names[Path.home().name] = "user name"
    own = own_words()
    return {
        name: kind
        for name, kind in names.items()
        if len(name) > 2 and name.lower() not in _COMMON and name not in own
    }


def own_words() -> frozenset[str]:
    """Words of which this project's files are made: metrics, fields, sides, arms, file names."""
    rows = (Evaluation, Record, Episode, Progress)
    spelled = (
        *AJAX_TO_REFERENCE,
        *AJAX_TO_REFERENCE.values(),
        *TABLE_METRICS,
        *(field.name for row in rows for field in dataclasses.fields(row)),
        *SIDE_KEY,
        *SIDE_KEY.values(),
        *(arm.name for arm in ARMS),
        *(each for name, each in vars(layout).items() if name.isupper() and isinstance(each, str)),
    )
    return frozenset(word for each in spelled for word in re.findall(r"\w+", each))


def scan_text(
    text: str, path: Path, names: dict[str, str], *, binary: bool = False
) -> Iterator[Finding]:
    """Findings in one file's text; ``names`` maps forbidden words to their kind.

    ``binary`` says that the text is what could be read in a binary file.
    """
    absolute = _ABSOLUTE if binary else _ABSOLUTE_IN_TEXT
    words = re.compile(
        "|".join(rf"(?<![\w]){re.escape(name)}(?![\w])" for name in names) or r"(?!)"
    )
    for number, line in enumerate(text.splitlines(), start=1):
        for match in absolute.finditer(line):
            if not _ALLOWED.match(match[0]):
                yield Finding(path, number, "absolute path", match[0])
        for match in words.finditer(line):
            yield Finding(path, number, names[match[0]], match[0])


def scan_tree(
    root: Path, *, names: dict[str, str] | None = None, skip_suffixes: Sequence[str] = ()
) -> list[Finding]:
    """Findings in every file below ``root`` (or in the file ``root``), .gz and .npz unpacked.

    Files with a suffix in ``skip_suffixes`` are left out (``.log``: a program's own output, not
    kept). Of binary files, those with a zero byte, the readable runs are searched.
    """
    forbidden = local_names() if names is None else names
    found: list[Finding] = []
    for path in files_below(root):
        if path.suffix not in skip_suffixes:
            data = _unpacked(read_bytes(path, MAX_BYTES))
            binary = b"\0" in data
            text = _printable(data) if binary else data.decode("utf-8", errors="replace")
            found.extend(scan_text(text, path, forbidden, binary=binary))
    return found


def _unpacked(data: bytes) -> bytes:
    """The members of a zip archive, which an .npz file is, one after the other; else ``data``."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                return data
            return b"\0".join(archive.read(name) for name in archive.namelist())
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError):
        return data  # damaged, or packed in a way of its own: what it says as it stands


def _printable(data: bytes) -> str:
    """Runs of at least 6 printable ASCII characters, a line each: what a binary file says.

    Characters may be one byte wide, or two or four as in numpy's arrays of text.
    """
    wide = rb"|".join(rb"(?:[\x20-\x7e]%s){6,}" % (rb"\0" * zeros) for zeros in (3, 1, 0))
    return "\n".join(run.replace(b"\0", b"").decode() for run in re.findall(wide, data))


def files_below(root: Path) -> Iterator[Path]:
    """Regular files below ``root`` in a stable order; ``root`` itself if it is a file."""
    if root.is_file():
        yield root
        return
    for directory, subdirectories, names in os.walk(root):
        subdirectories.sort()
        for name in sorted(names):
            # A link to a device would be read for ever.
            if (path := Path(directory) / name).is_file():
                yield path


def main() -> int:
    """Scan the given files and directories."""
    parser = argparse.ArgumentParser(
        prog="python -m shared.scan",
        description="Find absolute paths, user names and host names in kept files.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--skip", nargs="*", default=[], metavar="SUFFIX", help="e.g. .log")
    arguments = parser.parse_args()
    found: list[Finding] = []
    for path in arguments.paths:
        if not path.exists():
            raise UserError(f"{path}: no such file or directory; name an existing one")
        found.extend(scan_tree(path, skip_suffixes=arguments.skip))
    for finding in found:
        print(finding)
    return EXIT_NO if found else 0


if __name__ == "__main__":
    run_command(main)

"""Which process was this, and does it still run? Pids are reused, machines reboot, folders travel.

A process is known by its pid, the moment the kernel started it, the boot it belongs to and the
directory it works for. None of these names a machine or a user, so that a file that keeps them
may be kept (protocol section 7).
"""

import hashlib
import hmac
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Self

_PROC = Path("/proc")
_BOOT_ID = _PROC / "sys/kernel/random/boot_id"
_MACHINE_ID = Path("/etc/machine-id")
#: Position of the state and of the start time in ``/proc/<pid>/stat``, after the command's name.
_STATE, _START = 0, 19
#: A process in one of these states has ended and waits for its parent to notice.
_ENDED = ("Z", "X", "x")


class Fate(Enum):
    """What became of a recorded process, as far as this machine can tell."""

    RUNS = "runs"
    #: It has ended; if the pid is in use, it is another program's.
    GONE = "gone"
    #: It ended with the machine, which was started anew since.
    REBOOTED = "the machine rebooted"
    #: The directory is a copy; the process worked, or works, for the original.
    COPIED = "the directory was copied"
    #: Another machine, which shares this directory, ran or runs it.
    ELSEWHERE = "another machine"


@dataclass(frozen=True)
class Identity:
    """One process.

    ``started`` counts clock ticks since the boot ``boot`` (elsewhere than on Linux it is a date);
    ``machine`` is a keyed digest, ``directory`` the inode number of the output directory.
    """

    pid: int
    started: str
    boot: str
    machine: str
    directory: int

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self | None:
        """The identity in ``row``, whose other keys are ignored; ``None`` if it holds none."""
        try:
            return cls(
                pid=int(row["pid"]),
                started=str(row["started"]),
                boot=str(row["boot"]),
                machine=str(row["machine"]),
                directory=int(row["directory"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def fate(self, out: Path) -> Fate:
        """What became of the process, as recorded in a file of the directory ``out``."""
        if self.directory != out.stat().st_ino:
            return Fate.COPIED
        if self.boot != boot_id():
            return Fate.REBOOTED if self.machine == machine_digest() else Fate.ELSEWHERE
        return Fate.RUNS if start_of(self.pid) == self.started else Fate.GONE


def identify(pid: int, out: Path) -> Identity:
    """The identity of a running process that works for the directory ``out``."""
    return Identity(pid, start_of(pid) or "", boot_id(), machine_digest(), out.stat().st_ino)


def start_of(pid: int) -> str | None:
    """When the kernel started process ``pid``; ``None`` if it does not run (any more)."""
    if not _PROC.joinpath("self/stat").exists():
        return _start_from_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold blanks and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else fields[_START]


def _start_from_ps(pid: int) -> str | None:
    """As :func:`start_of`, on a system without ``/proc``."""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    except OSError:
        return None
    state, _, started = done.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith(_ENDED) else None


@cache
def boot_id() -> str:
    """Identifies the time from one start of the machine to its end."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        command = ["sysctl", "-n", "kern.bootsessionuuid"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


@cache
def machine_digest() -> str:
    """Tells machines apart without naming one: the machine's id is the key of a digest."""
    try:
        secret = _MACHINE_ID.read_bytes().strip()
    except OSError:
        secret = platform.node().encode()
    return hmac.digest(secret, b"dreamerv3-comparison", hashlib.sha256).hex()[:16]

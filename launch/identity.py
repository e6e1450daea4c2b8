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

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
#: A process in one of these states has ended and waits for its parent to notice.
_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


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

    ``started`` counts clock ticks since the boot ``boot``; ``machine`` is a keyed digest,
    ``directory`` the inode number of the output directory.
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
    """Clock ticks from the machine's start to that of process ``pid``; ``None`` if it has ended."""
    try:
        process = psutil.Process(pid)
        if process.status() in _ENDED:
            return None
        # The difference does not follow the clock when that is set.
        seconds = process.create_time() - psutil.boot_time()
    except (psutil.Error, ValueError, OverflowError):
        return None
    return str(round(seconds * os.sysconf("SC_CLK_TCK")))


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

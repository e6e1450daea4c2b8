"""What do the processes of this machine work with? Their command lines, and where they are."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shared.errors import UserError

PROC = Path("/proc")
#: Variable of a process that compiles or has compiled into a cache directory.
CACHE_VARIABLE = b"JAX_COMPILATION_CACHE_DIR="


def command_lines() -> list[tuple[int, str]]:
    """Process id and command line of every other process that can be seen.

    Where there is a ``/proc``, its working directory and its compilation cache follow. Raises
    ``UserError`` where nothing tells which processes run: then anything may be in use.
    """
    lines = _read_proc() if (PROC / "self" / "cmdline").exists() else _ask_ps()
    return [(pid, line) for pid, line in lines if pid not in (os.getpid(), os.getppid())]


def mentions(line: str, path: Path) -> bool:
    """Whether a command line has ``path``, or something below it, as a word or a part of one."""
    return re.search(rf"(?<![\w/]){re.escape(str(path))}(?![\w.-])", line) is not None


def _read_proc() -> Iterator[tuple[int, str]]:
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):  # gone since it was listed
            if words := (process / "cmdline").read_bytes():
                line = words.replace(b"\0", b" ")
                with suppress(OSError):  # another user's
                    variables = (process / "environ").read_bytes().split(b"\0")
                    cache = [word for word in variables if word.startswith(CACHE_VARIABLE)]
                    line = b" ".join([line, bytes((process / "cwd").readlink()), *cache])
                yield int(process.name), os.fsdecode(line)


def _ask_ps() -> Iterator[tuple[int, str]]:
    command = ["ps", "-A", "-ww", "-o", "pid=,args="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = "not found" if isinstance(error, OSError) else error.stderr.strip() or "failed"
        raise UserError(
            f"ps: {reason.splitlines()[0]}; without it nothing tells what is in use. Install ps "
            "(often the package procps), or remove by hand what no process uses"
        ) from None
    for line in done.stdout.splitlines():
        pid, _, arguments = line.strip().partition(" ")
        if pid.isdigit():
            yield int(pid), arguments

"""``nox -s clean``: lists what ``.work/`` holds, and removes what is named, nothing else."""

import argparse
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from launch.describe import megabytes
from launch.lock import inspect, is_alive
from shared.errors import EXIT_NO, UserError, run_command
from shared.provenance.roots import REPO

WORK = REPO / ".work"
#: Folders whose entries are listed one by one; they can be removed as a whole too.
FOLDERS = ("env", "cache", "cache/jax")
#: Variable of a process that compiles or has compiled into a cache directory.
CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def main() -> int:
    """Run the command; the exit status."""
    asked = parse().remove
    if WORK.exists() and not WORK.is_dir():
        raise UserError(f"{WORK.relative_to(REPO)}: is a file, where a directory belongs; move it")
    lines = command_lines()
    if asked is None:
        print(listing(lines), end="")
        print("\nnothing was removed; name what is to go: nox -s clean -- --remove NAME...")
        return 0
    chosen = list(dict.fromkeys(map(find, asked)))
    for name in chosen:
        if (user := user_of(WORK / name, lines)) is not None:
            raise UserError(
                f"--remove {name}: {user} works with it; stop that first. Nothing was removed"
            )
    return max([remove(name) for name in chosen])


def listing(lines: Sequence[tuple[int, str]]) -> str:
    """A line for each entry: the bytes that its removal frees, its name, and who works with it.

    ``lines`` are process ids and command lines of the running processes.
    """
    entries = {name: disk_bytes(WORK / name) for name in sorted(names() - {*FOLDERS})}
    text = ""
    for name, size in entries.items():
        user = user_of(WORK / name, lines)
        text += f"{megabytes(size):>9}  {name}{f'  in use: {user}' if user else ''}\n"
    return f"{text}{megabytes(sum(entries.values())):>9}  in all\n"


def names() -> set[str]:
    """What can be removed: the entries of ``.work/`` and of its folders; no link is followed."""
    folders = [WORK, *(WORK / folder for folder in FOLDERS)]
    places = [
        place
        for place in folders
        if place.is_dir() and place.resolve() == WORK.resolve() / place.relative_to(WORK)
    ]
    return {path.relative_to(WORK).as_posix() for place in places for path in place.iterdir()}


def find(name: str) -> str:
    """The entry that a user calls ``name``. Raises ``UserError`` where there is none."""
    entry = name.removeprefix(".work/").rstrip("/")
    if entry not in names():
        raise UserError(f"--remove {name}: .work/ has no such entry; nox -s clean lists them")
    return entry


def user_of(path: Path, lines: Sequence[tuple[int, str]]) -> str | None:
    """Who works with ``path``: a process whose line mentions it, or a launcher."""
    pid = next((pid for pid, line in lines if mentions(line, path)), None)
    if pid is not None:
        return f"process {pid}"
    # A launcher between two processes, or at the next part of a round, or of another machine.
    parts = [part for part in path.iterdir() if part.is_dir()] if path.is_dir() else []
    launchers = [launcher for launcher in map(inspect, (path, *parts)) if launcher is not None]
    busy = any(launcher.runs for launcher in launchers) or any(map(is_alive, parts))
    return "a launcher" if busy else None


def command_lines() -> list[tuple[int, str]]:
    """Process id of every other process that can be seen, and what it works with.

    That is its command line, its working directory and its compilation cache.
    """
    lines = []
    for process in psutil.process_iter(["cmdline", "cwd", "environ"]):
        seen = process.info  # None where another user's process does not show it
        words = [*(seen["cmdline"] or ()), seen["cwd"] or ""]
        words.append((seen["environ"] or {}).get(CACHE_VARIABLE, ""))
        lines.append((process.pid, " ".join(words)))
    return [(pid, line) for pid, line in lines if pid not in (os.getpid(), os.getppid())]


def mentions(line: str, path: Path) -> bool:
    """Whether a command line has ``path``, or something below it, as a word or a part of one."""
    return re.search(rf"(?<![\w/]){re.escape(str(path))}(?![\w.-])", line) is not None


def disk_bytes(path: Path) -> int:
    """Bytes that a removal of ``path`` frees."""
    files = [path]
    if path.is_dir() and not path.is_symlink():
        files = [Path(root, name) for root, _, names in os.walk(path) for name in names]
    size = 0
    for file in files:
        with suppress(OSError):  # gone since it was listed
            stat = file.lstat()
            # An environment's files are often links to uv's cache, which keeps them.
            size += stat.st_blocks * 512 if stat.st_nlink == 1 else 0
    return size


def remove(name: str) -> int:
    """Remove a file, a link (never what it points to) or a directory; the exit status."""
    path = WORK / name
    size = megabytes(disk_bytes(path))
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            # Renamed first: a directory that is half gone must not pass for whole.
            doomed = path.with_name(f".removing-{os.getpid()}-{path.name}")
            path.rename(doomed)
            shutil.rmtree(doomed)
    except OSError as error:
        print(f"{name}: not removed, or not all of it ({error.strerror})")
        return EXIT_NO
    print(f"removed {name} ({size})")
    return 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="nox -s clean --",
        description="List what .work/ holds: environments, checkouts, caches and runs, with their "
        "sizes and whether a process uses them. Remove only what is named: environments and "
        "caches are made again when they are needed, a run is gone for good.",
    )
    parser.add_argument(
        "--remove",
        nargs="+",
        metavar="NAME",
        help="what to remove, named as the list has it; env, cache or cache/jax as a whole too",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    run_command(main)

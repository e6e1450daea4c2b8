"""``nox -s clean``: shows what ``.work/`` holds, and removes what is named, nothing else."""

import argparse
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from launch.describe import megabytes
from launch.environments import BUILDING, locate
from launch.lock import inspect, is_alive
from launch.packages import ENVIRONMENTS
from launch.usage import command_lines, mentions
from shared.errors import EXIT_NO, UserError, run_command
from shared.layout import LAUNCH_INFO
from shared.obtain import DEFAULT_CHECKOUT
from shared.provenance import REPO

WORK = REPO / ".work"
#: Folders whose entries are listed one by one; they can be removed as a whole too.
FOLDERS = ("env", "cache", "cache/jax")
#: A directory is renamed before it is removed: one that is half gone must not pass for whole.
DOOMED = ".removing-"


@dataclass(frozen=True)
class Item:
    """One entry of ``.work/``: ``age_s`` seconds since its newest file changed.

    ``user`` names the process that works with it, ``None`` without one.
    """

    name: str
    path: Path
    kind: str
    size: int
    age_s: float
    user: str | None = None

    @property
    def state(self) -> str:
        """What a user must know before removing it."""
        return "" if self.user is None else "in use"


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    if WORK.exists() and not WORK.is_dir():
        raise UserError(f"{WORK.relative_to(REPO)}: is a file, where a directory belongs; move it")
    if not WORK.exists() and options.remove is None:
        print(f"{WORK.relative_to(REPO)}/ does not exist: there is nothing to remove")
        return 0
    if options.remove is None:
        print(table(items(WORK)), end="")
        print("\nnothing was removed; name what is to go: nox -s clean -- --remove NAME...")
        return 0
    chosen = [find(WORK, name) for name in options.remove]
    for item in chosen:
        refuse_in_use(item)
    return remove(chosen, dry_run=options.dry_run)


def items(work: Path) -> list[Item]:
    """Everything in ``work``, the folders' entries one by one, in the order of their names."""
    lines = command_lines()
    names = [name for name in _children(work, "") if name not in FOLDERS]
    for folder in FOLDERS:
        names += [name for name in _children(work, folder) if name not in FOLDERS]
    return [describe(work, name, lines) for name in sorted(names)]


def find(work: Path, name: str) -> Item:
    """The entry ``name`` of ``work``. Raises ``UserError`` unless it is one that can be removed."""
    plain = name.removeprefix(".work/").rstrip("/")
    known = {each for folder in ("", *FOLDERS) for each in _children(work, folder)}
    if plain not in known:
        raise UserError(f"--remove {name}: .work/ has no such entry; nox -s clean lists them")
    return describe(work, plain, command_lines())


def describe(work: Path, name: str, lines: Sequence[tuple[int, str]]) -> Item:
    """Look at one entry; ``lines`` are the command lines of the running processes."""
    path = work / name
    size, newest = measure(path)
    user = next((f"process {pid}" for pid, line in lines if mentions(line, path)), None)
    if user is None and _has_launcher(path):
        user = "its launcher"  # between two processes, or on a machine that shares the directory
    return Item(name, path, kind(path, name), size, max(0.0, time.time() - newest), user)


def kind(path: Path, name: str) -> str:
    """What an entry is."""
    if path.is_symlink():
        return "link"
    if name in FOLDERS:
        return "folder"
    if name.startswith("env/"):
        return _environment(path)
    if name.startswith("cache/"):
        return "compiled programs" if name.startswith("cache/jax/") else "cache"
    if path == DEFAULT_CHECKOUT:
        return "reference checkout"
    if any((each / LAUNCH_INFO).exists() for each in _runs_at(path)):
        return "run"
    return "file" if path.is_file() else "directory"


def _runs_at(path: Path) -> list[Path]:
    """Where a run may lie: in ``path``, or, as the parts of round 4 do, one level below."""
    below = path.iterdir() if path.is_dir() else ()
    return [path, *(each for each in below if each.is_dir())]


def _has_launcher(path: Path) -> bool:
    """Whether a launcher works for it, or has ended a part of it and is about to begin the next."""
    itself, *parts = _runs_at(path)
    launchers = map(inspect, (itself, *parts))
    return any(each is not None and each.runs for each in launchers) or any(map(is_alive, parts))


def _environment(path: Path) -> str:
    if BUILDING in path.name:
        return "unfinished build"
    if not path.is_dir():
        return "digests of a build" if path.suffix == ".json" else "log of a build"
    for name in ENVIRONMENTS:
        if path.name.startswith(f"{name}-"):
            try:
                current = locate(name, path.parents[2]).parent.parent == path
            except UserError:
                return "environment"
            return "environment" if current else "old environment"
    return "directory"


def measure(path: Path) -> tuple[int, float]:
    """Bytes that a removal frees, and the time of the newest change below ``path``."""
    if path.is_dir() and not path.is_symlink():
        entries = [Path(root) / name for root, _, files in os.walk(path) for name in files]
    else:
        entries = []
    size, newest = 0, path.lstat().st_mtime
    for each in entries:
        try:
            stat = each.lstat()
        except OSError:
            continue  # gone since it was listed
        # An environment's files are often links to uv's cache, which keeps them.
        size += stat.st_blocks * 512 if stat.st_nlink == 1 else 0
        newest = max(newest, stat.st_mtime)
    return size or path.lstat().st_blocks * 512, newest


def refuse_in_use(item: Item) -> None:
    """Raise ``UserError`` where a process works with it."""
    if item.user is not None:
        what = "a running round" if item.kind == "run" else f"a {item.kind} in use"
        raise UserError(
            f"--remove {item.name}: {what} ({item.user}); stop that first. Nothing was removed"
        )


def remove(chosen: Sequence[Item], *, dry_run: bool) -> int:
    """Remove the entries, or say what would be; the exit status."""
    status = 0
    for item in chosen:
        if dry_run:
            print(f"would remove {item.name} ({item.kind}, {megabytes(item.size)})")
            continue
        try:
            delete(item.path)
        except OSError as error:
            print(f"{item.name}: not removed, or not all of it ({error.strerror})")
            status = EXIT_NO
        else:
            print(f"removed {item.name} ({item.kind}, {megabytes(item.size)})")
    return status


def delete(path: Path) -> None:
    """Remove a file, a link (never what it points to) or a directory."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    doomed = path.with_name(f"{DOOMED}{os.getpid()}-{path.name}")
    path.rename(doomed)
    shutil.rmtree(doomed)


def table(found: Sequence[Item]) -> str:
    """The entries as lines of text, and their sum."""
    columns: tuple[Callable[[Item], str], ...] = (
        lambda item: item.name,
        lambda item: item.kind,
        lambda item: megabytes(item.size),
        lambda item: age(item.age_s),
        lambda item: item.state,
    )
    rows = [["in .work/", "what", "frees", "age", ""]]
    rows += [[column(item) for column in columns] for item in found]
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    right = {2, 3}
    lines = [
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, f"{megabytes(sum(item.size for item in found))} in all"]) + "\n"


def age(seconds: float) -> str:
    """``12 min``, ``5 h`` or ``3 d``."""
    for unit, length in (("d", 86400), ("h", 3600)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} min"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="nox -s clean --",
        description="Show what .work/ holds: environments, checkouts, caches and runs, with size, "
        "age and whether a process uses them. Remove only what is named: environments and caches "
        "are rebuilt when they are needed, a run is gone for good. An unfinished build is one that "
        "runs or was killed; the next build removes those that are older than a day.",
    )
    parser.add_argument(
        "--remove",
        nargs="+",
        metavar="NAME",
        help="what to remove, named as the list has it; env, cache or cache/jax as a whole too",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed")
    return parser.parse_args(arguments)


def _children(work: Path, folder: str) -> list[str]:
    place = work / folder
    if place.is_symlink() or not place.is_dir():
        return []
    return [f"{folder}/{each.name}" if folder else each.name for each in place.iterdir()]


if __name__ == "__main__":
    run_command(main)

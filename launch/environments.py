"""The project's environments: exact, hashed package lists installed by uv and reused afterwards.

An environment lies in ``.work/env/<name>-<digest>``; the digest covers its package list and its
interpreter, so that a change of either builds a new one beside the old. It is built under another
name and renamed when complete: what bears the final name is whole, whoever was killed on the way.

    python -m launch.environments reference ajax
"""

import argparse
import hashlib
import json
import re
import secrets
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from launch.interpreters import Interpreter, find_interpreter, find_uv
from launch.packages import ENVIRONMENTS, Environment, requirements, versions
from launch.uv import index_of_pip, run_uv
from shared.errors import UserError, end_at_sigterm, run_command
from shared.files import write_atomic
from shared.installed import Digests, IncompleteError, verify_environment

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = "copies"  # how packages are installed; another word builds new environments
#: In the name of what is being built, or was when its builder was killed.
BUILDING = ".building-"
LEFTOVER_SECONDS = 24 * 3600.0  # no build takes a day: an older unfinished one was killed

_UNREACHABLE = re.compile(
    r"Failed to fetch|error sending request|network was disabled|dns error|timed out"
    r"|connect error|os error 10[14]|os error 11[0-3]"
)
_MISMATCH = re.compile(r"Hash mismatch for `([^`]+)`")
_DISK = re.compile(r"No space left|Permission denied|Read-only file system|Not a directory")


def ensure(name: str, root: Path = ROOT) -> Path:
    """The Python of the environment called ``name``, which is built if it is not there.

    Raises:
        UserError: unknown name, no interpreter, no uv, no index, a wrong hash, a full disk.
    """
    if name not in ENVIRONMENTS:
        raise UserError(f"no environment is called {name!r}; choose from {', '.join(ENVIRONMENTS)}")
    return ensure_environment(ENVIRONMENTS[name], root)


def ensure_environment(environment: Environment, root: Path) -> Path:
    """As :func:`ensure`, for any environment whose lists lie in ``root``."""
    packages, interpreter, home = _plan(environment, root)
    if not _is_whole(home, packages):
        _build(environment, packages, interpreter, home, root)
    return _python(home)


def locate(name: str, root: Path = ROOT) -> Path:
    """Where :func:`ensure` has or would put the Python of ``name``; nothing is built.

    Raises:
        UserError: no interpreter of a version that the environment takes.
    """
    return _python(_plan(ENVIRONMENTS[name], root)[2])


def is_built(name: str, root: Path = ROOT) -> bool:
    """Whether :func:`ensure` would find ``name`` whole.

    Raises:
        UserError: it has changed files, or would have to be built, and there is no interpreter or
            no uv to do so.
    """
    packages, _, home = _plan(ENVIRONMENTS[name], root)
    built = _is_whole(home, packages)
    if not built:
        find_uv()
    return built


def _plan(environment: Environment, root: Path) -> tuple[str, Interpreter, Path]:
    """The package list, the interpreter and the folder of an environment."""
    packages = requirements(environment, root)
    try:
        interpreter = find_interpreter(environment.pythons)
    except UserError as error:
        raise UserError(f"environment {environment.name!r}: {error}") from None
    return packages, interpreter, _home(environment, packages, interpreter, root)


def _home(environment: Environment, packages: str, interpreter: Interpreter, root: Path) -> Path:
    parts = f"{interpreter.identity}\n{INSTALLED}\n{packages}"
    digest = hashlib.sha256(parts.encode()).hexdigest()
    return root / ".work" / "env" / f"{environment.name}-{digest[:12]}"


def _python(home: Path) -> Path:
    return home / "bin" / "python"


def _ready(home: Path) -> Path:
    """Where the facts of an environment lie: beside it, so that no change of it changes them."""
    return home.with_name(f"{home.name}.json")


def _is_whole(home: Path, packages: str) -> bool:
    """Whether an environment is there with all of its files, each as it was installed.

    Raises ``UserError`` for a changed or an additional file.
    """
    # exists() follows the link: an interpreter that was removed since makes the rest useless.
    if not _python(home).exists():
        return False
    try:
        known = json.loads(_ready(home).read_text(encoding="utf-8"))["files"]
        verify_environment(home, versions(packages), known)
    except (OSError, ValueError, KeyError, TypeError, IncompleteError):
        return False
    return True


def _build(
    environment: Environment, packages: str, interpreter: Interpreter, home: Path, root: Path
) -> None:
    """Build beside ``home``, then rename; of two builders at once the first to finish wins."""
    find_uv()
    begun = time.monotonic()
    _say(
        f"environment {environment.name!r}: installing {packages.count('==')} packages for Python"
        f" {interpreter.version}; takes about a minute the first time"
    )
    unfinished = home.with_name(f"{home.name}{BUILDING}{secrets.token_hex(4)}")
    damaged = unfinished.with_name(f"{unfinished.name}-damaged")
    try:
        _remove_leftovers(home.parent)
        unfinished.mkdir(parents=True)
        _install(environment, packages, interpreter, unfinished, root)
        facts = {
            "name": environment.name,
            "python": interpreter.version,
            "lists": environment.files,
            "files": _verified(environment, unfinished, packages),
        }
        if not _is_whole(home, packages):
            if home.exists():
                home.rename(damaged)
            # First the facts: builders at once take down the same ones.
            write_atomic(_ready(home), f"{json.dumps(facts, indent=1)}\n")
            unfinished.rename(home)
    except OSError as error:
        if not _is_whole(home, packages):  # else another builder was faster, and its work will do
            raise UserError(
                f"environment {environment.name!r}: cannot write {home.parent}"
                f" ({error.strerror}); make room there or make it writable"
            ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(damaged, ignore_errors=True)
    _say(f"environment {environment.name!r}: ready after {time.monotonic() - begun:.1f} s")


def _verified(environment: Environment, place: Path, packages: str) -> Digests:
    """The digests of what was installed and no RECORD vouches for; uv believes its cache."""
    try:
        return verify_environment(place, versions(packages))
    except UserError as error:
        said = str(error).removeprefix(f"{place}").partition(";")[0].lstrip("/")
        raise UserError(
            f"environment {environment.name!r}: what uv installed is not what its packages say"
            f" ({said}); run 'uv cache clean', then run again"
        ) from None


def _install(
    environment: Environment, packages: str, interpreter: Interpreter, place: Path, root: Path
) -> None:
    """Make the virtual environment ``place``: from uv's cache if it can, else from the index."""
    log = place.parent / f"{environment.name}.log"
    listed = place.parent / f"{place.name}.txt"
    log.unlink(missing_ok=True)
    listed.write_text(packages, encoding="utf-8")
    venv = ["venv", "--clear", "--relocatable", "--no-project", "--python"]
    sync = ["pip", "sync", "--require-hashes", "--only-binary", ":all:"]
    # Copies: what happens to uv's cache, or to another environment, does not happen to this one.
    sync += ["--link-mode", "copy", "--python", str(_python(place)), str(listed)]
    try:
        failure = run_uv([*venv, str(interpreter.path), str(place)], {}, log, root)
        if failure is None and run_uv([*sync, "--offline"], {}, log, root) is not None:
            failure = run_uv(sync, {}, log, root)
            index = index_of_pip() if failure and _UNREACHABLE.search(failure) else None
            if index is not None:
                failure = run_uv(sync, {"UV_DEFAULT_INDEX": index}, log, root)
    finally:
        listed.unlink(missing_ok=True)
    if failure is not None:
        raise UserError(_explain(environment, failure, log))


def _explain(environment: Environment, failure: str, log: Path) -> str:
    """uv's failure in one line: what is wrong, where, and what to do."""
    start = f"environment {environment.name!r}: "
    mismatch = _MISMATCH.search(failure)
    if mismatch is not None:
        return (
            f"{start}the file served for {mismatch.group(1)} does not have a hash that"
            f" {environment.files} gives; nothing was installed: use the index the list was made"
            f" from, or regenerate the list with the command at its head (details: {log})"
        )
    if _UNREACHABLE.search(failure):
        url = re.search(r"https?://[^\s)`]+", failure)
        where = f" at {_host(url.group())}" if url else ""
        return (
            f"{start}no package index within reach{where}; connect to the network or set"
            f" UV_DEFAULT_INDEX to an index within reach, then run again (details: {log})"
        )
    said = " ".join(line.strip() for line in failure.splitlines() if line.strip())
    said = said[said.find("error:") :].removeprefix("error:").strip()
    remedy = "make room or make it writable" if _DISK.search(failure) else f"details: {log}"
    return f"{start}uv failed: {said} ({remedy})"


def _host(url: str) -> str:
    """Scheme, host and port of ``url``, without the password it may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed builds left behind long ago."""
    for unfinished in folder.glob(f"*{BUILDING}*"):
        try:
            old = time.time() - unfinished.stat().st_mtime > LEFTOVER_SECONDS
        except FileNotFoundError:
            continue  # its builder has just finished
        if old and unfinished.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
        elif old:
            unfinished.unlink(missing_ok=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Build the named environments and print the path of each one's Python."""
    parser = argparse.ArgumentParser(prog="python -m launch.environments", description=main.__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(ENVIRONMENTS))
    parser.add_argument("--list", action="store_true", help="list the environments and stop")
    options = parser.parse_args()
    if options.list:
        for environment in ENVIRONMENTS.values():
            count = requirements(environment, ROOT).count("==")
            start = f"{environment.name:10} Python {'/'.join(environment.pythons):14}"
            print(f"{start} {count:3} packages  {environment.summary}")
        return 0
    if not options.names:
        parser.error("name at least one environment, or give --list")
    for name in options.names:
        print(ensure(name))
    return 0


if __name__ == "__main__":
    end_at_sigterm()  # what is half built is removed
    run_command(main)

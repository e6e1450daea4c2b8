"""The project's environments: exact, hashed package lists installed by uv and reused afterwards.

An environment lies in ``.work/env/<name>-<digest>``; the digest covers its package list and its
interpreter, so that a change of either builds a new one beside the old. It is built under another
name and renamed when complete: what bears the final name is whole, whoever was killed on the way.

    python -m launch.environments reference ajax
"""

import argparse
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from launch.interpreters import Interpreter, find_interpreter, find_uv
from launch.packages import ENVIRONMENTS, Environment, requirements
from shared.errors import UserError, run_command

ROOT = Path(__file__).resolve().parent.parent
READY = "ready.json"  # written last; names what the environment was built from
INSTALLED = "bytecode"  # how packages are installed; another word builds new environments
#: In the name of what is being built, or was when its builder was killed.
BUILDING = ".building-"
LEFTOVER_SECONDS = 24 * 3600.0  # no build takes a day: an older unfinished one was killed

# An index out of reach shows within seconds; whoever sets these variables knows better.
_NETWORK_DEFAULTS = {
    "UV_HTTP_RETRIES": "1",
    "UV_HTTP_CONNECT_TIMEOUT": "5",
}
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_NO_INDEX", "UV_OFFLINE")
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
    if not _is_ready(home):
        _build(environment, packages, interpreter, home)
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
        UserError: it would have to be built, and there is no interpreter or no uv to do so.
    """
    built = _is_ready(_plan(ENVIRONMENTS[name], root)[2])
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


def _is_ready(home: Path) -> bool:
    # exists() follows the link: an interpreter that was removed since makes the rest useless.
    return (home / READY).is_file() and _python(home).exists()


def _build(environment: Environment, packages: str, interpreter: Interpreter, home: Path) -> None:
    """Build beside ``home``, then rename; of two builders at once the first to finish wins."""
    uv = find_uv()
    begun = time.monotonic()
    _say(
        f"environment {environment.name!r}: installing {packages.count('==')} packages for Python"
        f" {interpreter.version}; takes about a minute the first time"
    )
    unfinished = home.with_name(f"{home.name}{BUILDING}{secrets.token_hex(4)}")
    try:
        _remove_leftovers(home.parent)
        unfinished.mkdir(parents=True)
        _install(uv, environment, packages, interpreter, unfinished)
        facts = {
            "name": environment.name,
            "python": interpreter.version,
            "lists": environment.files,
        }
        (unfinished / READY).write_text(json.dumps(facts) + "\n", encoding="utf-8")
        if home.exists() and not _is_ready(home):
            home.rename(unfinished / "damaged")
        if not home.exists():
            unfinished.rename(home)
            shutil.rmtree(home / "damaged", ignore_errors=True)
    except OSError as error:
        if not _is_ready(home):  # else another builder was faster, and its work will do
            raise UserError(
                f"environment {environment.name!r}: cannot write {home.parent}"
                f" ({error.strerror}); make room there or make it writable"
            ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _say(f"environment {environment.name!r}: ready after {time.monotonic() - begun:.1f} s")


def _install(
    uv: Path, environment: Environment, packages: str, interpreter: Interpreter, place: Path
) -> None:
    """Make the virtual environment ``place``: from uv's cache if it can, else from the index."""
    log = place.parent / f"{environment.name}.log"
    listed = place.parent / f"{place.name}.txt"
    log.unlink(missing_ok=True)
    listed.write_text(packages, encoding="utf-8")
    venv = [str(uv), "venv", "--clear", "--relocatable", "--no-project", "--python"]
    # Where PYTHONDONTWRITEBYTECODE is set nothing else would ever compile them: seconds a command.
    sync = [str(uv), "pip", "sync", "--require-hashes", "--only-binary", ":all:"]
    sync += ["--compile-bytecode"]
    sync += ["--python", str(_python(place)), str(listed)]
    try:
        failure = _run_uv([*venv, str(interpreter.path), str(place)], {}, log)
        if failure is None and _run_uv([*sync, "--offline"], {}, log) is not None:
            failure = _run_uv(sync, {}, log)
            index = _index_of_pip() if failure and _UNREACHABLE.search(failure) else None
            if index is not None:
                failure = _run_uv(sync, {"UV_DEFAULT_INDEX": index}, log)
    finally:
        listed.unlink(missing_ok=True)
    if failure is not None:
        raise UserError(_explain(environment, failure, log))


def _run_uv(command: list[str], extra: Mapping[str, str], log: Path) -> str | None:
    """Run uv, its output appended to ``log``; None if it succeeded, else what it said."""
    surroundings = {**_NETWORK_DEFAULTS, **os.environ, **extra, "NO_COLOR": "1"}
    surroundings["UV_NO_PROGRESS"] = "1"
    done = subprocess.run(
        command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with log.open("a", encoding="utf-8") as stream:
        stream.write(done.stdout)
    return done.stdout if done.returncode else None


def _index_of_pip() -> str | None:
    """The index that pip, which may have installed nox, is set up with; uv does not read it.

    None where uv has been told of an index in the environment: that one is meant.
    """
    if any(os.environ.get(name) for name in _INDEX_VARIABLES):
        return None
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    )
    found = re.search(r"^(?:global|install)\.index-url='(.*)'$", listing.stdout, re.MULTILINE)
    return found.group(1) if found else None


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
    run_command(main)

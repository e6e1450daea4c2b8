"""The pinned environments: one table, and the helper with which nox's sessions make them.

An environment lies in ``.work/env/<name>-<digest>``. The digest covers its package list and the
Python version, so that a change of either makes a new one beside the old, which may be in use.

    nox -s env-ajax
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from launch.uv import index_of_pip, run_uv
from shared.errors import UserError, end_at_sigterm, run_command
from shared.provenance.installed import IncompleteError, verify_environment
from shared.records.files import write_atomic

ROOT = Path(__file__).resolve().parent.parent
STUDY_PYTHONS = ("3.11", "3.12", "3.13")
UNREACHABLE = (
    r"Failed to fetch|error sending request|network was disabled|dns error|timed out"
    r"|connect error|os error 10[14]|os error 11[0-3]"
)
#: Pieces of uv's output -> what they mean to a user, the first that is found.
FAILURES = {
    r"Hash mismatch for `([^`]+)`": "the file served for {} does not have a hash that {list} gives;"
    " nothing was installed: use the index the list was made from, or regenerate the list with the"
    " command at its head",
    r"No interpreter found|No download found|Failed to download https?\S*/cpython": "no Python"
    " {python} found on PATH, under pyenv's root or by uv; install one, for example with 'uv python"
    " install {python}' or 'pyenv install {python}', then run again",
    UNREACHABLE: "no package index within reach{where};"
    " connect to the network or set UV_DEFAULT_INDEX to an index within reach, then run again",
    r"No space left|Permission denied|Read-only file system|Not a directory": "uv failed: {said};"
    " make room or make it writable",
    "": "uv failed: {said}",
}


@dataclass(frozen=True)
class Environment:
    """A row of the table: what is installed, and on which Python (any of ``pythons``)."""

    name: str
    summary: str
    pythons: tuple[str, ...]
    list: str
    root: Path = ROOT

    @property
    def version(self) -> str:
        """The version of Python that it takes here: that of the running one if possible."""
        running = f"{sys.version_info.major}.{sys.version_info.minor}"
        return running if running in self.pythons else self.pythons[0]

    @property
    def home(self) -> Path:
        """Its folder."""
        digest = hashlib.sha256(f"{self.version}\n{self._listed}".encode()).hexdigest()
        return self.root / ".work" / "env" / f"{self.name}-{digest[:12]}"

    @property
    def python(self) -> Path:
        """Its Python, whether it is there or not."""
        return self.home / "bin" / "python"

    @property
    def facts(self) -> Path:
        """What is known of a complete one; beside it, so that no change of it changes this."""
        return self.home.with_suffix(".json")

    @property
    def packages(self) -> dict[str, str]:
        """Name -> version of every package on its list."""
        return dict(re.findall(r"^([a-z0-9][a-z0-9-]*)==([^\s;]+)", self._listed, re.MULTILINE))

    @property
    def _listed(self) -> str:
        path = self.root / self.list
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read ({error}); restore it") from None


ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment(
            "study",
            "rounds, statistics, tables and figures; no jax",
            STUDY_PYTHONS,
            "constraints-study.txt",
        ),
        Environment(
            "reference",
            "the reference code's own packages (protocol section 1)",
            ("3.11",),
            "constraints-ref.txt",
        ),
        Environment(
            "ajax",
            "the Ajax release and the jax of the published rounds (protocol section 1)",
            ("3.12",),
            "constraints-ajax.txt",
        ),
        Environment(
            "dev",
            "study, and what the tests and the lint session need",
            STUDY_PYTHONS,
            "constraints-dev.txt",
        ),
    )
}


def is_built(environment: Environment) -> bool:
    """Whether it is there with all of its files, each as it was installed.

    Raises ``UserError`` for a changed or an additional file.
    """
    try:
        known = json.loads(environment.facts.read_text(encoding="utf-8"))["files"]
        verify_environment(environment.home, environment.packages, known)
    except (OSError, ValueError, KeyError, TypeError, IncompleteError):
        return False
    # exists() follows the link: an interpreter that was removed since makes the rest useless.
    return environment.python.exists()


def ensure(name: str) -> Path:
    """The Python of the environment ``name``, which is made if it is not there whole.

    Raises:
        UserError: no interpreter, no uv, no index, a wrong hash, a changed file, a full disk.
    """
    return ensure_environment(ENVIRONMENTS[name])


def ensure_environment(environment: Environment) -> Path:
    """As :func:`ensure`, for any row. One command builds at a time; the others wait for it."""
    folder, lock = environment.home.parent, environment.home.with_suffix(".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as alone:
            fcntl.flock(alone, fcntl.LOCK_EX)
            if not is_built(environment):
                _build(environment)
    except OSError as error:
        raise UserError(
            f"environment {environment.name!r}: cannot write {folder} ({error.strerror});"
            " make room there or make it writable"
        ) from None
    return environment.python


def _build(environment: Environment) -> None:
    """Install and verify. The facts come last: after a killed build the next one begins anew."""
    begun, start = time.monotonic(), f"environment {environment.name!r}: "
    log = environment.home.with_suffix(".log")
    for file in (environment.facts, log):
        file.unlink(missing_ok=True)
    count = f"{len(environment.packages)} packages for Python {environment.version}"
    _say(f"{start}installing {count}; takes about a minute the first time")
    failure = _install(environment, log)
    if failure is not None:
        shutil.rmtree(environment.home, ignore_errors=True)
        raise UserError(f"{start}{_explain(environment, failure)} (details: {log})")
    try:
        files = verify_environment(environment.home, environment.packages)
    except UserError as error:
        said = str(error).partition(";")[0]
        raise UserError(
            f"{start}what uv installed is not what its packages say ({said});"
            " run 'uv cache clean', then run again"
        ) from None
    write_atomic(
        environment.facts, json.dumps({"list": environment.list, "files": files}, indent=1)
    )
    _say(f"{start}ready after {time.monotonic() - begun:.1f} s")


def _install(environment: Environment, log: Path) -> str | None:
    """Install from uv's cache if it can, else from an index; what uv said if it failed."""
    is_running = environment.version == "{}.{}".format(*sys.version_info)
    venv = ["venv", "--clear", "--no-project", "--python"]
    venv += [sys.executable if is_running else environment.version, str(environment.home)]
    # Copies: what happens to uv's cache, or to another environment, does not happen to this one.
    sync = ["pip", "sync", "--require-hashes", "--only-binary", ":all:", "--link-mode", "copy"]
    sync += ["--python", str(environment.python), str(environment.root / environment.list)]
    failure = run_uv(venv, {"PATH": _search_path()}, log, environment.root)
    if failure is None and run_uv([*sync, "--offline"], {}, log, environment.root) is not None:
        failure = run_uv(sync, {}, log, environment.root)
        index = index_of_pip() if failure and re.search(UNREACHABLE, failure) else None
        if index is not None:
            failure = run_uv(sync, {"UV_DEFAULT_INDEX": index}, log, environment.root)
    return failure


def _search_path() -> str:
    """PATH with pyenv's interpreters in place of its shims, which hide all but the global one."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    roots = [Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()]
    roots += [Path(folder).parent for folder in folders if Path(folder).name == "shims"]
    hidden = [str(path) for root in roots for path in sorted(root.glob("versions/3.1[123].*/bin"))]
    return os.pathsep.join([each for each in folders if Path(each).name != "shims"] + hidden)


def _explain(environment: Environment, failure: str) -> str:
    """uv's failure in one line: what is wrong, where, and what to do."""
    pattern = next(pattern for pattern in FAILURES if re.search(pattern, failure))
    words = re.search(pattern, failure)
    url = re.search(r"https?://[^\s)`]+", failure)
    # Scheme, host and port, without the password that the address may hold.
    parts = urlsplit(url.group()) if url else None
    where = f" at {parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts else ""
    said = " ".join(failure.split()).partition("error:")[2].strip() or failure.strip()
    return FAILURES[pattern].format(
        *(words.groups() if words else ()),
        list=environment.list,
        python=environment.version,
        where=where,
        said=said,
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Make the environments that are named, and print the Python of each."""
    for name in sys.argv[1:]:
        print(ensure(name))
    return 0


if __name__ == "__main__":
    end_at_sigterm()  # uv ends too
    run_command(main)

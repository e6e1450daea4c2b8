"""Which Python interpreter of a wanted version does this machine have?

A candidate counts only once it has been run: pyenv's shims and stale links bear the name of a
version that they do not start.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.errors import UserError

ASK_SECONDS = 20.0

# The base of a virtual environment is asked for: an environment made from another one must
# outlive it. Free-threaded and debug builds (abiflags) take other wheels than the lists name.
_QUESTION = """
import json, os, platform, sys
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([os.path.realpath(base), platform.python_version(), sys.implementation.name,
                  sys.abiflags, platform.machine()]))
"""


@dataclass(frozen=True)
class Interpreter:
    """A CPython that was run and found to work: real path, full version and machine type."""

    path: Path
    version: str
    machine: str

    @property
    def minor(self) -> str:
        """The version as the environments name it, for example ``3.11``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def identity(self) -> str:
        """What makes an environment built from this interpreter another one's equal."""
        return f"{self.path} {self.version} {self.machine}"


def find_interpreter(versions: Sequence[str]) -> Interpreter:
    """Find a CPython of one of ``versions`` (such as ``3.11``), earlier ones first.

    The interpreter that runs this is preferred whatever its place in the list, then one on PATH,
    under pyenv's root, and one that uv has downloaded.

    Raises:
        UserError: none is found; the line names the places looked at and what to do.
    """
    running = ask(Path(sys.executable))
    if running is not None and running.minor in versions:
        return running
    for version in versions:
        for candidate in _candidates(version):
            found = ask(candidate)
            if found is not None and found.minor == version:
                return found
    wanted = " or ".join(versions)
    raise UserError(
        f"no Python {wanted} found on PATH, under pyenv's root or by uv; install one, for example"
        f" with 'uv python install {versions[0]}' or 'pyenv install {versions[0]}', then run again"
    )


def ask(executable: Path) -> Interpreter | None:
    """Run ``executable`` and say what it is; None where it does not run or is no plain CPython."""
    try:
        done = subprocess.run(
            [str(executable), "-I", "-S", "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=True,
        )
        path, version, implementation, abiflags, machine = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return None
    if implementation != "cpython" or abiflags:
        return None
    return Interpreter(path=Path(path), version=version, machine=machine)


def find_uv() -> Path:
    """The uv executable: the one installed beside nox (``nox[uv]``), else the one on PATH.

    Raises:
        UserError: there is none; the line says how to install it.
    """
    try:
        import uv

        return Path(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        on_path = shutil.which("uv")
    if on_path is None:
        raise UserError(
            "uv, which builds the environments, was not found beside nox or on PATH; install it"
            " with: python -m pip install 'nox[uv]'"
        )
    return Path(on_path)


def _candidates(version: str) -> Iterator[Path]:
    """Executables that may be of ``version``, cheapest to try first."""
    for folder in _search_path():
        if folder.name != "shims" and (folder / f"python{version}").is_file():
            yield folder / f"python{version}"
    for root in _pyenv_roots():
        yield from _under_pyenv(root, version)
    yield from _known_to_uv(version)


def _search_path() -> list[Path]:
    return [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]


def _pyenv_roots() -> Iterator[Path]:
    """pyenv's root: where it says, where its shims on PATH lie, its default place."""
    places = [Path(os.environ["PYENV_ROOT"])] if os.environ.get("PYENV_ROOT") else []
    places += [folder.parent for folder in _search_path() if folder.name == "shims"]
    places += [Path("~/.pyenv").expanduser()]
    yield from dict.fromkeys(places)
    if shutil.which("pyenv"):
        told = _output_line(["pyenv", "root"])
        if told and Path(told) not in places:
            yield Path(told)


def _under_pyenv(root: Path, version: str) -> Iterator[Path]:
    """pyenv's interpreters of ``version``, newest first."""
    patches = [
        folder
        for folder in root.glob(f"versions/{version}.*")
        if folder.name[len(version) + 1 :].isdigit()
    ]
    for folder in sorted(patches, key=lambda f: -int(f.name[len(version) + 1 :])):
        yield folder / "bin" / "python"


def _known_to_uv(version: str) -> Iterator[Path]:
    """What uv has downloaded earlier; it is not asked about PATH, where shims stop it."""
    try:
        uv = find_uv()
    except UserError:
        return
    ask = ["python", "find", "--no-config", "--managed-python", "--no-python-downloads", version]
    told = _output_line([str(uv), *ask])
    if told:
        yield Path(told)


def _output_line(command: list[str]) -> str | None:
    """The one line that a command prints; None where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None

"""Interpreters are found where they hide, and believed only once they have run."""

import platform
import sys
from pathlib import Path

import pytest

from launch.interpreters import ask, find_interpreter, find_uv
from shared.errors import UserError

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
PATCH = sys.version_info.micro


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def libc() -> str:
    """The C library as uv's folder names have it."""
    if sys.platform != "linux":
        return "none"
    return "gnu" if platform.libc_ver()[0] == "glibc" else "musl"


@pytest.fixture
def real() -> Path:
    """The interpreter under this environment."""
    found = ask(Path(sys.executable))
    assert found is not None
    return found.path


@pytest.fixture
def bare(real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Python: nothing running, on PATH, under pyenv or known to uv."""
    assert real.is_file()  # looked for first, while it can still be found
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    return tmp_path


def test_the_running_interpreter_is_preferred_and_its_base_is_meant(real: Path) -> None:
    found = find_interpreter(("3.99", MINOR))
    assert found.path == real
    assert found.minor == MINOR
    assert Path(sys.prefix) not in found.path.parents  # not this virtual environment


def test_nothing_found_is_one_line_that_names_a_way_out(bare: Path) -> None:
    with pytest.raises(UserError, match=rf"no Python {MINOR} found .* 'pyenv install") as caught:
        find_interpreter((MINOR,))
    assert "\n" not in str(caught.value)
    assert not (bare / "bin").exists()


def test_one_on_path_is_found(bare: Path, real: Path) -> None:
    executable(bare / "bin" / f"python{MINOR}", f'exec "{real}" "$@"')
    assert find_interpreter((MINOR,)).path == real


@pytest.mark.parametrize("told_by", ["PYENV_ROOT", "shims", "home", "command"])
def test_one_that_pyenv_hides_is_found(
    bare: Path, real: Path, monkeypatch: pytest.MonkeyPatch, told_by: str
) -> None:
    root = bare / "home" / ".pyenv" if told_by == "home" else bare / "pyenv"
    shim = executable(
        root / "shims" / f"python{MINOR}", 'echo "pyenv: command not found" >&2; exit 127'
    )
    python = root / "versions" / f"{MINOR}.{PATCH}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(real)
    if told_by == "PYENV_ROOT":
        monkeypatch.setenv("PYENV_ROOT", str(root))
    elif told_by == "shims":
        monkeypatch.setenv("PATH", str(shim.parent))
    elif told_by == "command":
        executable(bare / "bin" / "pyenv", f'[ "$1" = root ] && echo "{root}"')
    assert find_interpreter((MINOR,)).path == real


def test_one_that_uv_has_downloaded_is_found(
    bare: Path, real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real uv, told of a folder of downloads, behind a shim that does not work."""
    monkeypatch.delitem(sys.modules, "uv")
    executable(bare / "bin" / f"python{MINOR}", "exit 127")
    name = f"cpython-{MINOR}.{PATCH}-{sys.platform}-{platform.machine()}-{libc()}"
    (bare / "downloads" / name).mkdir(parents=True)
    for part in ("bin", "lib"):
        (bare / "downloads" / name / part).symlink_to(real.parent.parent / part)
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(bare / "downloads"))
    assert find_interpreter((MINOR,)).path == real


def test_what_does_not_run_or_is_another_version_is_passed_over(bare: Path, real: Path) -> None:
    executable(bare / "bin" / f"python{MINOR}", "echo 3.11; exit 0")
    executable(bare / "bin" / "python3.99", f'exec "{real}" "$@"')
    executable(bare / "home/.pyenv/versions/3.99.0/bin/python", "exit 1")
    for version in (MINOR, "3.99"):
        with pytest.raises(UserError, match=f"no Python {version} found"):
            find_interpreter((version,))


def test_uv_is_found_beside_nox_else_on_path_else_asked_for(bare: Path) -> None:
    with pytest.raises(UserError, match=r"python -m pip install 'nox\[uv\]'"):
        find_uv()
    uv = executable(bare / "bin" / "uv", "exit 0")
    assert find_uv() == uv


def test_uv_of_this_environment_is_found() -> None:
    assert find_uv().is_relative_to(sys.prefix)

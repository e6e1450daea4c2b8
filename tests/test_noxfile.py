"""Sessions pass failures on: none is skipped, none exits 0 where its environment is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEEDED_BY_NOX = (
    "noxfile.py",
    *(path.name for path in sorted(ROOT.glob("constraints-*.txt"))),
    *(f"launch/{name}.py" for name in ("__init__", "environments", "uv")),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "shared").rglob("*.py"))),
)


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the sessions need, nothing built, and no package index within reach."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "project"
    for name in NEEDED_BY_NOX:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    return root


def nox(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "nox", "--no-color", *options]
    return subprocess.run(line, cwd=root, capture_output=True, text=True)


@pytest.mark.parametrize("session", ["reproduce", "lint"])
def test_a_session_without_an_index_fails_and_says_why(unbuilt: Path, session: str) -> None:
    done = nox(unbuilt, "-s", session)
    assert done.returncode != 0
    wanted = f"nox > Session {session} aborted: environment '"
    said = [line for line in done.stderr.splitlines() if line.startswith(wanted)]
    assert len(said) == 1
    assert "no package index within reach at http://127.0.0.1:9" in said[0]
    assert "Traceback" not in done.stderr


def test_a_session_without_its_interpreter_fails_and_says_why(unbuilt: Path) -> None:
    table = unbuilt / "launch" / "environments.py"
    text = table.read_text()
    assert text.count('("3.11", "3.12", "3.13")') == 1
    table.write_text(text.replace('("3.11", "3.12", "3.13")', '("3.99",)'))
    done = nox(unbuilt)
    assert done.returncode != 0
    assert "aborted: environment 'study': no Python 3.99 found on PATH" in done.stderr


def test_a_failing_command_fails_its_session() -> None:
    assert nox(ROOT, "-s", "tests", "--", "--version").returncode == 0
    assert nox(ROOT, "-s", "tests", "--", "tests/no_such_test.py").returncode != 0


def test_lint_finds_what_is_not_clean(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that borrows this environment: one planted fault of each kind is reported."""
    monkeypatch.delenv("UV_CACHE_DIR")
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    shutil.copy(ROOT / "pyproject.toml", unbuilt)
    (unbuilt / ".work").symlink_to(ROOT / ".work")
    for name in ("analysis", "diagnose", "ref_side", "ajax_side"):
        (unbuilt / name).mkdir()
        (unbuilt / name / "__init__.py").write_text('"""Empty."""\n')
    assert nox(unbuilt, "-s", "lint").returncode == 0
    (unbuilt / "analysis" / "bad.py").write_text(
        '"""Wrong."""\n\nimport launch.environments\n\nUNTIDY : int = "text"\n'
    )
    done = nox(unbuilt, "-s", "lint")
    assert done.returncode != 0
    assert "not clean: format, style, types, imports" in done.stderr


def test_reproduce_is_the_only_default_and_every_session_has_its_line() -> None:
    lines = [line for line in nox(ROOT, "-l").stdout.splitlines() if line[:2] in ("* ", "- ")]
    assert [line.split()[1] for line in lines if line.startswith("*")] == ["reproduce"]
    assert all("->" in line for line in lines)


@pytest.mark.parametrize(
    ("session", "shown", "given"),
    [
        ("round-2", "--smoke", "--round"),
        ("smoke", "[--round {1,2,3,4-literal,4-exact,5-1-exact,", "--smoke"),
        ("status", "--root DIR", "--round"),
    ],
)
def test_a_session_explains_what_it_takes(session: str, shown: str, given: str) -> None:
    done = nox(ROOT, "-s", session, "--", "--help")
    assert done.returncode == 0
    usage = done.stdout.partition("usage: ")[2]
    assert usage.startswith(f"nox -s {session} -- ")
    assert shown in usage
    assert f"{given} " not in usage.partition("nvironment")[0].replace(f"-s {session}", "")


def test_the_session_of_a_round_runs_no_other_one() -> None:
    done = nox(ROOT, "-s", "round-1", "--", "--round", "2", "--dry-run")
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert [line for line in output.splitlines() if line.startswith("error: ")] == [
        "error: --round 2: nox -s round-1 has --round 1 already; name one (nox -l lists the "
        "session of each)"
    ]
    assert "usage" not in output


def test_lint_explains_itself() -> None:
    done = nox(ROOT, "-s", "lint", "--", "--help")
    assert done.returncode == 0
    assert "--fix" in done.stdout

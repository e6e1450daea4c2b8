"""What git says of a checkout does not depend on whose shell it is asked from."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.info import checkout, project_revision
from shared.errors import UserError
from shared.provenance.git import NoCheckoutError, git_bytes
from shared.provenance.obtain import obtain_checkout
from shared.provenance.roots import GitState, git_state

HOOK = "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR GIT_PREFIX".split()


def run(directory: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", "-C", str(directory), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=clean)
    return done.stdout.strip()


def repository(path: Path, content: str) -> str:
    """Make a repository with one committed file; the commit."""
    path.mkdir()
    run(path, "init", "--quiet", ".")
    (path / "file.py").write_text(content)
    run(path, "add", ".")
    run(path, "commit", "--quiet", "-m", "one")
    return run(path, "rev-parse", "HEAD")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    repository(tmp_path / "own", "x = 1\n")
    return tmp_path / "own"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    repository(tmp_path / "other", "y = 2\n")
    return tmp_path / "other"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the user's settings of git."""
    path = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    return lambda text: (path.write_text(text), None)[1]


@pytest.mark.parametrize("names", [*([name] for name in HOOK), HOOK])
def test_the_repository_of_a_hook_is_not_taken_for_ones_own(
    own: Path, other: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    values = dict.fromkeys(HOOK, str(other / ".git")) | {
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_PREFIX": "inside/",
    }
    for name in names:
        monkeypatch.setenv(name, values[name])
    commit = run(own, "rev-parse", "HEAD")
    assert git_state(own) == GitState(commit, dirty=False)
    assert project_revision(own).commit == commit
    before = checkout(own).diff_sha1
    (own / "file.py").write_text("x = 2\n")
    assert checkout(own).dirty
    assert checkout(own).diff_sha1 != before


@pytest.mark.parametrize("variable", ["GIT_LITERAL_PATHSPECS", "GIT_TRACE", "GIT_NAMESPACE"])
def test_other_variables_of_git_change_no_answer(
    own: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    assert git_state(own) == GitState(run(own, "rev-parse", "HEAD"), dirty=False)


THEIRS = {
    "no untracked files": "[status]\n\tshowUntrackedFiles = no\n",
    "everything ignored": "[core]\n\texcludesFile = {ignored}\n",
    "monitored by a program": "[core]\n\tfsmonitor = {program}\n",
    "shown by a program": "[diff]\n\texternal = {program}\n[core]\n\tpager = {program}\n",
    "another form of a diff": "[diff]\n\tcontext = 0\n\tnoprefix = true\n[color]\n\tui = always\n",
}


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("place", ["user", "checkout", "variables"])
def test_settings_of_the_user_hide_no_change(
    own: Path,
    tmp_path: Path,
    settings: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    place: str,
) -> None:
    (tmp_path / "ignored").write_text("*\n")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nprintf 'token\\0'\n")
    program.chmod(0o755)
    (own / "file.py").write_text("x = 2\n")
    plain = git_bytes(own, "diff", "HEAD")
    run(own, "commit", "--quiet", "-a", "-m", "two")
    text = THEIRS[name].format(ignored=tmp_path / "ignored", program=program)
    if place == "user":
        settings(text)
    else:
        entries = run(tmp_path, "config", "--list", "--null", "-f", write(tmp_path / "c", text))
        for number, entry in enumerate(filter(None, entries.split("\0"))):
            key, _, value = entry.partition("\n")
            if place == "checkout":
                run(own, "config", key, value)
            monkeypatch.setenv("GIT_CONFIG_COUNT", str(number + 1))
            monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
            monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    assert git_state(own) == GitState(run(own, "rev-parse", "HEAD"), dirty=False)
    (own / "new.py").write_text("z = 1\n")
    assert git_state(own).dirty
    (own / "new.py").unlink()
    run(own, "-c", "core.fsmonitor=false", "reset", "--quiet", "--hard", "HEAD~1")
    (own / "file.py").write_text("x = 2\n")
    assert git_state(own).dirty
    assert git_bytes(own, "diff", "--no-ext-diff", "HEAD") == plain
    assert not (tmp_path / "ran").exists()


def test_settings_that_git_cannot_read_are_of_no_interest(
    own: Path, settings: Callable[[str], None]
) -> None:
    settings("[diff\n")
    assert not git_state(own).dirty


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_directory_that_the_user_calls_safe_may_be_looked_at(
    own: Path, settings: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr("shared.provenance.git._INHERITED", ("GIT_CONFIG_", "GIT_TEST_"))
    with pytest.raises(UserError, match=r"dubious ownership.*run git config --global --add safe"):
        git_state(own)
    settings(f"[safe]\n\tdirectory = {own}\n")
    assert not git_state(own).dirty


def test_a_checkout_with_the_users_line_endings_is_clean(
    own: Path, tmp_path: Path, settings: Callable[[str], None]
) -> None:
    settings("[core]\n\tautocrlf = true\n")
    clone = tmp_path / "clone"
    run(tmp_path, "-c", "core.autocrlf=true", "clone", "--quiet", str(own), str(clone))
    assert (clone / "file.py").read_bytes() == b"x = 1\r\n"
    os.utime(clone / "file.py", (1_700_000_000, 1_700_000_000))
    assert not git_state(clone).dirty


def test_a_clone_is_made_within_a_hook(
    own: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in HOOK[:4]:
        monkeypatch.setenv(name, str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{own}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://reference.invalid/code")
    commit = run(own, "rev-parse", "HEAD")
    found = obtain_checkout(
        remote="https://reference.invalid/code",
        commit=commit,
        default=tmp_path / "clone",
        environment={},
    )
    assert (found.root / "file.py").read_text() == "x = 1\n"


def test_outside_of_a_checkout_the_hooks_repository_does_not_answer(
    tmp_path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    with pytest.raises(NoCheckoutError):
        git_state(tmp_path)
    assert project_revision(tmp_path).commit is None

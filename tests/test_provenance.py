"""Locations under named roots, and what git says of a checkout, without touching it."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from shared.errors import UserError
from shared.provenance.git import NoCheckoutError
from shared.provenance.roots import (
    REPO,
    GitState,
    Roots,
    git_state,
    package_versions,
    system,
)
from shared.scan import local_names, scan_text

# --- roots ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ajax/src/ajax/agents.py", "<ajax-src>/ajax/agents.py"),
        ("ajax/pyproject.toml", "<ajax-root>/pyproject.toml"),
        ("ajax/src", "<ajax-src>"),
        ("ajax", "<ajax-root>"),
        ("ajax-other/file", "<elsewhere>/file"),
        ("out/ref_s0/config.yaml", "<out>/ref_s0/config.yaml"),
        ("out/../ajax/x", "<ajax-root>/x"),
        ("out/link/x", "<ajax-root>/x"),
        ("other/place/run", "<elsewhere>/run"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_the_innermost_root_names_a_location(tmp_path, path, expected, order) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "ajax").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "ajax")
    named = {
        "ajax_root": tmp_path / "ajax",
        "ajax_src": tmp_path / "ajax" / "src",
        "out": tmp_path / "out",
    }
    assert Roots(**dict(list(named.items())[::order])).record(tmp_path / path) == expected


def test_a_root_behind_a_link_and_a_relative_path_are_resolved(tmp_path, monkeypatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    roots = Roots(out=tmp_path / "link")
    assert roots.record(tmp_path / "real" / "x") == "<out>/x"
    monkeypatch.chdir(tmp_path / "real")
    assert roots.record(Path("y")) == "<out>/y"


def test_what_is_recorded_names_no_machine(tmp_path: Path) -> None:
    for recorded in (
        Roots(repo=REPO).record(REPO / "shared" / "scan.py"),
        Roots(repo=REPO).record(tmp_path / "run"),
    ):
        assert list(scan_text(recorded, Path("x"), local_names())) == []
    assert Roots(repo=REPO).record(REPO) == "<repo>"


# --- git ------------------------------------------------------------------------------------


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    (path / "inside").mkdir(parents=True)
    git(path, "init", "--quiet")
    (path / "file.py").write_text("x = 1\n")
    (path / "inside" / "other.py").write_text("y = 1\n")
    (path / ".gitignore").write_text("ignored\n")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "-m", "one")
    return path


def test_a_clean_checkout(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD").strip()
    assert len(commit) == 40
    assert git_state(checkout) == GitState(commit, dirty=False)
    assert git_state(checkout / "inside") == GitState(commit, dirty=False)
    (checkout / "ignored").write_text("of no interest")
    assert not git_state(checkout).dirty


@pytest.mark.parametrize("kind", ["changed", "untracked", "deleted", "staged"])
def test_a_checkout_with_a_change_is_dirty(checkout: Path, kind: str) -> None:
    commit = git(checkout, "rev-parse", "HEAD").strip()
    if kind == "changed":
        (checkout / "file.py").write_text("x = 2\n")
    elif kind == "untracked":
        (checkout / "new.py").write_text("")
    elif kind == "deleted":
        (checkout / "file.py").unlink()
    else:
        (checkout / "new.py").write_text("")
        git(checkout, "add", "new.py")
    assert git_state(checkout) == GitState(commit, dirty=True)


def test_only_what_lies_below_counts(checkout: Path) -> None:
    (checkout / "file.py").write_text("x = 2\n")
    assert git_state(checkout).dirty
    assert not git_state(checkout, below="inside").dirty
    (checkout / "inside" / "new.py").write_text("")
    assert git_state(checkout, below="inside").dirty


def state_of_tree(root: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, size and time of change of everything below ``root``, git's own files included."""
    return {
        path.relative_to(root).as_posix(): (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        for path in sorted(root.rglob("*"))
        for stat in [path.lstat()]
    }


@pytest.mark.parametrize("dirty", [False, True])
def test_looking_writes_nothing_into_the_checkout(checkout: Path, dirty: bool) -> None:
    if dirty:
        (checkout / "file.py").write_text("x = 2\n")
    # git would refresh its index for a file whose time of change alone is new.
    os.utime(checkout / "inside" / "other.py", (1_700_000_000, 1_700_000_000))
    before = state_of_tree(checkout)
    assert git_state(checkout).dirty is dirty
    assert state_of_tree(checkout) == before
    # The same look without care does write: the comparison above can fail.
    git(checkout, "status", "--porcelain")
    assert state_of_tree(checkout) != before


def test_a_folder_that_is_no_checkout_is_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    reason = r"not a git repository.*\); use a git checkout$"
    with pytest.raises(NoCheckoutError, match=reason) as caught:
        git_state(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError) as caught:
        git_state(tmp_path / "absent")
    assert "absent" in str(caught.value) and "\n" not in str(caught.value)


def test_a_checkout_without_a_commit_is_one_line(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(UserError) as caught:
        git_state(tmp_path)
    assert "\n" not in str(caught.value)


def test_without_git_the_remedy_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="git"):
        git_state(tmp_path)


# --- packages and system --------------------------------------------------------------------


def test_packages_of_this_interpreter_are_listed_by_lower_case_name() -> None:
    found = package_versions()
    assert found["numpy"] == metadata.version("numpy")
    assert found["pytest"] == pytest.__version__
    assert list(found) == sorted(found)
    assert all(name == name.lower() for name in found)


def test_the_system_is_named_without_its_host() -> None:
    assert system() == f"{os.uname().sysname} {os.uname().machine}"
    assert platform.node() not in system()

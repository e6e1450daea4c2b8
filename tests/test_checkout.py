"""Planted edits: every way in which a checkout can differ from its commit is found and named.

Small repositories stand in for the reference; the pinned commit is a parameter.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.errors import UserError
from shared.provenance.checkout import object_hash, verify_checkout
from shared.provenance.obtain import obtain_checkout
from shared.variables import CHECKOUT_VARIABLE

REPO = Path(__file__).resolve().parent.parent


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.invalid")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(
        ["git", *identity, *arguments],
        cwd=directory,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with two commits; the pinned one is checked out."""
    root = tmp_path / "source"
    (root / "agent" / "deep").mkdir(parents=True)
    (root / "agent" / "__init__.py").write_text("VALUE = 1\n")
    (root / "agent" / "deep" / "nets.py").write_text("WIDTH = 64\nDEPTH = 3\n")
    (root / "run.sh").write_text("echo run\n")
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text("__pycache__/\n*.egg-info\n")
    git(root, "init", "--quiet", ".")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "pinned")
    return root


@pytest.fixture
def pinned(source: Path) -> str:
    return git(source, "rev-parse", "HEAD")


def refusal(root: Path, commit: str) -> str:
    with pytest.raises(UserError) as caught:
        verify_checkout(root, commit)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_an_untouched_checkout_is_accepted_and_not_written_to(source: Path, pinned: str) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in sorted(source.rglob("*"))
        }

    before = state()
    assert verify_checkout(source, pinned).commit == pinned
    assert state() == before


def test_the_hash_is_gits(source: Path) -> None:
    content = (source / "run.sh").read_bytes()
    assert object_hash("blob", content) == git(source, "rev-parse", "HEAD:run.sh")


def test_a_changed_file_is_named(source: Path, pinned: str) -> None:
    (source / "agent/deep/nets.py").write_text("WIDTH = 65\nDEPTH = 3\n")
    assert "agent/deep/nets.py has changed;" in refusal(source, pinned)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_status_hides_is_named(source: Path, pinned: str, flag: str) -> None:
    git(source, "update-index", flag, "agent/__init__.py")
    (source / "agent/__init__.py").write_text("VALUE = 2\n")
    assert git(source, "status", "--porcelain") == ""
    assert "agent/__init__.py has changed" in refusal(source, pinned)


def test_a_change_of_equal_size_and_time_is_named(source: Path, pinned: str) -> None:
    path = source / "agent/__init__.py"
    before = path.stat()
    path.write_text("VALUE = 7\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "agent/__init__.py has changed" in refusal(source, pinned)


@pytest.mark.parametrize(
    "path", ["agent/__pycache__/nets.cpython-311.pyc", "extra.egg-info/PKG-INFO", "jax.py"]
)
def test_an_additional_file_is_named_ignored_or_not(source: Path, pinned: str, path: str) -> None:
    (source / path).parent.mkdir(exist_ok=True)
    (source / path).write_bytes(b"planted")
    assert f"{path} is not in the commit" in refusal(source, pinned)


def test_a_file_that_the_repository_excludes_privately_is_named(source: Path, pinned: str) -> None:
    (source / ".git/info").mkdir(exist_ok=True)
    (source / ".git/info/exclude").write_text("optax/\n")
    (source / "optax").mkdir()
    (source / "optax/__init__.py").write_text("")
    assert git(source, "status", "--porcelain", "--ignored") == "!! optax/"
    assert "optax/__init__.py is not in the commit" in refusal(source, pinned)


def test_a_nested_repository_is_named(source: Path, pinned: str) -> None:
    (source / "agent/.git").mkdir()
    (source / "agent/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert "agent/.git/HEAD is not in the commit" in refusal(source, pinned)


def test_a_missing_file_is_named(source: Path, pinned: str) -> None:
    (source / "run.sh").unlink()
    assert "run.sh is missing" in refusal(source, pinned)


def test_a_symbolic_link_is_named_even_to_equal_content(
    source: Path, pinned: str, tmp_path: Path
) -> None:
    shutil.move(source / "agent/deep", tmp_path / "deep")
    (source / "agent/deep").symlink_to(tmp_path / "deep")
    assert "agent/deep is a symbolic link" in refusal(source, pinned)


def test_what_git_cannot_read_has_a_remedy(source: Path, pinned: str) -> None:
    (source / ".git/HEAD").write_text("nonsense\n")
    message = refusal(source, pinned)
    assert "git rev-parse failed (fatal: not a git repository" in message
    assert message.endswith("; use a fresh clone")


def test_a_named_pipe_is_named_and_not_waited_for(source: Path, pinned: str) -> None:
    (source / "run.sh").unlink()
    os.mkfifo(source / "run.sh")
    assert "run.sh is no regular file" in refusal(source, pinned)


def test_changed_line_endings_are_called_so(source: Path, pinned: str) -> None:
    path = source / "agent/deep/nets.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(source, "config", "core.autocrlf", "true")
    git(source, "add", "--renormalize", ".")
    assert git(source, "status", "--porcelain") == ""
    assert "agent/deep/nets.py has changed (line endings only)" in refusal(source, pinned)


def test_a_filter_that_hides_a_change_from_git_does_not_help(source: Path, pinned: str) -> None:
    (source / ".git/info").mkdir(exist_ok=True)
    (source / ".git/info/attributes").write_text("run.sh filter=hide\n")
    git(source, "config", "filter.hide.clean", "echo echo run")
    (source / "run.sh").write_text("echo hidden\n")
    git(source, "add", "run.sh")
    assert git(source, "status", "--porcelain") == ""
    assert "run.sh has changed" in refusal(source, pinned)


def test_another_commit_is_named(source: Path, pinned: str) -> None:
    git(source, "commit", "--quiet", "--allow-empty", "-m", "other")
    other = git(source, "rev-parse", "HEAD")
    message = refusal(source, pinned)
    assert other[:12] in message
    assert pinned[:12] in message


def test_a_replaced_tree_does_not_stand_in_for_the_pinned_one(source: Path, pinned: str) -> None:
    (source / "agent/__init__.py").write_text("VALUE = 2\n")
    git(source, "commit", "--quiet", "-a", "-m", "other")
    git(source, "replace", pinned, git(source, "rev-parse", "HEAD"))
    git(source, "checkout", "--quiet", "--detach", pinned)
    assert git(source, "status", "--porcelain") == ""
    assert "agent/__init__.py has changed" in refusal(source, pinned)


def test_a_forged_object_is_refused(source: Path, pinned: str) -> None:
    """The pinned tree's file is overwritten with the tree of a changed checkout."""
    (source / "agent/__init__.py").write_text("VALUE = 2\n")
    git(source, "commit", "--quiet", "-a", "-m", "other")

    def stored(revision: str) -> Path:
        object_id = git(source, "rev-parse", f"{revision}^{{tree}}")
        return source / ".git/objects" / object_id[:2] / object_id[2:]

    forged, genuine = stored("HEAD"), stored(pinned)
    genuine.unlink()
    shutil.copy(forged, genuine)
    git(source, "update-ref", "--no-deref", "HEAD", pinned)
    # Newer versions of git notice themselves; either way it is one line and a refusal.
    assert "hash" in refusal(source, pinned)


def test_a_missing_object_is_named(source: Path, pinned: str) -> None:
    tree = git(source, "rev-parse", "HEAD^{tree}")
    (source / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert tree in refusal(source, pinned)


def test_many_differences_are_counted(source: Path, pinned: str) -> None:
    for index in range(8):
        (source / f"planted{index}.py").write_text("")
    message = refusal(source, pinned)
    assert "planted4.py" in message
    assert "and 3 more" in message


def test_a_name_with_a_newline_stays_on_one_line(source: Path, pinned: str) -> None:
    (source / "a\nb.py").write_text("")
    assert r"'a\nb.py' is not in the commit" in refusal(source, pinned)


def test_the_repository_around_a_plain_folder_is_not_taken_for_it(
    source: Path, pinned: str
) -> None:
    folder = source / "unpacked"
    folder.mkdir()
    assert "is not a git checkout" in refusal(folder, pinned)


def test_a_linked_worktree_is_a_checkout_too(source: Path, pinned: str, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(source, "worktree", "add", "--quiet", "--detach", str(linked), pinned)
    assert verify_checkout(linked, pinned).root == linked
    (linked / "run.sh").write_text("echo other\n")
    # Its .git is a file, which must not be taken for one of the commit's.
    assert refusal(linked, pinned).count(" has changed") == 1


def test_variables_of_a_git_hook_do_not_redirect(
    source: Path, pinned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert verify_checkout(source, pinned).commit == pinned
    target = tmp_path / "clone"
    obtain_checkout(remote=str(source), commit=pinned, default=target, environment={})
    assert verify_checkout(target, pinned).root == target


# --- obtaining ------------------------------------------------------------------------------


def test_it_is_cloned_once_and_verified_each_time(
    source: Path, pinned: str, tmp_path: Path
) -> None:
    target = tmp_path / "work" / "clone"
    git(source, "commit", "--quiet", "--allow-empty", "-m", "newer")
    found = obtain_checkout(remote=str(source), commit=pinned, default=target, environment={})
    assert found.root == target
    assert [path.name for path in target.parent.iterdir()] == ["clone"]

    shutil.rmtree(source)
    again = obtain_checkout(remote=str(source), commit=pinned, default=target, environment={})
    assert again == found

    (target / "agent/__init__.py").write_text("VALUE = 2\n")
    with pytest.raises(UserError, match=r"agent/__init__\.py has changed"):
        obtain_checkout(remote=str(source), commit=pinned, default=target, environment={})


def test_the_option_goes_before_the_variable_before_the_default(
    source: Path, pinned: str, tmp_path: Path
) -> None:
    option, variable = tmp_path / "option", tmp_path / "variable"
    for target in (option, variable):
        git(tmp_path, "clone", "--quiet", str(source), str(target))
    environment = {CHECKOUT_VARIABLE: str(variable)}
    default = tmp_path / "default"

    def root(given: Path | None) -> Path:
        return obtain_checkout(given, commit=pinned, default=default, environment=environment).root

    assert root(option) == option
    assert root(None) == variable
    assert not default.exists()


def test_a_named_checkout_that_is_not_there_is_not_created(tmp_path: Path, pinned: str) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(UserError, match=r"--reference-checkout .*missing: no such directory"):
        obtain_checkout(missing, commit=pinned, environment={})
    with pytest.raises(UserError, match=f"{CHECKOUT_VARIABLE} .*missing: no such directory"):
        obtain_checkout(commit=pinned, environment={CHECKOUT_VARIABLE: str(missing)})
    assert not missing.exists()


def test_a_folder_that_cannot_be_made_is_one_line(
    source: Path, pinned: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        obtain_checkout(
            remote=str(source), commit=pinned, default=tmp_path / "file/clone", environment={}
        )


def test_a_remote_without_the_commit_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "work" / "clone"
    with pytest.raises(UserError, match="could not be cloned"):
        obtain_checkout(remote=str(source), commit="0" * 40, default=target, environment={})
    assert list(target.parent.iterdir()) == []


def test_no_network_is_one_line_with_the_ways_out(tmp_path: Path) -> None:
    target, began = tmp_path / "clone", time.monotonic()
    with pytest.raises(UserError) as caught:
        obtain_checkout(
            remote="https://user:secret@reference.invalid/dreamerv3", default=target, environment={}
        )
    message = str(caught.value)
    assert "https://reference.invalid/dreamerv3" in message
    assert "\n" not in message
    assert "secret" not in message
    for way in ("--reference-checkout", CHECKOUT_VARIABLE, "--reference-remote"):
        assert way in message
    assert time.monotonic() - began < 10
    assert not target.exists()


def test_a_remote_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport is a process that sleeps; its helpers must not keep the caller waiting."""
    monkeypatch.setattr("shared.provenance.obtain.PROBE_SECONDS", 0.5)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{sys.executable} -c 'import time; time.sleep(60)'")
    began = time.monotonic()
    with pytest.raises(UserError, match="no answer within"):
        obtain_checkout(remote="ssh://x.invalid/y", default=tmp_path / "clone", environment={})
    assert time.monotonic() - began < 10


def test_url_rewriting_of_git_is_honoured(
    source: Path, pinned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "{source}"]\n\tinsteadOf = https://reference.invalid/code\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    target = tmp_path / "clone"
    found = obtain_checkout(
        remote="https://reference.invalid/code", commit=pinned, default=target, environment={}
    )
    assert found.root == target


def test_hooks_and_line_ending_settings_of_the_user_do_not_touch_the_clone(
    source: Path, pinned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text("#!/bin/sh\ntouch planted-by-hook\n")
    (hooks / "post-checkout").chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(f"[core]\n\tautocrlf = true\n\thooksPath = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    target = tmp_path / "clone"
    obtain_checkout(remote=str(source), commit=pinned, default=target, environment={})
    assert (target / "run.sh").read_bytes() == b"echo run\n"


def test_shared_checkout_needs_no_third_party_package() -> None:
    """``launch`` and the sides verify with whatever Python is there."""
    command = [
        sys.executable,
        "-S",
        "-c",
        "import shared.provenance.checkout, shared.provenance.obtain",
    ]
    subprocess.run(command, cwd=REPO, check=True)

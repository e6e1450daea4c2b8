"""A clone holds the bytes that were committed, whatever the user's settings for line endings."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.inside import ROOT, out_of_reach
from tests.rounds import git


def tracked(root: Path) -> list[str]:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True)
    return [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the project's files as they are here, changes included."""
    names = [name for name in tracked(ROOT) if (ROOT / name).is_file()]
    if not names:
        out_of_reach("this is no git checkout: which files belong to the project is not known")
    root = tmp_path_factory.mktemp("published")
    for name in [*names, ".gitattributes"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    git(root, "init", "--quiet", ".")
    git(root, "-c", "core.autocrlf=false", "add", "--force", ".")
    git(root, "commit", "--quiet", "-m", "published")
    return root


@pytest.mark.parametrize(
    "settings", [["core.autocrlf=true"], ["core.eol=crlf", "core.autocrlf=true"], ["core.eol=crlf"]]
)
def test_a_clone_holds_the_files_byte_for_byte(
    published: Path, tmp_path: Path, settings: list[str]
) -> None:
    theirs = tmp_path / "attributes"
    theirs.write_text("*.md text eol=crlf\n*.json text\n")
    wanted = [*settings, f"core.attributesFile={theirs}"]
    options = [word for setting in wanted for word in ("-c", setting)]
    git(tmp_path, "clone", "--quiet", *options, str(published), str(tmp_path / "clone"))
    names = tracked(published)
    changed = [
        name
        for name in names
        if (tmp_path / "clone" / name).read_bytes() != (published / name).read_bytes()
    ]
    assert len(names) > 100
    assert changed == []
    assert git(tmp_path / "clone", "status", "--porcelain") == ""


def test_files_that_are_no_text_are_called_binary() -> None:
    """A new kind of them needs a line in .gitattributes."""
    names = tracked(ROOT)
    content = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    binary = [name for name, data in content.items() if b"\0" in data[:8000]]
    said = git(ROOT, "check-attr", "diff", "--", *binary) if binary else ""
    assert [line for line in said.splitlines() if not line.endswith(": diff: unset")] == []

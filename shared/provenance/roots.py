"""What ran: locations under named roots, git revisions, installed distributions, package lists.

Nothing recorded names a path, a user or a host of a machine (protocol section 7). The scan that
enforces this is :mod:`shared.scan`.
"""

import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from shared.provenance.git import git

REFERENCE_ROOT = "reference-checkout"
AJAX_ROOT = "ajax-root"
AJAX_SRC_ROOT = "ajax-src"
OUT_ROOT = "out"
REPO_ROOT = "repo"
ELSEWHERE = "<elsewhere>"

#: This project's own checkout.
REPO = Path(__file__).resolve().parent.parent.parent


class Roots:
    """Named roots, and locations written relative to the innermost root that holds them."""

    def __init__(self, **roots: Path) -> None:
        """``roots`` maps names (``ajax_src`` for ``<ajax-src>``) to directories."""
        named = ((name.replace("_", "-"), Path(path).resolve()) for name, path in roots.items())
        # The longest path first: <ajax-src> lies inside <ajax-root>.
        self._roots = sorted(named, key=lambda pair: -len(pair[1].parts))

    def record(self, path: Path) -> str:
        """``<name>/relative/path``, or ``<elsewhere>/name`` for a file under none of the roots."""
        resolved = Path(path).resolve()
        for name, root in self._roots:
            if resolved.is_relative_to(root):
                return f"<{name}>/{resolved.relative_to(root).as_posix()}".removesuffix("/.")
        return f"{ELSEWHERE}/{resolved.name}"


@dataclass(frozen=True)
class GitState:
    """Commit of a checkout, and whether git lists a change or an untracked file in it."""

    commit: str
    dirty: bool


def git_state(directory: Path, *, below: str = ".") -> GitState:
    """Commit of the checkout ``directory``; dirty counts what git lists under ``below``."""
    commit = git(directory, "rev-parse", "HEAD").strip()
    return GitState(commit, bool(git(directory, "status", "--porcelain", "--", below).strip()))


def package_versions() -> dict[str, str]:
    """Name -> version of every distribution of the running interpreter, by lower-case name."""
    return dict(
        sorted((each.metadata["Name"].lower(), each.version) for each in metadata.distributions())
    )


def system() -> str:
    """Operating system and architecture, as ``uname -sm`` prints them; never the host name."""
    return f"{platform.system()} {platform.machine()}"

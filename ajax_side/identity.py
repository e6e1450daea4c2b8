"""Which Ajax runs, and is it the one it claims to be? Decided before ``ajax`` is imported."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from shared.errors import UserError
from shared.protocol import AJAX_DISTRIBUTION, AJAX_RELEASE
from shared.provenance.distributions import (
    AJAX_RELEASE_DIGEST,
    INSTALLED_ROOT,
    find_distribution,
    verify_distribution,
)
from shared.provenance.roots import Roots, git_state
from shared.variables import AJAX_VARIABLE

PACKAGE = "ajax"


@dataclass(frozen=True)
class Source:
    """The Ajax that runs: where it is imported from, and what a record keeps of it.

    ``commit`` and ``dirty`` belong to a checkout, ``distribution`` (name, version, digest over
    the package lines of RECORD) to an installed release; the other is ``None``.
    """

    directory: Path
    roots: Roots
    commit: str | None = None
    dirty: bool | None = None
    distribution: dict[str, str] | None = None

    def record(self) -> dict[str, Any]:
        """The keys that ``config.json`` keeps under ``run`` (protocol section 7)."""
        return {
            "ajax_file": self.roots.record(self.directory / PACKAGE / "__init__.py"),
            "ajax_commit": self.commit,
            "ajax_dirty": self.dirty,
            "ajax_distribution": self.distribution,
        }

    def __str__(self) -> str:
        if self.distribution is not None:
            return f"{self.distribution['name']} {self.distribution['version']}"
        return f"commit {self.commit}" + (" with uncommitted changes" if self.dirty else "")


def find_source(root: Path | None, version: str = AJAX_RELEASE) -> Source:
    """The checkout ``root`` if given, else the one whose ``src`` AJAX_SRC names, else the release.

    Raises :class:`UserError`: no checkout there, another version, a changed, missing or extra file.
    """
    if root is not None:
        return checkout(root / "src")
    if named := os.environ.get(AJAX_VARIABLE):
        return checkout(Path(named))
    return release(version)


def checkout(src: Path) -> Source:
    """Ajax from the ``src`` directory of a git checkout."""
    if not (src / PACKAGE / "__init__.py").is_file():
        raise UserError(
            f"{src}: holds no {PACKAGE} package; name a checkout of Ajax with --ajax-root, "
            f"or its src directory with {AJAX_VARIABLE}"
        )
    state = git_state(src, below=".")
    src = src.resolve()
    return Source(src, Roots(ajax_root=src.parent, ajax_src=src), state.commit, state.dirty)


def release(version: str, search_path: Sequence[str] | None = None) -> Source:
    """The installed release, every file compared with its RECORD; the pinned one's digest too."""
    found = find_distribution(AJAX_DISTRIBUTION, search_path)
    if found.version != version:
        raise UserError(
            f"{AJAX_DISTRIBUTION} {found.version} is installed, {version} was asked for: install "
            f"constraints-ajax.txt, or pass --ajax-version {found.version} or --ajax-root DIR"
        )
    verify_distribution(found)
    if version == AJAX_RELEASE and found.digest != AJAX_RELEASE_DIGEST:
        raise UserError(
            f"{AJAX_DISTRIBUTION} {version}: its RECORD is not the published release's "
            f"(digest {found.digest[:12]}, expected {AJAX_RELEASE_DIGEST[:12]}): reinstall it"
        )
    roots = Roots(**{INSTALLED_ROOT: found.root})
    return Source(found.root, roots, distribution=found.identity())


def import_ajax(source: Source) -> ModuleType:
    """Import ``ajax`` from ``source``; nothing else may answer to the name.

    Bytecode is neither read nor written from here on: a file whose source was verified could
    carry another program in its ``__pycache__``.
    """
    if source.distribution is None:
        sys.path.insert(0, str(source.directory))
    expected = (source.directory / PACKAGE / "__init__.py").resolve()
    found = importlib.util.find_spec(PACKAGE)
    origin = Path(found.origin).resolve() if found and found.origin else None
    if origin != expected:
        raise UserError(f"'import {PACKAGE}' would load {origin}, not {expected}: mend PYTHONPATH")
    for name in [each for each in sys.modules if each.split(".")[0] == PACKAGE]:
        raise UserError(f"{name} was imported before its source was checked: report this")
    sys.dont_write_bytecode = True
    sys.pycache_prefix = os.devnull  # below it no file can be
    return importlib.import_module(PACKAGE)

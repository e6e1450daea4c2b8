"""Where a round's parts lie on this machine."""

from dataclasses import dataclass
from pathlib import Path

from shared.protocol import Side
from shared.provenance.roots import (
    AJAX_ROOT,
    AJAX_SRC_ROOT,
    OUT_ROOT,
    REFERENCE_ROOT,
    REPO_ROOT,
    Roots,
)


@dataclass(frozen=True)
class Places:
    """Absolute paths, because the processes run in other directories.

    ``ajax_root`` is a checkout given as an option, ``ajax_src`` the ``src`` that AJAX_SRC names;
    with neither the installed release runs. ``against`` is round 1's directory for round 2.
    ``study_python`` runs the launcher and what follows a round.
    """

    repo: Path
    out: Path
    against: Path
    checkout: Path
    reference_python: Path
    ajax_python: Path
    study_python: Path
    ajax_root: Path | None = None
    ajax_src: Path | None = None

    @property
    def ajax_source(self) -> Path | None:
        """The ``src`` directory that Ajax is imported from; ``None`` for the release."""
        return self.ajax_root / "src" if self.ajax_root is not None else self.ajax_src

    @property
    def code(self) -> tuple[Path, ...]:
        """The checkouts whose code runs: nothing is written there."""
        return tuple(place for place in (self.checkout, self.ajax_source) if place is not None)

    def python(self, side: Side) -> Path:
        """The Python that runs ``side``."""
        return self.reference_python if side == "reference" else self.ajax_python

    def roots(self) -> Roots:
        """The named roots under which these places are recorded (protocol section 7)."""
        named = {REPO_ROOT: self.repo, OUT_ROOT: self.out, REFERENCE_ROOT: self.checkout}
        if self.ajax_source is not None:
            named |= {AJAX_ROOT: self.ajax_source.parent, AJAX_SRC_ROOT: self.ajax_source}
        return Roots(**named)

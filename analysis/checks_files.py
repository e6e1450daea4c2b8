"""The check that a process's files are still those that it left when it ended."""

from analysis.checks import Check, outcome
from shared.digests import Changes


def files_check(name: str, changes: Changes | None) -> Check:
    """A file changed afterwards: what is computed from it says nothing of the run."""
    name = f"{name} files"
    if changes is None:
        return Check(name, None, "the process left no digests of its files")
    good = f"{changes.left} files as they were when the process ended"
    return outcome(name, changes.misplaced, good, changes.changed)

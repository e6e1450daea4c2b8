"""Runs what follows a round's processes: the comparisons that can be made, and the scan."""

import os

from launch.announcements import say
from launch.comparisons import Command
from launch.describe import later, shown
from launch.plan import Plan
from launch.processes import describe_exit
from launch.signals import StopSignals
from launch.supervise import run_foreground
from shared.errors import EXIT_NO
from shared.provenance.roots import REPO
from shared.variables import child_environment

#: What the scan means by exit status 1, and what to do.
FOUND = (
    "each line above names a file and what in it tells of this machine or its user; take that out "
    "before the files are passed on"
)


def follow(plan: Plan, signals: StopSignals) -> list[str]:
    """Run the comparisons that have what they need, then the scan; a line for each fault."""
    faults: list[str] = []
    for comparison in plan.comparisons:
        lacking = ", ".join(
            f"no {comparison.lacking.format(side)} in {shown(root)}"
            for side, root in comparison.lacks()
        )
        if lacking and not comparison.own:
            say(f"{comparison.name}: left for later, {lacking}; when there are:")
            say(f"  {later(comparison)}")
            if comparison.hint:
                say(f"  ({comparison.hint})")
            continue
        found = _foreground(comparison, signals)
        if lacking and len(plan.sides) == 1:
            say(f"{comparison.name}: not counted, {lacking}")
        else:
            faults += found
    return faults + _foreground(plan.scan, signals, found=FOUND)


def _foreground(command: Command, signals: StopSignals, *, found: str = "") -> list[str]:
    """Run one command on this terminal, unless the user has had enough; a line if it failed.

    ``found`` explains exit status 1.
    """
    if signals.count:
        return []
    say(f"{command.name}:")
    environment = child_environment(command.env, os.environ)
    try:
        code = run_foreground(command.argv, environment, REPO, signals)
    except OSError as error:
        return [f"{command.name}: could not be started ({error.strerror})"]
    why = f"; {found}" if found and code == EXIT_NO else ""
    return [f"{command.name}: {describe_exit(code)}{why}"] if code else []

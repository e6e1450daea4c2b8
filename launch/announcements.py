"""What the launcher says before and after it runs processes."""

import time
from collections.abc import Iterator
from contextlib import suppress

from launch.describe import at_a_time, describe_cache, describe_round, processes, shown
from launch.plan import Plan
from launch.resume import find_orphans, leftovers
from shared.records.layout import RunLayout


def say(line: str) -> None:
    """Print one line with the time of day. A terminal that has gone away ends no round."""
    with suppress(OSError):
        print(f"[{time.strftime('%H:%M:%S')}] {line}", flush=True)


def announce(plan: Plan, left: Plan, limit: int) -> None:
    """Say what is run: of ``plan`` the processes in ``left``, at most ``limit`` at a time."""
    for line in describe_round(plan):
        say(line)
    say(f"output: {shown(plan.out)}")
    finished = [job.name for job in plan.jobs if job not in left.jobs]
    if finished:
        say(f"finished already, not run again: {' '.join(finished)}")
    if left.jobs:
        names = " ".join(job.name for job in left.jobs)
        say(f"{processes(left)}, {at_a_time(limit)}: {names}")
        say(describe_cache(left))
    for comparison in plan.comparisons:
        if comparison.rounds:
            continue  # of a series, which makes its own directories
        for root in sorted({root for _, root in comparison.sides} - {plan.out}):
            if not root.is_dir():
                say(f"note: {comparison.name} will need {shown(root)}, which is not there")


def announce_detached(plan: Plan, pid: int, *, first: bool) -> None:
    """Say where a detached launcher, process ``pid``, is heard of again.

    ``first`` says that ``plan`` is the first part of a round that it runs all parts of.
    """
    root = plan.out.parent if first else plan.out
    parts = " of all parts" if first else ""
    say(f"detached: launcher pid {pid}, output{parts} in {shown(RunLayout(plan.out).launch_log)}")
    say(f"watch it with nox -s status -- --root {shown(root)} --watch, stop it with kill {pid}")


def foreseen(plan: Plan, left: Plan) -> Iterator[str]:
    """How a start of ``plan``, of which ``left`` remains, would go on; no line for a new one."""
    run = RunLayout(plan.out)
    for orphan in find_orphans(left):
        pid = orphan.identity.pid
        yield f"{orphan.job.name}: pid {pid} runs on without its launcher, is stopped"
    for job in plan.jobs:
        if job not in left.jobs:
            yield f"{job.name}: has finished, is not run again"
        elif leftovers(job, run):
            yield f"{job.name}: what it left is moved to {shown(run.aside)}, and it runs again"

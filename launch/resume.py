"""What a second start of a round has left to do, whether it may, and room for doing it.

A process has finished when its exit code on record is 0 and its files are there. Whatever else one
has left is moved aside before it runs again: nothing is deleted.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from launch.describe import shown
from launch.finished import has_finished
from launch.identity import Fate, Identity, start_of
from launch.plan import Job, Plan
from launch.processes import read_process
from launch.supervise import GRACE_S, POLL_S
from shared.errors import UserError
from shared.protocol import SIDES, Side
from shared.records.launch_info import PROJECT, Launch, read_launches, side_keys
from shared.records.layout import RunLayout
from shared.variables import XLA_FLAGS_VARIABLE

ANEW = "start anew with --out DIR"


def remaining(plan: Plan) -> Plan:
    """``plan`` without the processes that have finished, and without sides that have none left.

    Of a round that runs whole or not at all, with all of them unless all have finished.
    """
    run = RunLayout(plan.out)
    jobs = tuple(job for job in plan.jobs if not has_finished(job.name, job.expected_files, run))
    jobs = plan.jobs if jobs and plan.round.whole else jobs
    sides = tuple(side for side in SIDES if any(job.side == side for job in jobs))
    return replace(plan, jobs=jobs, sides=sides)


# --- is it the same round? ------------------------------------------------------------------


def _remedies(side: Side) -> dict[str, str]:
    """Fields of ``launch_info.txt`` that every start of one side must share -> what to do."""
    told = (
        "run it from the code of the first start",
        f"set {XLA_FLAGS_VARIABLE[side]} as it was",
        f"use that one (--{side}-python)",
        f"use the environment of the first start (--{side}-python)",
        "go back to the project's code of the first start",
    )
    return {
        f"{side} arm": "start the same round",
        **dict(zip(side_keys(side), told, strict=True)),
    }


def check_same_sides(left: Plan, fields: Mapping[str, str]) -> None:
    """Raise ``UserError`` where a side was started before with other code or environment.

    ``left`` is what remains to be run, ``fields`` what this start would record.
    """
    path = RunLayout(left.out).launch_info
    launches = read_launches(path) if path.exists() else ()
    for side in left.sides:
        first = next((each for each in launches if side in each.sides), None)
        for key, remedy in _remedies(side).items():
            if first is not None and first.fields.get(key) != fields[key]:
                said = key in first.fields
                way = f"{remedy}, or {ANEW}" if said else f"restore the file, or {ANEW}"
                raise UserError(f"{path}: {_difference(first, key, fields)}; {way}")


def _difference(first: Launch, key: str, fields: Mapping[str, str]) -> str:
    there = first.fields.get(key)
    if there is None:
        return f"the first start recorded no {key!r}, so that it cannot be continued"
    hint = f" (project {first.fields.get(PROJECT, '')})" if key.endswith(" code") else ""
    was, now = (_abridged(each) or "empty" for each in (there, fields[key]))
    return f"{key} was {was} at the first start{hint}, is {now} now"


def _abridged(value: str) -> str:
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b", r"\1", value)


# --- what a launcher that was killed left running -------------------------------------------


@dataclass(frozen=True)
class Orphan:
    """A process that runs on without its launcher."""

    job: Job
    identity: Identity


def find_orphans(left: Plan) -> list[Orphan]:
    """Processes of earlier starts that still run, of those that are to run again."""
    run = RunLayout(left.out)
    found = ((job, read_process(job.name, run)) for job in left.jobs)
    return [
        Orphan(job, identity)
        for job, identity in found
        if identity is not None and identity.fate(left.out) is Fate.RUNS
    ]


def stop_orphans(
    orphans: Sequence[Orphan], say: Callable[[str], None], grace_s: float = GRACE_S
) -> None:
    """End them and what they started: two processes must not write one directory.

    SIGTERM, and SIGKILL after ``grace_s`` seconds. Raises ``UserError`` where one does not end.
    """
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, grace_s)):
        running = [each for each in orphans if _runs(each)]
        for each in running:
            pid = each.identity.pid
            say(f"{each.job.name}: pid {pid} runs on without its launcher: {number.name}")
            # Each leads a group of its own.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)
        deadline = time.monotonic() + wait_s
        while any(map(_runs, running)) and time.monotonic() < deadline:
            time.sleep(POLL_S / 2)
    for each in filter(_runs, orphans):
        raise UserError(
            f"{each.job.name}: pid {each.identity.pid} of an earlier start cannot be stopped; end "
            f"it, or {ANEW}"
        )


def _runs(orphan: Orphan) -> bool:
    return start_of(orphan.identity.pid) == orphan.identity.started


# --- room for the next run ------------------------------------------------------------------


def leftovers(job: Job, run: RunLayout) -> list[Path]:
    """What an earlier start of ``job`` left: directory, log, exit code, digests, process file."""
    name = job.name
    paths = (job.directory, run.log(name), run.done(name), run.digests(name), run.process(name))
    return [path for path in paths if os.path.lexists(path)]


def set_aside(left: Plan, say: Callable[[str], None]) -> None:
    """Move what processes that run again left to ``aside/<name>.<n>``, under the names it has."""
    run = RunLayout(left.out)
    for job in left.jobs:
        paths = leftovers(job, run)
        if not paths:
            continue
        place = _next_place(run.aside, job.name)
        try:
            place.mkdir(parents=True)
            for path in paths:
                path.rename(place / path.name)
        except OSError as error:
            raise UserError(
                f"{job.name}: cannot be moved to {place} ({error.strerror}); make it writable, or "
                f"{ANEW}"
            ) from None
        say(f"{job.name}: runs again; what it left is in {shown(place)}")


def _next_place(aside: Path, name: str) -> Path:
    taken = (path.name.rpartition(".") for path in aside.glob(f"{name}.*"))
    numbers = [int(number) for stem, _, number in taken if stem == name and number.isdecimal()]
    return aside / f"{name}.{max(numbers, default=0) + 1}"

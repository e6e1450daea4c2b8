"""``python -m launch.round``: plan a round, run it, compare it, scan what it leaves."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launch import options as asked
from launch.cache import WarmUp, find_caches
from launch.describe import describe_plan, processes, shown
from launch.detach import detach
from launch.environments import ensure, locate
from launch.estimate import describe_estimate, find_bench
from launch.follow import follow
from launch.info import collect_revisions, launch_fields
from launch.lock import RoundLock, inspect, refusal
from launch.options import Options
from launch.places import Places
from launch.plan import Plan, plan_round
from launch.preflight import check_output, check_room, inspect_python, verified_release
from launch.registration import check_registered
from launch.resume import (
    check_same_sides,
    find_orphans,
    remaining,
    set_aside,
    stop_orphans,
)
from launch.signals import StopSignals
from launch.supervise import Result, supervise
from launch.table import launcher_words
from launch.tell import announce, announce_detached, foreseen, say
from launch.watch import watch
from shared.errors import EXIT_BAD_INPUT, EXIT_NO, UserError, run_command
from shared.launch_info import append_launch
from shared.layout import RunLayout
from shared.named_python import check_pythons
from shared.obtain import DEFAULT_CHECKOUT, check_named, named_checkout, obtain_checkout
from shared.protocol import SIDES, Side
from shared.provenance import REPO
from shared.variables import XLA_FLAGS_VARIABLE


@dataclass(frozen=True)
class Prepared:
    """A plan whose parts are in place, and what ``launch_info.txt`` is to say of them."""

    plan: Plan
    #: The processes that are still to be run: all of a new round.
    left: Plan
    limit: int
    fields: Mapping[str, str]


def main() -> int:
    """Run the command; the exit status."""
    status = 0
    asked_for = asked.series(asked.parse())
    if len(asked_for) > 1 and not asked_for[0].dry_run:
        for options in asked_for:  # what cannot be started at all is said before hours are spent
            check_start(options, make_plan(options, places(options)))
    for number, options in enumerate(asked_for):
        part = None if len(asked_for) == 1 else number
        began = start(options, part)
        if began is None:
            break
        status = max(status, began)
        # Stopped by its user, or bad input; a dry run tells what stands in the way of every part.
        if status not in (0, EXIT_NO) and not options.dry_run:
            break
    return status


def start(options: Options, part: int | None) -> int | None:
    """Run one round; its exit status, ``None`` where a detached launcher goes on with it.

    ``part`` numbers the parts of a series from 0: to detach is for the first of them.
    """
    found = places(options)
    draft = make_plan(options, found)
    limit = options.jobs or asked.usable_cores()
    if options.dry_run:
        return dry_run(options, draft, found, limit)
    check_start(options, draft)
    prepared = prepare(options, draft, limit)
    check_same_sides(prepared.left, prepared.fields)
    try:
        draft.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{draft.out}: cannot be made ({error.strerror})") from None
    # Started by a session, the round ends with it.
    session = os.getppid() if asked.SESSION_VARIABLE in os.environ else None
    with RoundLock(draft.out) as lock:
        if (
            options.detach
            and not part
            and (pid := detach(RunLayout(draft.out).launch_log, lock.record))
        ):
            announce_detached(draft, pid, first=part == 0)
            return None
        status = EXIT_BAD_INPUT
        try:
            with StopSignals(None if options.detach else session) as signals:
                status = run(options, prepared, lock, signals)
        finally:
            with suppress(UserError):
                lock.record(status)
    return status


def dry_run(options: Options, draft: Plan, found: Places, limit: int) -> int:
    """Print the plan, how long what is left of it takes, and what stands in its way.

    The exit status is that of a start which something stands in the way of, else 0.
    """
    left = remaining(draft)
    print(describe_plan(draft, limit), end="")
    bench = find_bench(found, asked.usable_cores(), tiny=draft.round.tiny)
    if left.jobs:
        part = [f"left to run: {' '.join(job.name for job in left.jobs)}"]
        lines = describe_estimate(left, limit, bench)
        print("", *(part if left.jobs != draft.jobs else []), *lines, sep="\n")
    try:
        check_start(options, draft)
        check_room(found.out, len(left.jobs), found.code)
        check_named(options.reference_checkout)
        print("".join(f"as things are, {line}\n" for line in foreseen(draft, left)), end="")
    except UserError as error:
        print(f"\nnot possible as things are: {error}")
        return EXIT_BAD_INPUT
    return 0


def check_start(options: Options, draft: Plan) -> None:
    """Raise ``UserError`` where the directory can take no start, or another launcher has it.

    Nor can a round start whose pre-registration is not committed, or with a Python that is none
    for a side that has something left to run.
    """
    given = {"reference": options.reference_python, "ajax": options.ajax_python}
    check_pythons({side: given[side] for side in remaining(draft).sides})
    check_registered(draft)
    check_output(draft)
    launcher = inspect(draft.out)
    if launcher is not None and launcher.runs:
        raise UserError(refusal(draft.out, launcher))


def places(options: Options) -> Places:
    """Where the parts are or will be; nothing is cloned or built."""
    chosen = asked.chosen_round(options)
    named = f"{'smoke-' if chosen.tiny else ''}{chosen.directory}"
    checkout = named_checkout(options.reference_checkout) or DEFAULT_CHECKOUT
    if options.against is not None and not options.against.is_dir():
        raise UserError(f"--against {options.against}: no such directory; name round 1's")
    return Places(
        repo=REPO,
        out=(options.out or REPO / ".work" / named).resolve(),
        against=(options.against or REPO / ".work" / "round1").resolve(),
        checkout=checkout.resolve(),
        reference_python=options.reference_python or _located("reference"),
        ajax_python=options.ajax_python or _located("ajax"),
        analysis_python=_located("analysis"),
        launcher_python=Path(sys.executable),
        ajax_root=options.ajax_root.resolve() if options.ajax_root else None,
        ajax_src=asked.ajax_source(options, os.environ),
    )


def make_plan(options: Options, found: Places) -> Plan:
    """The plan that the options ask for, with its parts at ``found``."""
    sides = [side for side in SIDES if options.side in (None, side)]
    return plan_round(
        asked.chosen_round(options),
        found,
        sides=sides,
        xla_flags=xla_flags(),
        caches=None if options.no_compile_cache else find_caches(found, sides),
        compare=not options.no_compare,
    )


def xla_flags() -> dict[Side, str]:
    """Each side's XLA flags, from the user's environment (protocol section 1)."""
    return {side: os.environ.get(XLA_FLAGS_VARIABLE[side], "") for side in SIDES}


def prepare(options: Options, draft: Plan, limit: int) -> Prepared:
    """Obtain and verify the code, make sure of the environments, and collect what is recorded.

    Raises ``UserError``, with nothing written below the output directory.
    """
    found = places(options)
    left = remaining(draft)
    check_room(found.out, len(left.jobs), found.code)
    if "reference" in left.sides:
        obtain_checkout(options.reference_checkout, options.reference_remote)
    for name in (*left.sides, *(["analysis"] if draft.comparisons else [])):
        if getattr(options, f"{name}_python", None) is None:
            ensure(name)
    # As before, but for an environment that could not be located then; an earlier part of a series
    # may have looked at it hours ago.
    found = places(options)
    inspect_python.cache_clear()
    facts = {side: inspect_python(found.python(side), side) for side in left.sides}
    released = "ajax" in left.sides and found.ajax_source is None
    release = verified_release(facts["ajax"]) if released else None
    fields = launch_fields(
        left,
        collect_revisions(found, release, left.sides),
        facts,
        xla_flags=xla_flags(),
        limit=limit,
        command=asked.command_line(options, found.roots()),
    )
    plan = make_plan(options, found)
    return Prepared(plan, remaining(plan), limit, fields)


def run(options: Options, prepared: Prepared, lock: RoundLock, signals: StopSignals) -> int:
    """Run what is left of the plan, then what follows it; the exit status."""
    plan, left = prepared.plan, prepared.left
    layout = RunLayout(plan.out)
    if remaining(plan).jobs != left.jobs:
        raise UserError(f"{plan.out}: another start has changed it just now; start again")
    if lock.broken is not None:
        say(f"taking over: {launcher_words(lock.broken)}")
    announce(plan, left, prepared.limit)
    if left.jobs:
        stop_orphans(find_orphans(left), say)
        set_aside(left, say)
        try:
            append_launch(layout.launch_info, prepared.fields)
        except OSError as error:
            raise UserError(f"{plan.out}: cannot be written ({error.strerror})") from None
    live = bool(left.jobs) and not options.plain
    watcher = watch(plan, prepared.limit, live=live, every_s=options.lines_every)
    try:
        result = supervise(
            left.jobs,
            layout,
            limit=prepared.limit,
            watcher=watcher,
            signals=signals,
            gate=WarmUp(),
        )
    finally:
        watcher.close()
    faults = [] if signals.count else follow(plan, signals)
    return conclude(plan, result, faults, signals)


def conclude(plan: Plan, result: Result, faults: list[str], signals: StopSignals) -> int:
    """Say what became of every process and of what followed; the exit status."""
    layout = RunLayout(plan.out)
    for outcome in result.failed:
        name, log = outcome.job.name, shown(layout.log(outcome.job.name))
        say(f"{outcome.word} {name}: {outcome.problem}; log: {log}")
    for fault in faults:
        say(f"FAILED {fault}")
    if result.not_started:
        say(f"never started: {', '.join(job.name for job in result.not_started)}")
    done = len(plan.jobs) - len(remaining(plan).jobs)
    say(f"{done} of {processes(plan)} finished; output: {shown(plan.out)}")
    if signals.first is not None:
        return 128 + signals.first
    return EXIT_NO if result.failed or faults else 0


def _located(name: str) -> Path:
    """The Python of an environment; one that this machine cannot have may not be needed."""
    try:
        return locate(name)
    except UserError:
        return Path(f"<{name} environment>/bin/python")


if __name__ == "__main__":
    run_command(main)

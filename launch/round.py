"""``python -m launch.round``: plan a round, run it, compare it, scan what it leaves."""

import os
from contextlib import suppress

from launch import options as asked
from launch.announcements import announce, announce_detached, say
from launch.cache import WarmUp
from launch.describe import processes, shown
from launch.detach import detach
from launch.dry_run import dry_run
from launch.follow_up import follow
from launch.lock import RoundLock
from launch.options import Options
from launch.plan import Plan
from launch.prepare import Prepared, check_start, find_places, make_plan, prepare
from launch.resume import check_same_sides, find_orphans, remaining, set_aside, stop_orphans
from launch.signals import StopSignals
from launch.supervise import Result, supervise
from launch.table import launcher_words
from launch.watchers import watch
from shared.command_start import SESSION_VARIABLE
from shared.errors import EXIT_BAD_INPUT, EXIT_NO, UserError, end_at_sigterm, run_command
from shared.protocol import ROUNDS
from shared.records.launch_info import append_launch
from shared.records.layout import RunLayout


def main() -> int:
    """Run the command; the exit status."""
    end_at_sigterm()  # what it builds or clones is undone
    status = 0
    asked_for = asked.series(asked.parse())
    if asked_for[0].dry_run:
        return dry_run(asked_for)
    if len(asked_for) > 1:
        for options in asked_for:  # what cannot be started at all is said before hours are spent
            check_start(options, planned(options))
        unfinished = [each for each in asked_for if remaining(planned(each)).jobs]
        # With all finished, the last one compares what they left.
        asked_for = unfinished[: asked_for[0].parts] or asked_for[-1:]
    for number, options in enumerate(asked_for):
        part = None if len(asked_for) == 1 else number
        began = start(options, part)
        if began is None:
            break
        status = max(status, began)
        # Stopped by its user, or bad input; and nothing overtakes a block that is to run again.
        if status not in (0, EXIT_NO) or (status and ROUNDS[options.round].whole):
            break
    return status


def planned(options: Options) -> Plan:
    """The plan that the options ask for, with its parts where they are or will be."""
    return make_plan(options, find_places(options))


def start(options: Options, part: int | None) -> int | None:
    """Run one round; its exit status, ``None`` where a detached launcher goes on with it.

    ``part`` numbers the parts of a series from 0: to detach is for the first of them.
    """
    draft = planned(options)
    check_start(options, draft)
    prepared = prepare(options, draft, options.jobs or asked.usable_cores())
    check_same_sides(prepared.left, prepared.fields)
    try:
        draft.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{draft.out}: cannot be made ({error.strerror})") from None
    # Started by a session, the round ends with it.
    session = os.getppid() if SESSION_VARIABLE in os.environ else None
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
        lock.own.check()
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
            own=lock.own,
        )
    finally:
        watcher.close()
    lock.own.check()
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


if __name__ == "__main__":
    run_command(main)

"""``--dry-run``: the plan, what it takes, and what stands in its way; nothing is made or run."""

from collections.abc import Sequence
from dataclasses import replace

from launch import options as asked
from launch.announcements import foreseen
from launch.bench_file import Bench
from launch.describe import describe_plan, processes
from launch.environments import ENVIRONMENTS, is_built
from launch.estimate import describe_estimate, expected_s, find_bench
from launch.options import Options
from launch.places import Places
from launch.plan import Plan
from launch.preflight import check_room
from launch.prepare import check_start, environments, find_places, make_plan, start_fields
from launch.progress import duration
from launch.resume import check_same_sides, remaining
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.protocol import REFERENCE_COMMIT
from shared.provenance.checkout import verify_checkout
from shared.provenance.obtain import check_named


def dry_run(asked_for: Sequence[Options]) -> int:
    """Tell of each of the rounds what a start would do, and of several how long all take.

    A part that has finished, and a block like one that is told already, are a line each. The exit
    status is that of a start which something stands in the way of, else 0.
    """
    status, seconds, parts = 0, 0.0, list[str]()
    for options in asked_for:
        found = find_places(options)
        draft = make_plan(options, found)
        limit = options.jobs or asked.usable_cores()
        left, name = remaining(draft), f"round {draft.round.name}"
        if len(asked_for) > 1 and not left.jobs:
            print(f"{name}: has finished")
            continue
        bench = find_bench(found, asked.usable_cores(), tiny=draft.round.tiny)
        if parts and draft.round.whole:
            print(f"{name}: {processes(left)} left to run")
        else:
            print("\n" if parts else "", end="")
            status = max(status, _tell(options, draft, left, found, bench))
        seconds += expected_s(left, limit, bench) if left.jobs else 0
        parts.append(draft.round.name)
    if len(asked_for) > 1:
        print(f"\nleft of {len(asked_for)} parts: {' '.join(parts) or 'none'}")
    if len(parts) > 1:
        print(f"estimate of all {len(parts)} parts: {duration(seconds)}")
    return status


def _tell(options: Options, draft: Plan, left: Plan, found: Places, bench: Bench | None) -> int:
    """Print one plan, what it takes and what stands in its way; the exit status of a start."""
    limit = options.jobs or asked.usable_cores()
    print(describe_plan(draft, limit), end="")
    if left.jobs:
        part = [f"left to run: {' '.join(job.name for job in left.jobs)}"]
        lines = describe_estimate(left, limit, bench)
        print("", *(part if left.jobs != draft.jobs else []), *lines, sep="\n")
    try:
        unbuilt = [name for name in environments(options, left) if not is_built(ENVIRONMENTS[name])]
        check(options, draft, left, found, limit, unbuilt)
    except UserError as error:
        print(f"\nnot possible as things are: {error}")
        return EXIT_BAD_INPUT
    made = [f"environment {name}" for name in unbuilt]
    if "reference" in left.sides and not found.checkout.exists():
        made.append("a clone of the reference")
    first = [f"made first, once: {', '.join(made)}"] if made else []
    for line in (*first, *foreseen(draft, left)):
        print(f"as things are, {line}")
    return 0


def check(
    options: Options, draft: Plan, left: Plan, found: Places, limit: int, unbuilt: Sequence[str]
) -> None:
    """Raise ``UserError`` where a start would, as far as that shows before anything is made.

    A side whose environment is ``unbuilt`` cannot be compared with what an earlier start of it
    recorded.
    """
    check_start(options, draft)
    check_room(found.out, len(left.jobs), found.code)
    if "reference" in left.sides:
        check_named(options.reference_checkout)
        if found.checkout.exists():
            verify_checkout(found.checkout, REFERENCE_COMMIT)
    there = tuple(side for side in left.sides if side not in unbuilt)
    known = replace(left, sides=there)
    check_same_sides(known, start_fields(options, found, known, limit))

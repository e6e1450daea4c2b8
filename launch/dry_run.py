"""``--dry-run``: the plan, what it takes, and what stands in its way; nothing is made or run."""

from collections.abc import Sequence
from dataclasses import replace

from launch import options as asked
from launch.describe import describe_plan
from launch.environments import is_built
from launch.estimate import describe_estimate, expected_s, find_bench
from launch.options import Options
from launch.places import Places
from launch.plan import Plan
from launch.preflight import check_room
from launch.prepare import check_start, environments, find_places, make_plan, start_fields
from launch.progress import duration
from launch.resume import check_same_sides, remaining
from launch.tell import foreseen
from shared.checkout import verify_checkout
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.obtain import check_named
from shared.protocol import REFERENCE_COMMIT


def dry_run(asked_for: Sequence[Options]) -> int:
    """Tell of each of the rounds what a start would do, and of several how long all take.

    The exit status is that of a start which something stands in the way of, else 0.
    """
    status, seconds = 0, 0.0
    for number, options in enumerate(asked_for):
        if number:
            print()
        found = find_places(options)
        draft = make_plan(options, found)
        limit = options.jobs or asked.usable_cores()
        left = remaining(draft)
        print(describe_plan(draft, limit), end="")
        if left.jobs:
            bench = find_bench(found, asked.usable_cores(), tiny=draft.round.tiny)
            part = [f"left to run: {' '.join(job.name for job in left.jobs)}"]
            lines = describe_estimate(left, limit, bench)
            print("", *(part if left.jobs != draft.jobs else []), *lines, sep="\n")
            seconds += expected_s(left, limit, bench)
        try:
            unbuilt = [name for name in environments(options, left) if not is_built(name)]
            check(options, draft, left, found, limit, unbuilt)
        except UserError as error:
            print(f"\nnot possible as things are: {error}")
            status = EXIT_BAD_INPUT
        else:
            made = [f"environment {name}" for name in unbuilt]
            if "reference" in left.sides and not found.checkout.exists():
                made.append("a clone of the reference")
            first = [f"made first, once: {', '.join(made)}"] if made else []
            for line in (*first, *foreseen(draft, left)):
                print(f"as things are, {line}")
    if len(asked_for) > 1 and seconds:
        print(f"\nestimate of all {len(asked_for)} parts: {duration(seconds)}")
    return status


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

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
from launch.prepare import check_start, find_places, make_plan, start_fields
from launch.progress import duration
from launch.resume import check_same_sides, remaining
from launch.tell import foreseen
from shared.checkout import verify_checkout
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.obtain import check_named, named_checkout
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
            made = to_be_made(options, left, found)
            check(options, draft, left, found, limit, made)
        except UserError as error:
            print(f"\nnot possible as things are: {error}")
            status = EXIT_BAD_INPUT
        else:
            first = [f"made first, once: {', '.join(made)}"] if made else []
            for line in (*first, *foreseen(draft, left)):
                print(f"as things are, {line}")
    if len(asked_for) > 1 and seconds:
        print(f"\nestimate of all {len(asked_for)} parts: {duration(seconds)}")
    return status


def to_be_made(options: Options, left: Plan, found: Places) -> list[str]:
    """What a start builds and clones first, in words; what the user names is never made.

    Raises ``UserError`` where an environment could not be built for want of an interpreter or uv.
    """
    named = {"reference": options.reference_python, "ajax": options.ajax_python}
    needed = [name for name in left.sides if named[name] is None]
    names = [*needed, *(["analysis"] if left.comparisons else [])]
    made = [_environment(name) for name in names if not is_built(name)]
    given = named_checkout(options.reference_checkout)
    if "reference" in left.sides and given is None and not found.checkout.exists():
        made.append("a clone of the reference")
    return made


def check(
    options: Options, draft: Plan, left: Plan, found: Places, limit: int, made: Sequence[str]
) -> None:
    """Raise ``UserError`` where a start would, as far as that shows before anything is made.

    A side whose environment is among what is to be ``made`` cannot be compared with what an
    earlier start of it recorded.
    """
    check_start(options, draft)
    check_room(found.out, len(left.jobs), found.code)
    if "reference" in left.sides:
        check_named(options.reference_checkout)
        if found.checkout.exists():
            verify_checkout(found.checkout, REFERENCE_COMMIT)
    there = tuple(side for side in left.sides if _environment(side) not in made)
    known = replace(left, sides=there)
    check_same_sides(known, start_fields(options, found, known, limit))


def _environment(name: str) -> str:
    return f"environment {name}"

"""``--dry-run``: the plan, what it takes, and what stands in its way; nothing is made or run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from launch import options as asked
from launch.describe import describe_plan
from launch.estimate import costs_of, describe_estimate, find_bench, works
from launch.options import Options
from launch.places import Places
from launch.plan import Plan
from launch.preflight import check_room
from launch.prepare import check_start, make_plan, places, start_fields
from launch.progress import duration
from launch.resume import check_same_sides, remaining
from launch.schedule import wall_time
from launch.tell import foreseen
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.layout import RunLayout
from shared.obtain import check_named, obtain_checkout


def dry_run(asked_for: Sequence[Options]) -> int:
    """Tell of each of the rounds what a start would do, and of several how long all take.

    The exit status is that of a start which something stands in the way of, else 0.
    """
    status, seconds = 0, 0.0
    for options in asked_for:
        found = places(options)
        draft = make_plan(options, found)
        limit = options.jobs or asked.usable_cores()
        left = remaining(draft)
        seconds += describe(draft, left, found, limit)
        try:
            check(options, draft, left, found, limit)
            print("".join(f"as things are, {line}\n" for line in foreseen(draft, left)), end="")
        except UserError as error:
            print(f"\nnot possible as things are: {error}")
            status = EXIT_BAD_INPUT
    if len(asked_for) > 1 and seconds:
        print(f"\nestimate of all {len(asked_for)} parts: {duration(seconds)}")
    return status


def describe(draft: Plan, left: Plan, found: Places, limit: int) -> float:
    """Print the plan, and what ``left`` of it takes; the seconds of that."""
    print(describe_plan(draft, limit), end="")
    if not left.jobs:
        return 0.0
    bench = find_bench(found, asked.usable_cores(), tiny=draft.round.tiny)
    part = [f"left to run: {' '.join(job.name for job in left.jobs)}"]
    lines = [*describe_estimate(left, limit, bench), *to_be_made(left, found)]
    print("", *(part if left.jobs != draft.jobs else []), *lines, sep="\n")
    costs = costs_of(bench, tiny=draft.round.tiny)
    return wall_time(works(left, costs), limit, costs)


def to_be_made(left: Plan, found: Places) -> Iterator[str]:
    """A line about what a start makes first, once; none where all of it is there."""
    pythons: dict[str, Path] = {side: found.python(side) for side in left.sides}
    if left.comparisons:
        pythons["analysis"] = found.analysis_python
    absent = [name for name, python in pythons.items() if not python.exists()]
    made = [f"environment {name}" for name in absent]
    if "reference" in left.sides and not found.checkout.exists():
        made.append("a clone of the reference")
    if made:
        room = "; environments take minutes, and about 2 GB together" if absent else ""
        yield f"  made first, once: {', '.join(made)}{room}"


def check(options: Options, draft: Plan, left: Plan, found: Places, limit: int) -> None:
    """Raise ``UserError`` where a start would, as far as that shows before anything is made."""
    check_start(options, draft)
    check_room(found.out, len(left.jobs), found.code)
    check_named(options.reference_checkout)
    started = RunLayout(draft.out).launch_info.exists()
    if started and left.jobs and not list(to_be_made(left, found)):
        if "reference" in left.sides:
            obtain_checkout(options.reference_checkout, options.reference_remote)
        check_same_sides(left, start_fields(options, found, left, limit))

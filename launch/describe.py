"""A plan in words, as ``--dry-run`` prints it: complete, and every command ready to be copied."""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from launch.comparisons import Command, Comparison
from launch.plan import Job, Plan
from shared.protocol import Round, updates


def describe_plan(plan: Plan, limit: int) -> str:
    """The whole plan: processes in their order, at most ``limit`` at a time, then what follows."""
    lines = [*describe_round(plan), describe_cache(plan), f"output: {plan.out}", ""]
    lines.append(f"{processes(plan)}, longest first, {at_a_time(limit)}:")
    for job in plan.jobs:
        lines += ["", *_job(job, plan.out)]
    in_parts = any(comparison.rounds for comparison in plan.comparisons)
    for comparison in plan.comparisons:
        when = ", once all parts have finished" if comparison.rounds else ""
        if in_parts and comparison.own:
            when = ", before all parts have finished of the checks alone"
        lines += ["", f"then {comparison.name}{when}:", *_command(comparison)]
    lines += ["", "then a scan for absolute paths, user and host names:", *_command(plan.scan)]
    return "\n".join(lines) + "\n"


def describe_round(plan: Plan) -> Iterator[str]:
    """What the round asks, its arms and its sizes; and how it departs from the protocol."""
    chosen = plan.round
    yield f"round {chosen.name}{' (smoke)' if chosen.tiny else ''}: {chosen.question}"
    for side in plan.sides:
        arm = chosen.arm(side)
        yield f"  {side}: arm {arm.name}, {arm.summary}"
    yield f"  {sizes(chosen)}"
    for departure in plan.departures:
        yield f"  departs from the protocol: {departure}"


def describe_cache(plan: Plan) -> str:
    """Whether compiled programs are kept, and which processes wait for one to be compiled."""
    if not plan.compile_cache:
        return "compile cache: off"
    waiting: dict[str, list[str]] = {}
    first: dict[Path, str] = {}
    for job in plan.jobs:
        if job.program is None or job.program.exists():
            continue
        before = first.setdefault(job.program, job.name)
        if before != job.name:
            waiting.setdefault(before, []).append(job.name)
    words = [
        f"{' '.join(names)} wait{'s' if len(names) == 1 else ''} until {name} trains"
        for name, names in waiting.items()
    ]
    return "; ".join(["compile cache: on", *words])


def sizes(chosen: Round) -> str:
    """Seeds, rows, updates and evaluations of a round."""
    return (
        f"seeds {' '.join(map(str, chosen.seeds))}; {chosen.rows} rows = "
        f"{updates(chosen.rows)} updates; evaluation of {chosen.episodes} episodes every "
        f"{chosen.every} rows{'; tiny widths' if chosen.tiny else ''}"
    )


def processes(plan: Plan) -> str:
    """``1 process`` or ``4 processes``."""
    return "1 process" if len(plan.jobs) == 1 else f"{len(plan.jobs)} processes"


def at_a_time(limit: int) -> str:
    """``one at a time`` or ``at most 3 at a time``."""
    return "one at a time" if limit == 1 else f"at most {limit} at a time"


def later(comparison: Comparison) -> str:
    """The command with which a user runs ``comparison`` later."""
    return f"nox -s compare -- {shlex.join(comparison.argv[3:])}"


def megabytes(size: float) -> str:
    """``0.4 MB``, ``12 MB`` or ``3.4 GB``."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.{0 if size >= 1e7 else 1}f} MB"


def shown(path: Path) -> str:
    """``path`` as a user reads it: relative where it lies below the working directory."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)


def _job(job: Job, out: Path) -> Iterator[str]:
    yield f"{job.name}:"
    yield f"  cd {shlex.quote(str(job.cwd))}"
    yield from _command_lines(job.env, job.argv)
    files = [path.relative_to(out).as_posix() for path in job.expected_files]
    yield f"  writes {' '.join(files)}"


def _command(command: Command) -> Iterator[str]:
    yield from _command_lines(command.env, command.argv)


def _command_lines(env: Mapping[str, str], argv: tuple[str, ...]) -> Iterator[str]:
    yield f"  {' '.join(f'{name}={shlex.quote(value)}' for name, value in env.items())} \\"
    yield f"    {shlex.join(argv)}"

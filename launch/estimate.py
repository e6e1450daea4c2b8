"""What a round will take here, in time, memory and disk: by the bench, or by published figures."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from launch.bench_file import Bench, bench_path, load
from launch.cache import cache_key
from launch.describe import megabytes
from launch.places import Places
from launch.plan import COSTS, Job, Plan
from launch.preflight import inspect_python
from launch.progress import duration
from launch.schedule import Mix, Speed, Work, best_limit, wall_time
from shared.cpu import describe_cpu
from shared.errors import UserError
from shared.protocol import SIDES, Side, updates

#: What the files of protocol section 7 need, rounded up: the reference's checkpoint, a line of
#: records and of evaluations, a line of progress, and episodes of ten rows, a line each.
CHECKPOINT_BYTES, RECORD_BYTES, PROGRESS_BYTES, EPISODE_BYTES = 8_000_000, 9_000, 100, 110
PROGRESS_ROWS, EPISODE_ROWS = 160, 10


class Costs(Speed, Protocol):
    """Speeds and start-up times: a bench, or the published figures."""

    def start_s(self, side: Side, *, warm: bool) -> float:
        """Seconds of start-up of a process of ``side``."""


@dataclass(frozen=True)
class PublishedSpeeds:
    """Stands in for a bench: the published figures, of two cores and two processes at a time."""

    tiny: bool

    def update_s(self, side: Side, seeds: int, mix: Mix) -> float:  # noqa: ARG002
        """As :class:`launch.schedule.Speed`, whatever runs beside."""
        return COSTS[side, self.tiny].update_s * seeds

    def start_s(self, side: Side, *, warm: bool) -> float:
        """Seconds of start-up of a process of ``side``."""
        cost = COSTS[side, self.tiny]
        return cost.warm_s if warm else cost.start_s


def is_kept(job: Job) -> bool:
    """Whether the cache keeps what the process compiles: not with a host callback of jax's."""
    return job.program is not None and (job.side == "reference" or "--no-callbacks" in job.argv)


def is_warm(job: Job) -> bool:
    """Whether what the process would compile is in the cache by now."""
    return is_kept(job) and job.program is not None and job.program.exists()


def works(plan: Plan, costs: Costs) -> tuple[Work, ...]:
    """The plan's processes, in their order, as the schedule takes them."""
    return tuple(
        Work(
            name=job.name,
            side=job.side,
            start_s=costs.start_s(job.side, warm=is_warm(job)),
            updates=updates(plan.round.rows),
            seeds=len(job.seeds),
            program=str(job.program) if is_kept(job) and not is_warm(job) else None,
            warm_s=costs.start_s(job.side, warm=True),
        )
        for job in plan.jobs
    )


def find_bench(places: Places, cores: int, *, tiny: bool) -> Bench | None:
    """The bench of this machine and these environments; ``None`` where there is none to read."""
    with suppress(UserError):
        return load(this_bench(places, cores, tiny=tiny))
    return None


def this_bench(places: Places, cores: int, *, tiny: bool) -> Path:
    """The file of this machine's bench. Raises ``UserError`` without a side's environment."""
    cpu = describe_cpu()
    keys = [cache_key(cpu, inspect_python(places.python(side), side)) for side in SIDES]
    return bench_path(places.repo, cpu, keys, cores, tiny=tiny)


def expected_s(plan: Plan, limit: int, bench: Bench | None) -> float:
    """Seconds that the plan takes, by the bench's figures, else by the published ones."""
    costs: Costs = bench or PublishedSpeeds(plan.round.tiny)
    return wall_time(works(plan, costs), limit, costs)


def describe_estimate(plan: Plan, limit: int, bench: Bench | None) -> Iterator[str]:
    """What the plan takes with ``limit`` processes at a time, a line each for time and room."""
    source = (
        f"measured here on {bench.measured}"
        if bench
        else "from published figures of another machine; nox -s bench measures this one"
    )
    yield f"estimate: {duration(expected_s(plan, limit, bench))} ({source})"
    if bench is not None and any(job.side == "ajax" and is_warm(job) for job in plan.jobs):
        yield "  at most: what Ajax saves without callbacks and with a warm cache is not measured"
    if bench is not None:
        best, seconds = best_limit(works(plan, bench), bench.most, bench)
        if best != limit and seconds < 0.97 * expected_s(plan, limit, bench):
            yield f"  --jobs {best} would take {duration(seconds)}"
        yield f"  memory: at most {megabytes(memory(plan.jobs, limit, bench))} at a time"
    yield f"  disk: about {megabytes(disk(plan))}"


def memory(jobs: Sequence[Job], limit: int, bench: Bench) -> int:
    """The most bytes that ``limit`` processes at a time hold together."""
    peaks = sorted((bench.peak_bytes[job.side] for job in jobs), reverse=True)
    return sum(peaks[:limit])


def disk(plan: Plan) -> int:
    """Bytes that the round's records, episodes and checkpoints need, roughly."""
    chosen = plan.round
    seed = len(chosen.checkpoints) * RECORD_BYTES
    progress = chosen.rows // PROGRESS_ROWS * PROGRESS_BYTES
    episodes = chosen.rows // EPISODE_ROWS * EPISODE_BYTES
    alone: dict[Side, int] = {"reference": CHECKPOINT_BYTES + episodes + progress, "ajax": progress}
    return sum(alone[job.side] + seed * len(job.seeds) for job in plan.jobs)

"""The bench's measurements, in their order. Each process is used for as much as it can show.

The first process of a side compiles into an empty cache (cold), the second finds it there (warm).
A process that is asked for nothing stands still.
"""

import math
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from launch.announcements import say
from launch.bench_file import Bench, MixSpeed, ObserverCosts, StartTimes
from launch.bench_process import ROUND, BenchProcess, ProcessStarter, update_seconds
from launch.ratio import median_ratio
from shared.probes.pace import UPDATES_PER_TICK
from shared.protocol import ROUNDS, SIDES, Side
from shared.provenance.roots import system


@dataclass(frozen=True)
class Effort:
    """How much is measured: ticks of a block, pairs of observed and bare ticks, processes."""

    ticks: int
    pairs: int
    most: int


def measure(starter: ProcessStarter, effort: Effort, cores: int) -> Bench:
    """Measure both sides on ``cores`` cores, which nothing else should use meanwhile."""
    ticks, start = effort.ticks, dict[Side, StartTimes]()
    with ExitStack() as stack:
        first = stack.enter_context(starter.start("reference"))
        cold = first_update_s(first, "cold cache")
        mixes = [side_by_side([first], ticks)]
        observers = observer_costs(first, effort.pairs)
        second = stack.enter_context(starter.start("reference"))
        start["reference"] = StartTimes(cold, first_update_s(second, "warm cache"))
        references = [first, second]
        while len(references) < effort.most:
            references.append(stack.enter_context(starter.start("reference")))
            first_update_s(references[-1], "warm cache")
        mixes += [side_by_side(references[:count], ticks) for count in counts(effort.most)]
        with starter.start("ajax") as ajax:
            cold = first_update_s(ajax, "cold cache")
            mixes.append(side_by_side([ajax], ticks))
            if effort.most > 1:
                # The reference must go on until Ajax, which leaves its first tick out, has ended.
                reference_ticks = 1 + math.ceil(
                    (ticks + 1) * (mixes[-1].ajax_s or 0.0) / (mixes[0].reference_s or 1.0)
                )
                beside = references[: effort.most - 1]
                mixes.append(side_by_side([*beside, ajax], ticks, reference_ticks))
        # Its training program holds a host callback, is in no cache and is compiled again.
        with starter.start("ajax") as again:
            start["ajax"] = StartTimes(cold, first_update_s(again, "warm cache"))
    return Bench(
        measured=time.strftime("%Y-%m-%d"),
        system=system(),
        cores=cores,
        tiny=starter.tiny,
        ajax_seeds=len(ROUNDS[ROUND].seeds),
        start=start,
        together=tuple(mixes),
        observers=observers,
        peak_bytes=starter.peak_bytes(),
    )


def counts(most: int) -> list[int]:
    """Numbers of reference processes to run side by side, beyond one: powers of two, and all."""
    powers = [2**power for power in range(1, most.bit_length()) if 2**power < most]
    return [*powers, most] if most > 1 else []


def first_update_s(process: BenchProcess, cache: str) -> float:
    """Wait for a process's first update and let it warm up; seconds of the start-up."""
    seconds = process.start_s()
    if process.side == "reference":  # Ajax leaves the first tick of every block out
        process.run(1)
    say(f"{process.side}: first update after {seconds:.1f} s ({cache})")
    return seconds


def side_by_side(
    processes: Sequence[BenchProcess], ticks: int, reference_ticks: int | None = None
) -> MixSpeed:
    """Seconds per update of processes side by side, each asked for ``ticks``.

    The reference's are asked for ``reference_ticks`` where that is given.
    """
    for process in processes:
        process.go(reference_ticks or ticks if process.side == "reference" else ticks)
    seconds = update_seconds([process.result() for process in processes])
    by_side: dict[Side, list[float]] = {side: [] for side in SIDES}
    for process, update_s in zip(processes, seconds, strict=True):
        by_side[process.side].append(update_s)
    mean = {side: statistics.fmean(values) if values else None for side, values in by_side.items()}
    say(
        "side by side: " * (len(processes) > 1)
        + ", ".join(
            f"{len(by_side[side])} {side}, {value:.3f} s per update"
            for side, value in mean.items()
            if value is not None
        )
    )
    numbers = (len(by_side["reference"]), len(by_side["ajax"]))
    return MixSpeed(*numbers, mean["reference"], mean["ajax"])


def observer_costs(process: BenchProcess, pairs: int) -> ObserverCosts:
    """Observed and bare ticks of one reference process in turn; evaluations apart.

    A pair's ticks are neighbours in one run: they make different updates of the same size, so that
    neither memory nor compilation of another process comes in. Bare is the stock loop under the
    bench: no observer does anything, the driver that calls them and the pace stay.
    """
    last = process.run(1, observed=True)  # compiles what evaluates
    observing, training, evaluating = 0.0, 0.0, 0.0
    ratios = []
    for number in range(pairs):
        seconds = {}
        # Which is first changes from pair to pair, so that a drift favours neither.
        for observed in (True, False) if number % 2 else (False, True):
            block = process.run(1, observed=observed)
            evaluation = block.evaluation_s - last.evaluation_s
            seconds[observed] = block.seconds - evaluation
            if observed:
                observing += block.observer_s - last.observer_s
                training += seconds[observed]
                evaluating += evaluation
            last = block
        ratios.append(seconds[True] / seconds[False])
    costs = ObserverCosts(observing / training, median_ratio(ratios), evaluating / pairs)
    say(
        f"reference: observers take {costs.share:.2%} of training time by their clock; observed to "
        f"bare ticks of {UPDATES_PER_TICK} updates {costs.ratio}; an evaluation takes "
        f"{costs.evaluation_s:.1f} s"
    )
    return costs

"""The bench's measurements, in their order. Each process is used for as much as it can show.

The first process of a side compiles into the lab's empty cache (cold), the second finds it there
(warm). Probes that are not asked for anything stand still.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from launch.bench_process import BenchProcess, Block, update_seconds
from launch.lab import ROUND, Lab
from launch.measured import Bench, Observers, Start, Together
from launch.progress import duration
from launch.ratio import median_ratio
from shared.pace import UPDATES_PER_TICK
from shared.protocol import ROUNDS, Side
from shared.provenance import system

Say = Callable[[str], None]
#: Ticks that Ajax's process computes but does not time in a block.
AJAX_SKIPS = 1


@dataclass(frozen=True)
class Effort:
    """How much is measured: ticks of a block, pairs of observed and bare ticks, processes."""

    ticks: int
    pairs: int
    most: int


@dataclass
class Peaks:
    """The most memory seen of each side."""

    bytes: dict[Side, int]

    def see(self, side: Side, block: Block) -> Block:
        """Take note of a block, and pass it on."""
        self.bytes[side] = max(self.bytes.get(side, 0), block.peak_bytes)
        return block


def measure(lab: Lab, effort: Effort, cores: int, say: Say) -> Bench:
    """Measure both sides on ``cores`` cores, which nothing else should use meanwhile."""
    peaks = Peaks({})
    start: dict[Side, Start] = {}
    with ExitStack() as stack:
        first = stack.enter_context(lab.start("reference"))
        cold = begin(first, peaks, say, "cold cache")
        references = [first]
        alone = together([first], effort, peaks, say)
        observers = observe(first, effort.pairs, peaks, say)
        second = stack.enter_context(lab.start("reference"))
        start["reference"] = Start(cold, begin(second, peaks, say, "warm cache"))
        references.append(second)
        references += [stack.enter_context(lab.start("reference")) for _ in range(effort.most - 2)]
        for process in references[2:]:
            begin(process, peaks, say, "warm cache, others starting too")
        found = [alone]
        found += [together(references[:count], effort, peaks, say) for count in counts(effort.most)]
        with lab.start("ajax") as ajax:
            cold = begin(ajax, peaks, say, "cold cache")
            found.append(together([ajax], effort, peaks, say))
            if effort.most > 1:
                beside = references[: effort.most - 1]
                found.append(mixed(ajax, beside, found, effort, peaks, say))
        start["ajax"] = Start(cold, warm_ajax(lab, peaks, say))
    return Bench(
        measured=time.strftime("%Y-%m-%d"),
        system=system(),
        cores=cores,
        tiny=lab.tiny,
        ajax_seeds=len(ROUNDS[ROUND].seeds),
        start=start,
        together=tuple(found),
        observers=observers,
        peak_bytes=peaks.bytes,
    )


def warm_ajax(lab: Lab, peaks: Peaks, say: Say) -> float:
    """Start-up of an Ajax process that follows another one.

    Its training program holds a host callback, is in no cache and is compiled again.
    """
    with lab.start("ajax") as ajax:
        return begin(ajax, peaks, say, "warm cache")


def counts(most: int) -> list[int]:
    """Numbers of reference processes to run side by side, beyond one: powers of two, and all."""
    powers = [2**power for power in range(1, most.bit_length()) if 2**power < most]
    return [*powers, most] if most > 1 else []


def begin(process: BenchProcess, peaks: Peaks, say: Say, cache: str) -> float:
    """Wait for a process's first update and let it warm up; seconds of the start-up."""
    seconds, block = process.ready()
    peaks.see(process.side, block)
    if process.side == "reference":
        # Ajax's process leaves the first tick of every block out.
        peaks.see(process.side, process.run(1))
    say(f"{process.side}: first update after {seconds:.0f} s ({cache})")
    return seconds


def together(processes: Sequence[BenchProcess], effort: Effort, peaks: Peaks, say: Say) -> Together:
    """Seconds per update of processes of one side, side by side."""
    for process in processes:
        process.go(effort.ticks)
    blocks = [peaks.see(process.side, process.result()) for process in processes]
    mean = statistics.fmean(update_seconds(blocks))
    side = processes[0].side
    beside = f", {len(processes)} side by side" if len(processes) > 1 else ""
    say(f"{side}: {mean:.3f} s per update{beside}")
    if side == "ajax":
        return Together(0, len(processes), None, mean)
    return Together(len(processes), 0, mean, None)


def mixed(
    ajax: BenchProcess,
    references: Sequence[BenchProcess],
    before: Sequence[Together],
    effort: Effort,
    peaks: Peaks,
    say: Say,
) -> Together:
    """Seconds per update of both sides, side by side; ``before`` says how long blocks will take."""
    tick = {"ajax": before[-1].ajax_s or 0.0, "reference": before[0].reference_s or 1.0}
    ajax_ticks = effort.ticks + AJAX_SKIPS
    # Enough for the reference to go on until Ajax's block has ended.
    ticks = 1 + math.ceil(ajax_ticks * tick["ajax"] / tick["reference"])
    for process in references:
        process.go(ticks)
    ajax.go(effort.ticks)
    blocks = [peaks.see(process.side, process.result()) for process in (ajax, *references)]
    ajax_s, *reference_s = update_seconds(blocks)
    mean = statistics.fmean(reference_s)
    say(
        f"ajax: {ajax_s:.3f} s per update beside {len(references)} of the reference, "
        f"which take {mean:.3f} s"
    )
    return Together(len(references), 1, mean, ajax_s)


def observe(process: BenchProcess, pairs: int, peaks: Peaks, say: Say) -> Observers:
    """Observed and bare ticks of one reference process in turn; evaluations apart.

    A pair's ticks are neighbours in one run: they make different updates of the same size, so that
    neither memory nor compilation of another process comes in. Bare is the stock loop under the
    bench: no observer does anything, the driver that calls them and the pace stay.
    """
    last = peaks.see("reference", process.run(1, observed=True))  # compiles what evaluates
    observing, training, evaluating = 0.0, 0.0, 0.0
    ratios = []
    for number in range(pairs):
        seconds = {}
        # Who is first changes from pair to pair, so that a drift favours neither.
        for observed in (True, False) if number % 2 else (False, True):
            block = peaks.see("reference", process.run(1, observed=observed))
            evaluation = block.evaluation_s - last.evaluation_s
            seconds[observed] = block.seconds - evaluation
            if observed:
                observing += block.observer_s - last.observer_s
                training += seconds[observed]
                evaluating += evaluation
            last = block
        ratios.append(seconds[True] / seconds[False])
    found = Observers(observing / training, median_ratio(ratios), evaluating / pairs)
    say(
        f"reference: observers take {100 * found.share:.2f} % of training time by their clock; "
        f"observed to bare ticks of {UPDATES_PER_TICK} updates {found.ratio}"
    )
    say(f"reference: {duration_s(found.evaluation_s)} for an evaluation")
    return found


def duration_s(seconds: float) -> str:
    """Short times with a decimal."""
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)

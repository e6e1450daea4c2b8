"""Environment settings that might speed a side up, each held against the default in turn.

A setting counts as safe where it cannot change what is computed, and where the processes' digests
say that it did not: a few updates give the same parameters, bit for bit.
"""

import ctypes.util
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from launch.bench_process import BenchProcess, update_seconds
from launch.lab import Lab, Variant
from launch.ratio import CONFIDENCE, Ratio, median_ratio
from shared.protocol import Side

Say = Callable[[str], None]
#: A setting that gains less is not worth a default.
WORTHWHILE = 0.97


@dataclass(frozen=True)
class Setting:
    """One setting. ``own_core`` gives each process a core of its own.

    ``why`` says what it changes, and why that leaves the results alone.
    """

    why: str
    env: Mapping[str, str] = field(default_factory=dict)
    xla_flags: str = ""
    own_core: bool = False
    #: Library to be loaded first, by its name without lib; the setting needs it.
    preload: str | None = None


_MEMORY = "where memory comes from, not what is computed"
_THREADS = "how many threads share an operation; a sum split otherwise may round otherwise"

SETTINGS: dict[str, Setting] = {
    "again": Setting("the default once more: what the comparison itself makes of no difference"),
    "own-core": Setting(f"a core for each process: {_THREADS}", own_core=True),
    "eigen-single": Setting(
        f"matrix products in one thread: {_THREADS}",
        xla_flags="--xla_cpu_multi_thread_eigen=false",
    ),
    "single-thread": Setting(
        f"one thread for everything: {_THREADS}",
        xla_flags="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    ),
    "blas-single": Setting(
        "numpy's own threads, which the sides hardly use: outside of what is compiled",
        env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    ),
    "keep-memory": Setting(
        f"glibc keeps large blocks instead of returning them to the system: {_MEMORY}",
        # The largest threshold that glibc takes; beyond 32 MiB it ignores the variable.
        env={"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "17179869184"},
    ),
    "huge-pages": Setting(
        f"glibc asks for huge pages: {_MEMORY}", env={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    ),
    "two-arenas": Setting(f"fewer malloc arenas: {_MEMORY}", env={"MALLOC_ARENA_MAX": "2"}),
    "jemalloc": Setting(f"another allocator: {_MEMORY}", preload="jemalloc"),
    "tcmalloc": Setting(f"another allocator: {_MEMORY}", preload="tcmalloc_minimal"),
}


@dataclass(frozen=True)
class Finding:
    """What a setting gave: time with it over time without it, and whether the numbers agree."""

    side: Side
    name: str
    ratio: Ratio
    same: bool

    @property
    def gains(self) -> bool:
        """Whether it is safe, and surely worth a default; few pairs are not sure of anything."""
        sure = self.ratio.confidence >= CONFIDENCE and self.ratio.high < WORTHWHILE
        return self.same and sure

    def __str__(self) -> str:
        numbers = "same numbers" if self.same else "OTHER NUMBERS: not safe"
        return f"{self.side} {self.name}: {self.ratio} of the default's time; {numbers}"


def compare_settings(
    lab: Lab, names: Sequence[str], sides: Sequence[Side], cores: int, pairs: int, say: Say
) -> list[Finding]:
    """Compare each setting with the default, on as many processes at a time as a round runs."""
    findings: list[Finding] = []
    for side in sides:
        # A round has one process of Ajax.
        copies = cores if side == "reference" else 1
        with ExitStack() as stack:
            default, digest = start_group(lab, side, None, copies, stack)
            say(f"{side}: {copies} at a time; default is ready")
            for name in names:
                if (reason := unavailable(SETTINGS[name])) is not None:
                    say(f"{side} {name}: left out, {reason}")
                    continue
                finding = _compare(lab, side, name, (default, digest), pairs)
                say(f"{finding} ({SETTINGS[name].why})")
                findings.append(finding)
    say(conclusion(findings))
    return findings


def conclusion(findings: Sequence[Finding]) -> str:
    """Which setting is the best safe one of each side, if any gains enough."""
    lines = []
    for side in dict.fromkeys(each.side for each in findings):
        gaining = [each for each in findings if each.side == side and each.gains]
        best = min(gaining, key=lambda each: each.ratio.median, default=None)
        nothing = f"no setting surely gains {100 * (1 - WORTHWHILE):.0f} %: the default stays"
        lines.append(f"{side}: {nothing if best is None else f'best and safe: {best.name}'}")
    return "\n".join(lines)


def unavailable(setting: Setting) -> str | None:
    """Why the setting cannot be had on this machine; ``None`` where it can."""
    if setting.own_core and not hasattr(os, "sched_setaffinity"):
        return "this system binds no process to a core"
    if setting.preload is not None and ctypes.util.find_library(setting.preload) is None:
        return f"no lib{setting.preload} here"
    return None


def variants(name: str, copies: int) -> list[Variant]:
    """How the processes of a setting are started, one for each."""
    setting = SETTINGS[name]
    library = ctypes.util.find_library(setting.preload) if setting.preload else None
    env = {**setting.env, **({"LD_PRELOAD": library} if library else {})}
    cores = sorted(os.sched_getaffinity(0)) if setting.own_core else []
    return [
        Variant(
            name,
            env,
            setting.xla_flags,
            frozenset({cores[number % len(cores)]}) if cores else None,
        )
        for number in range(copies)
    ]


def start_group(
    lab: Lab, side: Side, name: str | None, copies: int, stack: ExitStack
) -> tuple[list[BenchProcess], str]:
    """Processes with one setting, warmed up, and the digest of the first one.

    One after the other: the first compiles for the others.
    """
    processes = []
    digest = ""
    for variant in variants(name, copies) if name else [Variant()] * copies:
        process = stack.enter_context(lab.start(side, variant))
        process.ready()
        digest = digest or process.run(1).digest or ""
        processes.append(process)
    return processes, digest


def block_seconds(processes: Sequence[BenchProcess]) -> float:
    """Seconds per update of processes that run one tick side by side, on average."""
    for process in processes:
        process.go(1)
    return statistics.fmean(update_seconds([process.result() for process in processes]))


def same_digest(one: str, other: str) -> bool:
    """Whether two digests agree as far as both go: Ajax's are ``tick:number``, ever more."""
    told = [dict(each.partition(":")[::2] for each in digest.split()) for digest in (one, other)]
    common = told[0].keys() & told[1].keys()
    return bool(common) and all(told[0][name] == told[1][name] for name in common)


def _compare(
    lab: Lab, side: Side, name: str, default: tuple[list[BenchProcess], str], pairs: int
) -> Finding:
    ratios = []
    processes, digest = default
    with ExitStack() as stack:
        changed, its_digest = start_group(lab, side, name, len(processes), stack)
        for number in range(pairs):
            first = (processes, changed) if number % 2 else (changed, processes)
            seconds = {id(group): block_seconds(group) for group in first}
            ratios.append(seconds[id(changed)] / seconds[id(processes)])
    return Finding(side, name, median_ratio(ratios), same_digest(digest, its_digest))

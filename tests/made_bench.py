"""What the tests of the bench share: stand-ins for its processes, and a bench made by hand."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from launch.bench_file import Bench, MixSpeed, ObserverCosts, StartTimes
from launch.bench_process import ProcessStarter
from launch.plan import Job
from launch.ratio import median_ratio
from shared.protocol import Side
from tests import stand_in_bench

TICK_S: dict[Side, float] = {"reference": 0.04, "ajax": 0.08}


class StandInStarter(ProcessStarter):
    """Starts stand-ins instead of sides."""

    kinds: ClassVar[dict[Side, str]] = {"reference": "reference", "ajax": "ajax"}

    def job(self, side: Side, name: str) -> Job:
        script, cache = stand_in_bench.__file__, self.scratch / f"{side}.compiled"
        words = (sys.executable, script, self.kinds[side], TICK_S[side], cache)
        here = Path(__file__).parent
        env = {"PYTHONPATH": str(here.parent)}
        return replace(super().job(side, name), argv=tuple(map(str, words)), cwd=here, env=env)


def made(**changes: object) -> Bench:
    """A bench of two cores: side by side a process is slower, but not twice as slow."""
    bench = Bench(
        measured="2026-11-29",
        system="Linux x86_64",
        cores=2,
        tiny=False,
        ajax_seeds=3,
        start={"reference": StartTimes(344.0, 25.0), "ajax": StartTimes(150.0, 120.0)},
        together=(
            MixSpeed(1, 0, 1.0, None),
            MixSpeed(2, 0, 1.5, None),
            MixSpeed(0, 1, None, 2.4),
            MixSpeed(1, 1, 1.4, 3.0),
        ),
        observers=ObserverCosts(0.001, median_ratio([1.0, 1.01, 0.99]), 0.3),
        peak_bytes={"reference": 10**9, "ajax": 2 * 10**9},
    )
    return replace(bench, **changes)  # type: ignore[arg-type]

"""What the tests of the bench share: a lab of stand-in processes, and a bench made by hand."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from launch.bench_process import BenchCommand
from launch.lab import Lab
from launch.measured import Bench, Observers, Start, Together
from launch.ratio import median_ratio
from shared.protocol import Side
from tests import stand_in_bench

TICK_S: dict[Side, float] = {"reference": 0.04, "ajax": 0.08}


class StandInLab(Lab):
    """Starts stand-ins instead of sides."""

    kinds: Mapping[Side, str] = {"reference": "reference", "ajax": "ajax"}

    def command(self, side: Side) -> BenchCommand:
        real = super().command(side)
        script = str(Path(stand_in_bench.__file__))
        cache = str(self.scratch / f"{side}.compiled")
        return replace(
            real,
            argv=(sys.executable, script, self.kinds[side], str(TICK_S[side]), cache),
            cwd=Path(__file__).parent,
            env={"PYTHONPATH": str(Path(__file__).parent.parent)},
        )


def made(**changes: object) -> Bench:
    """A bench of two cores: side by side a process is slower, but not twice as slow."""
    found = Bench(
        measured="2026-11-29",
        system="Linux x86_64",
        cores=2,
        tiny=False,
        ajax_seeds=3,
        start={"reference": Start(344.0, 25.0), "ajax": Start(150.0, 120.0)},
        together=(
            Together(1, 0, 1.0, None),
            Together(2, 0, 1.5, None),
            Together(0, 1, None, 2.4),
            Together(1, 1, 1.4, 3.0),
        ),
        observers=Observers(0.001, median_ratio([1.0, 1.01, 0.99]), 0.3),
        peak_bytes={"reference": 10**9, "ajax": 2 * 10**9},
    )
    return replace(found, **changes)  # type: ignore[arg-type]

"""Where the bench's processes run: a throw-away directory, with a compilation cache of its own."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from launch.bench_process import BenchCommand, BenchProcess
from launch.places import Places
from launch.plan import Job, plan_round
from launch.programs import SideCache
from shared.protocol import ROUNDS, SIDES, Side
from shared.variables import xla_flags

#: Rounds 1 and 2 have the sizes that Ajax's process is compiled for.
ROUND = "1"


@dataclass
class Lab:
    """Starts processes exactly as a round starts its own: same command line and variables.

    ``scratch`` holds everything that they write; a program that one has compiled is found in the
    cache there by the next one. The log of one that fails is kept beside it.
    """

    places: Places
    scratch: Path
    tiny: bool
    started: int = 0

    def start(self, side: Side) -> BenchProcess:
        """Start a process; ask it for :meth:`BenchProcess.ready` next."""
        self.started += 1
        return BenchProcess(self.command(side), os.environ)

    def command(self, side: Side) -> BenchCommand:
        """The command of the process that is started next."""
        name = f"{side}{self.started}"
        job = self._job(side)
        options = ["--tiny"] if self.tiny else []
        if side == "reference":
            # One seed: all processes of the reference train the same, beside each other or in turn.
            options += ["--checkout", str(self.places.checkout)]
            options += ["--out", str(self.scratch / name)]
        else:
            options += ["--seeds", *map(str, job.seeds)]
            if self.places.ajax_root is not None:
                options += ["--ajax-root", str(self.places.ajax_root)]
        return BenchCommand(
            side=side,
            argv=(
                job.argv[0],
                "-m",
                f"{'ref' if side == 'reference' else side}_side.bench",
                *options,
            ),
            cwd=job.cwd,
            env=job.env,
            log=self.scratch / f"{name}.log",
            kept_log=self.scratch.with_name(f"failed-{name}.log"),
        )

    def _job(self, side: Side) -> Job:
        """The process of ``side`` in a round, with the bench's cache and the user's XLA flags."""
        plan = plan_round(
            ROUNDS[ROUND],
            replace(self.places, out=self.scratch),
            sides=[side],
            xla_flags=xla_flags(),
            caches={each: SideCache(self.scratch / "cache", None) for each in SIDES},
        )
        return plan.jobs[0]

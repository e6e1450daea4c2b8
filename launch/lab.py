"""Where the bench's processes run: a throw-away directory, with a compilation cache of its own."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from launch.bench_process import BenchCommand, BenchProcess
from launch.places import Places
from launch.plan import Job, plan_round
from launch.programs import SideCache
from shared.protocol import ROUNDS, SIDES, Side
from shared.variables import xla_flags

#: Rounds 1 and 2 have the sizes that Ajax's process is compiled for.
ROUND = "1"


@dataclass(frozen=True)
class Variant:
    """What a process is started with beyond a round's own environment.

    ``env`` and ``xla_flags`` are added, ``cpus`` are the cores that it may use.
    """

    name: str = "default"
    env: Mapping[str, str] = field(default_factory=dict)
    xla_flags: str = ""
    cpus: frozenset[int] | None = None


@dataclass
class Lab:
    """Starts processes exactly as a round starts its own: same command line and variables.

    ``scratch`` holds everything that they write; a program that one has compiled is found in the
    cache there by the next one with the same flags. The log of one that fails is kept beside it.
    """

    places: Places
    scratch: Path
    tiny: bool
    digest: bool = False
    started: int = 0

    def start(self, side: Side, variant: Variant | None = None) -> BenchProcess:
        """Start a process; ask it for :meth:`BenchProcess.ready` next."""
        self.started += 1
        return BenchProcess(self.command(side, variant or Variant()), os.environ)

    def command(self, side: Side, variant: Variant) -> BenchCommand:
        """The command of the process that is started next."""
        name = f"{side}{self.started}"
        job = self._job(side, variant.xla_flags)
        options = ["--tiny"] if self.tiny else []
        options += ["--digest"] if self.digest else []
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
            env={**job.env, **variant.env},
            log=self.scratch / f"{name}.log",
            kept_log=self.scratch.with_name(f"failed-{name}.log"),
            cpus=variant.cpus,
        )

    def _job(self, side: Side, added_flags: str) -> Job:
        """The process of ``side`` in a round, with the bench's cache and the user's XLA flags."""
        flags = {each: f"{given} {added_flags}".strip() for each, given in xla_flags().items()}
        plan = plan_round(
            ROUNDS[ROUND],
            replace(self.places, out=self.scratch),
            sides=[side],
            xla_flags=flags,
            caches={each: SideCache(self.scratch / "cache", None) for each in SIDES},
        )
        return plan.jobs[0]

"""A process of the bench (:mod:`shared.probes.pace`): started as in a round, asked, ended."""

import json
import os
import subprocess
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from launch.describe import shown
from launch.places import Places
from launch.plan import Job, plan_round
from launch.processes import describe_exit, last_line
from launch.programs import SideCache
from shared.errors import UserError
from shared.probes.pace import UPDATES_PER_TICK
from shared.protocol import ROUNDS, SIDES, Side
from shared.variables import child_environment, xla_flags

#: Rounds 1 and 2 have the sizes that Ajax's process is compiled for.
ROUND = "1"
MODULES: Mapping[Side, str] = {"reference": "ref_side.bench", "ajax": "ajax_side.bench"}


@dataclass(frozen=True)
class Block:
    """What a process says of the ticks that it was asked for; times in seconds.

    ``marks`` are the ends of ticks on a clock that all processes share. ``observer_s`` and
    ``evaluation_s`` count from the process's start.
    """

    marks: tuple[float, ...]
    peak_bytes: int
    observer_s: float = 0.0
    evaluation_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of all its ticks."""
        return self.marks[-1] - self.marks[0]


class BenchProcess:
    """One process of the bench. It is killed when the ``with`` block ends, however that happens.

    Its output goes to ``log``, which is kept in the directory above if the process fails.
    """

    def __init__(self, job: Job, log: Path) -> None:
        self.side, self._log = job.side, log
        #: The most memory that the process has held so far.
        self.peak_bytes = 0
        self._begun = time.monotonic()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                job.argv,
                cwd=job.cwd,
                env=child_environment(job.env, os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def start_s(self) -> float:
        """Wait for the first update; seconds from the start to its end."""
        return self.result().marks[-1] - self._begun

    def go(self, ticks: int, **more: Any) -> None:
        """Ask for so many ticks; :meth:`result` waits for them."""
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(BrokenPipeError):  # it has ended: result() says how
            stdin.write(json.dumps({"ticks": ticks, **more}) + "\n")
            stdin.flush()

    def result(self) -> Block:
        """Wait for the reply. Raises ``UserError`` where the process ends without one."""
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            code = self._process.wait()
            ended = describe_exit(128 - code if code < 0 else code)
            said = last_line(self._log) or "nothing in its log"
            log = self._log.replace(self._log.parent.with_name(f"failed-{self._log.name}"))
            raise UserError(
                f"the bench's {self.side} process failed: {ended}, {said}; see its log, "
                f"{shown(log)}"
            )
        reply = json.loads(line)
        block = Block(**{**reply, "marks": tuple(reply["marks"])})
        self.peak_bytes = block.peak_bytes
        return block

    def run(self, ticks: int, **more: Any) -> Block:
        """Ask for so many ticks and wait for them."""
        self.go(ticks, **more)
        return self.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()


@dataclass
class ProcessStarter:
    """Starts processes exactly as a round starts its own: same interpreter and variables.

    ``scratch`` holds everything that they write. A program that one of them has compiled is found
    by the next one in the cache there.
    """

    places: Places
    scratch: Path
    tiny: bool
    started: list[BenchProcess] = field(default_factory=list)

    def start(self, side: Side) -> BenchProcess:
        """Start a process; wait for its :meth:`BenchProcess.start_s` next."""
        name = f"{side}{len(self.started) + 1}"
        process = BenchProcess(self.job(side, name), self.scratch / f"{name}.log")
        self.started.append(process)
        return process

    def job(self, side: Side, name: str) -> Job:
        """The process of ``side`` in a round, but for its module and its options."""
        plan = plan_round(
            ROUNDS[ROUND],
            replace(self.places, out=self.scratch),
            sides=[side],
            xla_flags=xla_flags(),
            caches={each_side: SideCache(self.scratch / "cache", None) for each_side in SIDES},
        )
        job = plan.jobs[0]
        if side == "reference":
            # One seed: all of the reference's processes train the same.
            options = ["--checkout", self.places.checkout, "--out", self.scratch / name]
        else:
            options = ["--seeds", *job.seeds]
            options += ["--ajax-root", self.places.ajax_root] if self.places.ajax_root else []
        options += ["--tiny"] if self.tiny else []
        return replace(job, argv=(job.argv[0], "-m", MODULES[side], *map(str, options)))

    def peak_bytes(self) -> dict[Side, int]:
        """The most memory that a process of each side has held."""
        return {
            side: max(process.peak_bytes for process in self.started if process.side == side)
            for side in SIDES
        }


def update_seconds(blocks: Sequence[Block]) -> list[float]:
    """Seconds per update of each of several processes, during the time that their ticks share.

    Within a tick the speed counts as even. Raises ``ValueError`` where they share no time.
    """
    begin = max(block.marks[0] for block in blocks)
    end = min(block.marks[-1] for block in blocks)
    if end <= begin:
        raise ValueError("the blocks share no time")
    done = [ticks_by(block.marks, end) - ticks_by(block.marks, begin) for block in blocks]
    return [(end - begin) / ticks / UPDATES_PER_TICK for ticks in done]


def ticks_by(marks: Sequence[float], moment: float) -> float:
    """Ticks done by ``moment``, which lies between the first and the last of ``marks``."""
    index = min(bisect_right(marks, moment), len(marks) - 1)
    before, after = marks[index - 1], marks[index]
    return index - 1 + (moment - before) / (after - before)

"""A process of the bench (``shared.pace``) as the bench sees it: started, told to go on, ended."""

import json
import subprocess
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from launch.describe import shown
from launch.processes import describe_exit, last_line
from shared.errors import UserError
from shared.pace import UPDATES_PER_TICK
from shared.protocol import Side
from shared.variables import child_environment


@dataclass(frozen=True)
class BenchCommand:
    """How a process is started; the ``log`` of one that fails is moved to ``kept_log``."""

    side: Side
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    kept_log: Path


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
    """One process of the bench. It is killed when the ``with`` block ends, however that happens."""

    def __init__(self, command: BenchCommand, inherited: Mapping[str, str]) -> None:
        self.side, self._log, self._kept_log = command.side, command.log, command.kept_log
        command.log.parent.mkdir(parents=True, exist_ok=True)
        self._begun = time.monotonic()
        with command.log.open("ab") as log:
            self._process = subprocess.Popen(
                command.argv,
                cwd=command.cwd,
                env=child_environment(command.env, inherited),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def ready(self) -> tuple[float, Block]:
        """Seconds from the start to the end of the first update, and what the process says then."""
        block = self.result()
        return block.marks[-1] - self._begun, block

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
            log = shown(self._log.replace(self._kept_log))
            raise UserError(
                f"the bench's {self.side} process failed: {ended}, {said}; see its log, {log}"
            )
        reply = json.loads(line)
        return Block(**{**reply, "marks": tuple(reply["marks"])})

    def run(self, ticks: int, **more: Any) -> Block:
        """Ask for so many ticks and wait for them."""
        self.go(ticks, **more)
        return self.result()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def update_seconds(blocks: Sequence[Block]) -> list[float]:
    """Seconds per update of each of several processes, during the time that their ticks share.

    Within a tick the speed counts as even. Raises ``ValueError`` where they share no time.
    """
    begin = max(block.marks[0] for block in blocks)
    end = min(block.marks[-1] for block in blocks)
    if end <= begin:
        raise ValueError("the blocks share no time")
    ticks = [ticks_by(block.marks, end) - ticks_by(block.marks, begin) for block in blocks]
    return [(end - begin) / each / UPDATES_PER_TICK for each in ticks]


def ticks_by(marks: Sequence[float], moment: float) -> float:
    """Ticks done by ``moment``, which lies between the first and the last of ``marks``."""
    index = min(bisect_right(marks, moment), len(marks) - 1)
    before, after = marks[index - 1], marks[index]
    return index - 1 + (moment - before) / (after - before)

"""The launcher's schedule, computed instead of run: how long a round takes with so many jobs.

Processes start in their order, at most ``limit`` at a time, and each goes at the speed that it has
beside those that run with it. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.protocol import SIDES, Side

#: How many processes of each side run at the same time.
Mix = Mapping[Side, int]


@dataclass(frozen=True)
class Work:
    """What one process does: ``start_s`` seconds of start-up, then ``updates``.

    ``program`` names what it compiles where that is in no cache yet: others that name it start
    when it has compiled, and then in ``warm_s`` instead.
    """

    name: str
    side: Side
    start_s: float
    updates: int
    seeds: int = 1
    program: str | None = None
    warm_s: float = 0.0


class Speed(Protocol):
    """How fast processes are beside each other."""

    def update_s(self, side: Side, seeds: int, mix: Mix) -> float:
        """Seconds per update of a process of ``side`` that is one of ``mix``."""


@dataclass
class _Running:
    work: Work
    start_s: float
    updates: float

    def left_s(self, update_s: float) -> float:
        """Seconds until its phase ends: start-up, or training."""
        return self.start_s if self.start_s > 0 else self.updates * update_s


def wall_time(works: Sequence[Work], limit: int, speed: Speed) -> float:
    """Seconds from the first start to the last end. ``limit`` is at least 1."""
    waiting, running = list(works), list[_Running]()
    warm: set[str] = set()
    now = 0.0
    while waiting or running:
        _start(waiting, running, warm, limit)
        mix: Mix = {side: sum(each.work.side == side for each in running) for side in SIDES}
        speeds = [speed.update_s(each.work.side, each.work.seeds, mix) for each in running]
        step = min(each.left_s(s) for each, s in zip(running, speeds, strict=True))
        now += step
        for each, update_s in zip(list(running), speeds, strict=True):
            _advance(each, step, update_s, warm)
            if each.start_s <= 0 and each.updates <= 0:
                running.remove(each)
    return now


def best_limit(works: Sequence[Work], most: int, speed: Speed) -> tuple[int, float]:
    """The number of jobs, up to ``most``, with the least wall time; of equals the smallest."""
    times = {limit: wall_time(works, limit, speed) for limit in range(1, most + 1)}
    best = min(times, key=lambda limit: times[limit])
    return best, times[best]


def _start(waiting: list[Work], running: list[_Running], warm: set[str], limit: int) -> None:
    """Start what may start, in the order of the plan, as the launcher does."""
    while len(running) < limit:
        compiling = {each.work.program for each in running} - {None} - warm
        allowed = (each for each in waiting if each.program not in compiling)
        if (work := next(allowed, None)) is None:
            return
        waiting.remove(work)
        start_s = work.warm_s if work.program in warm else work.start_s
        running.append(_Running(work, start_s, float(work.updates)))


def _advance(each: _Running, step: float, update_s: float, warm: set[str]) -> None:
    """Let ``step`` seconds pass for one process; rounding leaves nothing behind."""
    if each.start_s > 0:
        each.start_s = 0.0 if each.start_s <= step * (1 + 1e-12) else each.start_s - step
        if not each.start_s and each.work.program is not None:
            warm.add(each.work.program)
        return
    left = each.updates * update_s
    each.updates = 0.0 if left <= step * (1 + 1e-12) else each.updates - step / update_s

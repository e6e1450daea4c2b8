"""Stands in for a side's process of the bench: paced as one, its ticks are sleeps of known length.

``python stand_in_bench.py KIND TICK_S CACHE``; the first process to find no file CACHE takes
COLD_S longer to start. KIND ``dies`` ends at its second command. With VIRTUAL set its clock is the
sum of its sleeps, which then take no time, its start apart. It prints on stdout as the sides do,
which must not reach the bench.
"""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shared import pace as shared_pace
from shared.pace import FIRST_TICK, Pace, take_stdout

#: Seconds of a cold start, of the observers of one tick, and of an evaluation.
COLD_S, OBSERVER_S, EVALUATION_S = 1.5, 0.004, 0.02


class VirtualClock:
    """Stands in for the clock that ticks are marked with; it starts at 0 with every command."""

    def __init__(self) -> None:
        self.now = 0.0
        shared_pace.time = SimpleNamespace(monotonic=lambda: self.now)  # type: ignore[assignment]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def restart(self) -> None:
        self.now = 0.0


def main() -> None:
    kind, tick_s, cache = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    replies = take_stdout()
    print("Observation space", flush=True)
    os.system("echo a library prints too")
    clock = VirtualClock() if "VIRTUAL" in os.environ else None
    sleep = clock.sleep if clock is not None else time.sleep
    if not cache.exists():
        time.sleep(COLD_S)  # start-up is measured from outside
        cache.write_text("compiled")
    state: dict[str, Any] = {"observed": False, "observer_s": 0.0, "evaluation_s": 0.0}
    commands = 0

    def prepare(command: Mapping[str, Any]) -> None:
        nonlocal commands
        commands += 1
        if clock is not None:
            clock.restart()
        if kind == "dies" and commands == 2:
            print("Traceback: out of memory", file=sys.stderr)
            os._exit(7)
        state["observed"] = command.get("observed", False)

    def report() -> dict[str, Any]:
        return {name: state[name] for name in ("observer_s", "evaluation_s")}

    skip = 1 if kind == "ajax" else 0
    pace = Pace(replies, prepare=prepare, report=report, skip=skip)
    for tick in range(1, 100_000):
        if tick > FIRST_TICK:
            sleep(tick_s)
        if state["observed"]:
            sleep(OBSERVER_S + EVALUATION_S)
            state["observer_s"] += OBSERVER_S
            state["evaluation_s"] += EVALUATION_S
        pace.tick(tick)


if __name__ == "__main__":
    main()

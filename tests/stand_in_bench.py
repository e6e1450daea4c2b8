"""Stands in for a side's process of the bench: paced as one, on a clock that is set by hand.

``python stand_in_bench.py KIND TICK_S CACHE``: a tick takes TICK_S seconds by that clock, and the
first process to find no file CACHE starts COLD_S later. KIND ``dies`` ends at its second command,
``stays`` never answers it. It prints on stdout as the sides do, which must not reach the bench.
"""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shared.probes import pace as shared_pace
from shared.probes.pace import FIRST_TICK, Pace, take_stdout

#: Seconds of a cold start, of the observers of one tick, and of an evaluation.
COLD_S, OBSERVER_S, EVALUATION_S = 1000.0, 0.004, 0.02


def main() -> None:
    kind, tick_s, cache = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    replies = take_stdout()
    print("Observation space", flush=True)
    os.system("echo a library prints too")
    # The bench measures start-up from outside, by the system's clock.
    now = time.monotonic() + (0.0 if cache.exists() else COLD_S)
    cache.write_text("compiled")
    shared_pace.time = SimpleNamespace(monotonic=lambda: now)  # type: ignore[assignment]
    observed, commands, seconds = False, 0, {"observer_s": 0.0, "evaluation_s": 0.0}

    def prepare(command: Mapping[str, Any]) -> None:
        nonlocal now, observed, commands
        now, observed, commands = 0.0, command.get("observed", False), commands + 1
        if kind == "dies" and commands == 2:
            print("Traceback: out of memory", file=sys.stderr)
            os._exit(7)
        if kind == "stays" and commands == 2:
            time.sleep(600)

    pace = Pace(replies, prepare=prepare, report=lambda: seconds, skip=int(kind == "ajax"))
    for tick in range(1, 100_000):
        now += tick_s if tick > FIRST_TICK else 0.0
        if observed:
            now += OBSERVER_S + EVALUATION_S
            seconds["observer_s"] += OBSERVER_S
            seconds["evaluation_s"] += EVALUATION_S
        pace.tick(tick)


if __name__ == "__main__":
    main()

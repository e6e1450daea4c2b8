"""``python -m launch.status``: how a round stands, from its files alone."""

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from launch.board import DRAW_EVERY_S, live_view
from launch.lock import inspect, is_alive
from launch.places import Places
from launch.plan import Job, plan_round
from launch.state import ENDED_BADLY, RoundState, State, round_state
from launch.table import is_live, rounds_view, terminal
from shared.errors import EXIT_NO, UserError, run_command
from shared.protocol import ROUNDS, SERIES, SIDES, Round
from shared.provenance.roots import REPO
from shared.records.digests import changes
from shared.records.launch_info import Launch, read_launches
from shared.records.layout import LAUNCH_INFO, RunLayout

#: Width for output that goes to no terminal: no line is wrapped.
PLAIN_WIDTH = 10_000


def main() -> int:
    """Show the state of a round; exit status 1 if a part of it ended badly."""
    options = _parser().parse_args()
    console = terminal()
    if options.watch and is_live(console):
        states = watch(options.root, console)
    else:
        states = read_rounds(options.root)
        show(states, console)
    for part in unknown_parts(options.root, states):
        why = f"holds no {LAUNCH_INFO}" if part.is_dir() else "is not there"
        print(f"{part}: {why}, so that it is not shown; has it been started?")
    changed = [fault for state in states for fault in changed_files(state)]
    for fault in changed:
        print(f"{fault} since its process ended; restore it, or run the round anew")
    return EXIT_NO if changed else max(map(exit_status, states))


def changed_files(state: RoundState) -> list[str]:
    """What became of the files of finished processes, by the digests that these left."""
    finished = (each.job.name for each in state.processes if each.state is State.FINISHED)
    found = (changes(RunLayout(state.out), name) for name in finished)
    return [f"{state.out}/{fault}" for each in found if each is not None for fault in each.faults]


def exit_status(state: RoundState) -> int:
    """1 if a part of the round, or its launcher, ended badly."""
    launcher = state.launcher
    code = launcher.exit_code if launcher is not None else None
    broken = launcher is not None and launcher.broken
    # A launcher that ended with 0 had seen every process finish.
    bad = any(
        each.state in ENDED_BADLY or (code == 0 and each.state is not State.FINISHED)
        for each in state.processes
    )
    return EXIT_NO if bad or code or broken else 0


def show(states: Sequence[RoundState], console: Console) -> None:
    """Print the states; where no terminal takes them, nothing is cut off or padded."""
    if console.is_terminal:
        console.print(rounds_view(console, *states))
        return
    plain = Console(width=PLAIN_WIDTH, color_system=None, highlight=False, markup=False)
    with plain.capture() as printed:
        plain.print(rounds_view(plain, *states))
    print("\n".join(line.rstrip() for line in printed.get().splitlines()))


def watch(root: Path, console: Console) -> list[RoundState]:
    """Show the state until no launcher works on the round, or Ctrl-C; the last state."""
    states = read_rounds(root)
    # Who leaves off watching stops nothing.
    with suppress(KeyboardInterrupt), live_view(console) as live:
        live.update(rounds_view(console, *states), refresh=True)
        while any(state.running or goes_on(state, root) for state in states):
            time.sleep(DRAW_EVERY_S)
            states = read_rounds(root)
            live.update(rounds_view(console, *states), refresh=True)
    return states


def goes_on(part: RoundState, root: Path) -> bool:
    """Whether the launcher that has ended ``part`` still runs: it is about to begin the next."""
    return part.out != root and is_alive(part.out)


def read_rounds(root: Path) -> list[RoundState]:
    """The state of the round in ``root``, or of each part that is there, in their order.

    Raises ``UserError`` where the directory holds no round that this project started.
    """
    if not RunLayout(root).launch_info.is_file():
        for names in SERIES.values():
            parts = [root / ROUNDS[name].part for name in names]
            started = [part for part in parts if RunLayout(part).launch_info.is_file()]
            if started:
                return [read_round(part) for part in started]
    return [read_round(root)]


def unknown_parts(root: Path, shown: Sequence[RoundState]) -> list[Path]:
    """Where the parts lie, beside those that are ``shown``, of which nothing is on record."""
    names = next((each for each in SERIES.values() if shown[0].round.name in each), ())
    known = {state.out for state in shown}
    parts = [root / ROUNDS[name].part for name in names]
    return [part for part in parts if root not in known and part not in known]


def read_round(root: Path) -> RoundState:
    """The state of the round in the directory ``root``, as its ``launch_info.txt`` planned it.

    Raises ``UserError`` where the directory holds no round that this project started.
    """
    path = RunLayout(root).launch_info
    if not root.is_dir():
        raise UserError(f"{root.absolute()}: no such directory; name that of a round with --root")
    if not path.is_file():
        raise UserError(f"{root}: holds no {path.name}; name the directory of a round with --root")
    launches = read_launches(path)
    chosen = _round(launches[-1], path)
    limit = launches[-1].number("jobs") or 1
    return round_state(
        chosen, root, _jobs(chosen, launches, root), limit=limit, launcher=inspect(root)
    )


def _jobs(chosen: Round, launches: tuple[Launch, ...], root: Path) -> tuple[Job, ...]:
    """The processes of the sides that were started, as they were planned."""
    # Of a plan made only to be looked at, where Pythons and checkouts lie does not matter.
    places = Places(REPO, root, *[REPO] * 6)
    sides = [side for side in SIDES if any(side in each.sides for each in launches)]
    return plan_round(chosen, places, sides=sides, compare=False).jobs


def _round(launch: Launch, path: Path) -> Round:
    name, seeds = launch.fields.get("round"), launch.seeds or ()
    sizes = [launch.number(name) for name in ("rows", "every", "episodes")]
    rows, every, episodes = (size or 0 for size in sizes)
    if name not in ROUNDS or 0 in (rows, every, episodes, len(seeds)):
        raise UserError(
            f"{path}: does not say round, rows, every, episodes and seeds; status shows rounds "
            "that this project started"
        )
    chosen = ROUNDS[name].smoke() if launch.fields.get("smoke") == "yes" else ROUNDS[name]
    return replace(chosen, seeds=seeds, rows=rows, every=every, episodes=episodes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nox -s status --",
        description="Show how a running, finished or broken round stands, from its files alone.",
        epilog="Exit status: 0 it runs or has finished; 1 a part of it ended badly, or a file "
        "was changed since its process ended; 2 there is no round.",
    )
    parser.add_argument(
        "--root",
        type=Path,
        required=True,
        metavar="DIR",
        help="the round's directory; if the round has several parts, the one of all or of one",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="show it again every second until it has ended, or Ctrl-C, which stops nothing else",
    )
    return parser


if __name__ == "__main__":
    run_command(main)

"""A round as a table: what the live board and ``status`` both show."""

import sys
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launch.describe import shown
from launch.identity import Fate
from launch.lock import Launcher
from launch.processes import describe_exit
from launch.progress import duration
from launch.state import RUNNING, ProcessState, RoundState, State
from shared.protocol import updates
from shared.records.layout import RunLayout

#: Names and words stand left, numbers right.
_COLUMNS = {
    **dict.fromkeys(("process", "state"), "left"),
    **dict.fromkeys(("rows", "updates", "upd/s", "evaluation", "left"), "right"),
}
#: A terminal of at least so many columns has room for a bar, of so many.
WIDE, BAR = 100, 20
_STYLES = {
    State.FINISHED: "green",
    State.STOPPED: "yellow",
    State.ORPHAN: "yellow",
    State.FAILED: "red",
    State.BROKEN: "red",
    State.WAITING: "dim",
    State.NOT_RUN: "dim",
    State.UNKNOWN: "dim",
}


def terminal() -> Console:
    """Standard output; no colours where NO_COLOR is set."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def is_live(console: Console) -> bool:
    """Whether it is a terminal that understands how to move its cursor."""
    return console.is_terminal and not console.is_dumb_terminal


def round_view(state: RoundState, *, bars: bool, notes: bool = True) -> Group:
    """Title, a line per process, the total, and ``notes`` on what needs a word more."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name, side in _COLUMNS.items():
        table.add_column(name, justify="right" if side == "right" else "left", no_wrap=True)
    if bars:
        table.add_column(width=BAR)
    for process in state.processes:
        bar = [ProgressBar(total=1.0, completed=process.fraction, width=BAR)] if bars else []
        table.add_row(*_cells(process), *bar, style=_STYLES.get(process.state))
    told = map(Text, _notes(state) if notes else ())
    return Group(Text(_title(state), style="bold"), table, Text(_total(state), "bold"), *told)


def rounds_view(console: Console, *states: RoundState, notes: bool = True) -> RenderableType:
    """Several rounds, as the parts of one, with an empty line between them."""
    views: list[RenderableType] = []
    for state in states:
        views += [*([Text("")] if views else [])]
        views.append(round_view(state, bars=console.width >= WIDE, notes=notes))
    return Group(*views)


def launcher_words(launcher: Launcher | None) -> str:
    """What is known of the launcher, in a few words."""
    if launcher is None:
        return "no launcher on record"
    if launcher.exit_code is not None:
        return "ended, all is well" if not launcher.exit_code else _ended(launcher.exit_code)
    since = "" if launcher.age_s is None else f", started {duration(launcher.age_s)} ago"
    who = "its launcher's pid is not on record"
    return {
        Fate.RUNS: who if launcher.pid is None else f"launcher pid {launcher.pid}{since}",
        Fate.GONE: f"BROKEN: its launcher (pid {launcher.pid}) was killed",
        Fate.REBOOTED: "BROKEN: the machine rebooted",
        Fate.COPIED: "a copy: whether the original still runs is unknown",
        Fate.ELSEWHERE: "started on another machine: whether it runs is unknown",
    }[launcher.fate]


def _ended(code: int) -> str:
    words = "not all is well" if code < 128 else describe_exit(code).replace("ended", "stopped")
    return f"ended: {words}"


def _title(state: RoundState) -> str:
    smoke = " (smoke)" if state.round.tiny else ""
    return f"round {state.round.name}{smoke}: {_activity(state)}"


def _activity(state: RoundState) -> str:
    words = launcher_words(state.launcher)
    ended = state.launcher is not None and state.launcher.exit_code == 0
    if ended and any(process.state is not State.FINISHED for process in state.processes):
        return "ended well, but its files are not whole any more"
    active = any(process.state in (*RUNNING, State.WAITING) for process in state.processes)
    doing = "running" if active else "its processes have ended"
    return f"{doing}, {words}" if state.running else words


def _cells(process: ProcessState) -> tuple[str, ...]:
    seen = process.snapshot
    known = process.state in RUNNING and seen.left_s is not None
    evaluation = "" if seen.evaluation is None else f"{seen.evaluation:.1f} @{seen.evaluation_rows}"
    return (
        process.job.name,
        process.state.value,
        f"{seen.rows}/{seen.total_rows}",
        f"{seen.updates}/{updates(seen.total_rows)}",
        f"{seen.rate:.2f}" if process.state in RUNNING and seen.rate is not None else "",
        evaluation,
        duration(process.left_s) if known else "",
    )


def _total(state: RoundState) -> str:
    states = [process.state for process in state.processes]
    parts = [f"{states.count(State.FINISHED)} of {len(states)} finished"]
    for count, word in (
        (sum(map(states.count, RUNNING)), "running"),
        (states.count(State.WAITING), "waiting"),
    ):
        parts += [f"{count} {word}"] if count else []
    parts.append(f"{int(100 * state.fraction)} %")
    if state.running and state.left_s > 0:
        parts.append(f"about {duration(state.left_s)} left")
    return f"total: {', '.join(parts)}"


def _notes(state: RoundState) -> Iterator[str]:
    run = RunLayout(state.out)
    for process in state.processes:
        if process.note is not None:
            log = run.log(process.job.name)
            where = f"; log: {shown(log)}" if log.exists() else ""
            yield f"{process.job.name}: {process.note}{where}"
    unfinished = any(process.state is not State.FINISHED for process in state.processes)
    if unfinished and not state.running and state.launcher is not None:
        yield "to continue, start the same round again: what has finished is not run again"

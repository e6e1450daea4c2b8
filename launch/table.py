"""A round as lines of text of a given width: what the live board and ``status`` both print.

Pure: a state goes in, lines come out. Drawing them over each other is ``launch.board``'s.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from launch.describe import shown
from launch.identity import Fate
from launch.lock import Launcher
from launch.processes import describe_exit
from launch.progress import duration
from launch.state import RUNNING, ProcessState, RoundState, State
from shared.protocol import updates
from shared.records.layout import RunLayout

_HEADS = ("process", "state", "rows", "updates", "upd/s", "evaluation", "left")
#: Names and words stand left, numbers right.
_LEFT = (0, 1)
_GAP = "  "
#: Width of a bar, which is drawn where the terminal has room for it.
BAR = 20

_RED, _GREEN, _YELLOW, _DIM, _BOLD = "31", "32", "33", "2", "1"
_COLOURS = {
    State.FINISHED: _GREEN,
    State.STOPPED: _YELLOW,
    State.ORPHAN: _YELLOW,
    State.FAILED: _RED,
    State.BROKEN: _RED,
    State.WAITING: _DIM,
    State.NOT_RUN: _DIM,
    State.UNKNOWN: _DIM,
}


@dataclass(frozen=True)
class Line:
    """One line, and the ANSI colour that a terminal may show it in."""

    text: str
    colour: str = ""

    def drawn(self, width: int, *, colour: bool) -> str:
        """The line cut to ``width`` columns, its end marked where something was cut off."""
        text = self.text if len(self.text) <= width else f"{self.text[: max(0, width - 1)]}>"
        return f"\x1b[{self.colour}m{text}\x1b[0m" if colour and self.colour else text


def round_lines(state: RoundState, width: int, *, notes: bool = True) -> list[Line]:
    """Title, a line per process, the total, and ``notes`` on what needs a word more."""
    rows = [_cells(process) for process in state.processes]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    bars = sum(widths) + len(_GAP) * len(widths) + BAR <= width
    lines = [Line(_title(state), _BOLD), Line(_row(_HEADS, widths), _DIM)]
    for process, cells in zip(state.processes, rows, strict=True):
        shown_cells = (*cells, _bar(process.fraction)) if bars else cells
        text = _row(shown_cells, (*widths, BAR)[: len(shown_cells)])
        lines.append(Line(text, _COLOURS.get(process.state, "")))
    lines.append(Line(_total(state, widths), _BOLD))
    for note in _notes(state) if notes else ():
        lines += [Line(part) for part in textwrap.wrap(note, width, subsequent_indent="  ")]
    return lines


def table_lines(states: Sequence[RoundState], width: int, *, notes: bool = True) -> list[Line]:
    """The lines of several rounds, as of the parts of one, with an empty line between them."""
    lines: list[Line] = []
    for state in states:
        lines += [*([Line("")] if lines else []), *round_lines(state, width, notes=notes)]
    return lines


def fit(lines: Sequence[Line], height: int) -> list[Line]:
    """``lines`` for a terminal of ``height`` lines: the last ones make room for a count."""
    if len(lines) <= height:
        return list(lines)
    kept = max(0, height - 1)
    return [*lines[:kept], Line(f"... {len(lines) - kept} more lines", _DIM)]


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


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if number in _LEFT else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return _GAP.join(padded).rstrip()


def _bar(fraction: float) -> str:
    done = int(fraction * (BAR - 2))
    return f"[{'#' * done}{'.' * (BAR - 2 - done)}]"


def _total(state: RoundState, widths: Sequence[int]) -> str:
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
    return f"{'total'.ljust(widths[0])}{_GAP}{', '.join(parts)}"


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

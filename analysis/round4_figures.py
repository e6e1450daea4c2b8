"""Figures of round 4: its statistics seed by seed, and its four arms over rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from analysis.canvas import COLOUR, MARKER, Data, bars, new_figure, thousands
from analysis.comparison import ENTROPY
from analysis.replication import PUBLISHED_AJAX
from analysis.round4 import Round4, at_checkpoints, beside, key
from analysis.round4_rules import CELLS, Cell, cell_name
from analysis.windows import side_windows, window_table
from shared.protocol import SIDE_LABEL, Form, Side

_BEHIND = "0.82"
_SHORT: dict[Side, str] = {"reference": "Ref.", "ajax": "Ajax"}
_LINES: dict[Form, str] = {"literal": "-", "exact": "--"}
#: By which arms are moved apart, in rows.
_APART = 36


def figure_data(found: Round4) -> dict[str, Data]:
    """Figure name -> the numbers that it shows."""
    return {"statistics": _statistics_data(found), "arms": _arms_data(found)}


def _statistics_data(found: Round4) -> Data:
    """Every seed's value of every statistic, with what was published of the same arm."""
    panels: Data = {}
    for each in found.findings:
        measure = each.measure
        columns = {
            key(cell): {
                "seeds": dict(
                    zip(map(str, found.sides[cell].seed_numbers), each.sample[cell], strict=True)
                ),
                "published": beside(cell, measure.window, measure.metric),
            }
            for cell in CELLS
        }
        panels[measure.name] = {
            "metric": measure.metric,
            "window": measure.window,
            "logarithm": measure.logarithm,
            "reading": each.word,
            "columns": columns,
        }
    outcome = f"Round 4, {found.verdict.word} by the registered rule"
    title = ":\n".join([outcome, *found.verdict.reasons[:1]])
    return {"title": title, "panels": panels}


def _arms_data(found: Round4) -> Data:
    """Each arm's entropy and evaluations over rows: [rows, mean, lowest, highest seed]."""
    arms: Data = {}
    for cell, data in found.sides.items():
        grid = data.grid
        windows = side_windows(data, grid[0]) if grid else None
        table = window_table(windows) if windows else {}
        arms[key(cell)] = {
            "entropy": [[end, *row[ENTROPY]] for end, row in table.items() if ENTROPY in row],
            "evaluations": [
                [rows, *values]
                for rows, values in at_checkpoints(found, cell, "evaluations").items()
                if values is not None
            ],
        }
    return {"title": "Round 4: the four arms (not pre-registered)", "arms": arms}


# --- drawing --------------------------------------------------------------------------------


def _cells() -> dict[str, Cell]:
    return {key(cell): cell for cell in CELLS}


def _statistics(data: Data) -> Figure:
    panels: Mapping[str, Data] = data["panels"]
    figure, all_axes = new_figure(2.75 * len(panels), 4.2, len(panels), sharey=False)
    for axes, panel in zip(all_axes, panels.values(), strict=True):
        for position, (name, cell) in enumerate(_cells().items()):
            _column(axes, position, cell, panel["columns"][name])
        axes.set_title(f"{panel['metric']}\nwindow ending at {panel['window']}", fontsize=9)
        axes.set_xlabel(panel["reading"])
        if panel["logarithm"] and _positive(panel):
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(range(len(CELLS)), [f"{_SHORT[side]}\n{form}" for side, form in CELLS])
        axes.tick_params(axis="x", labelsize=7.5)
        axes.set_xlim(-0.6, len(CELLS) - 0.4)
    all_axes[0].set_ylabel("window mean, one seed a mark")
    figure.suptitle(data["title"])
    figure.legend(
        handles=_statistics_legend(all_axes[0]), loc="outside lower center", ncols=4, fontsize=8
    )
    return figure


def _column(axes: Axes, position: int, cell: Cell, column: Data) -> None:
    """One arm: its seeds side by side, in front of what was published of it."""
    side, form = cell
    low, high = position - 0.38, position + 0.38
    published = column["published"]
    if published and len(published) > 1:
        axes.fill_between([low, high], *published[1:], color=_BEHIND, lw=0, zorder=0)
    if published:
        axes.plot([low, high], [published[0]] * 2, color="0.45", lw=1.2, zorder=1)
    values = [value for value in column["seeds"].values() if value is not None]
    step = 0.5 / max(len(values), 1)
    first = position - step * (len(values) - 1) / 2
    axes.plot(
        [first + step * index for index in range(len(values))], values, MARKER[side],
        color=COLOUR[side], ms=5, fillstyle="full" if form == "literal" else "none",
    )  # fmt: skip


def _positive(panel: Data) -> bool:
    """Whether the scale of the logarithm can show everything."""
    values: list[float | None] = []
    for column in panel["columns"].values():
        values += [*column["seeds"].values(), *(column["published"] or ())]
    return all(value is not None and value > 0 for value in values)


def _statistics_legend(axes: Axes) -> list[Any]:
    marks = [
        axes.plot([], [], MARKER[side], color=COLOUR[side], ms=5, label=f"{label}: one seed")[0]
        for side, label in SIDE_LABEL.items()
    ]
    label = f"published mean (Ajax: {PUBLISHED_AJAX})"
    line = axes.plot([], [], color="0.45", lw=1.2, label=label)[0]
    return [*marks, line, Patch(color=_BEHIND, label="published range of the seeds 0 to 2")]


def _arms(data: Data) -> Figure:
    figure, (left, right) = new_figure(11, 4.4, 2, sharey=False)
    for index, (name, (side, form)) in enumerate(_cells().items()):
        shift = _APART * (index - (len(CELLS) - 1) / 2)
        arm: Data = data["arms"][name]
        style = {"linestyle": _LINES[form], "marker": MARKER[side], "color": COLOUR[side]}
        for axes, curve in ((left, arm["entropy"]), (right, arm["evaluations"])):
            _band(axes, curve, shift, label=cell_name((side, form)), **style)
    left.set_ylabel("actor entropy ent/action/mean (nats)\nmean and range over seeds")
    right.set_ylabel("evaluation return\nmean and range over seeds")
    for axes in (left, right):
        axes.set_xlabel("thousand rows")
        thousands(axes)
        axes.set_xlim(left=0)
    figure.suptitle(data["title"])
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _band(axes: Axes, curve: Sequence[Sequence[float]], shift: float, **style: Any) -> None:
    """Means over seeds with the range of the seeds as bars."""
    rows = [point[0] + shift for point in curve]
    values = [point[1:] for point in curve]
    axes.errorbar(
        rows, [value[0] for value in values], bars(values), ms=4, capsize=2, lw=1.2,
        elinewidth=0.8, alpha=0.85, **style,
    )  # fmt: skip


DRAWINGS: dict[str, Callable[[Data], Figure]] = {"statistics": _statistics, "arms": _arms}

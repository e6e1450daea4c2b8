"""Figures as PNG and SVG, drawn from numbers that are saved and compared apart.

:func:`figure_data` says what every figure of a comparison shows, as plain JSON data;
:func:`draw_all` only draws such data.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from analysis import round4_figures, round5_figures
from analysis.canvas import COLOUR, MARKER, Data, bars, new_figure, save, thousands
from analysis.companions import CONFIDENCE, block_bootstrap_interval
from analysis.comparison import Comparison
from shared.protocol import CAP_RETURN, LATE_ROWS, MAX_EPISODE_STEPS, SIDE_LABEL, SIDES

#: Line styles that tell one side's seeds apart.
SEED_STYLES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
#: Checkpoints in a block of the bootstrap behind a seed's LATE interval: 2000 rows.
LATE_BLOCK = 5


def figure_data(comparison: Comparison) -> dict[str, Data]:
    """Figure name -> the numbers that it shows; only figures with something to show."""
    figures = {
        "curves": _curves_data(comparison),
        "entropy": entropy_data({comparison.title: comparison}),
        "late": _late_data(comparison),
    }
    return {name: data for name, data in figures.items() if data}


def _labels(comparison: Comparison) -> dict[str, str]:
    return {
        side: f"{SIDE_LABEL[side]}, {data.arm_label if data.seeds else 'none'}"
        for side, data in comparison.sides.items()
    }


def _curves_data(comparison: Comparison) -> Data:
    sides = {
        side: {
            str(each.seed): [[row.rows, row.mean] for row in each.evaluations]
            for each in data.seeds
        }
        for side, data in comparison.sides.items()
        if data.seeds
    }
    statistic = comparison.primary
    band = None
    if statistic is not None and statistic.rule is not None:
        rows, rule = statistic.rows, statistic.rule
        band = {
            "name": statistic.name,
            "rows": [rows[0], rows[-1]],
            "range": [rule.low, rule.high],
            "A": rule.A,
        }
    return {"title": comparison.title, "labels": _labels(comparison), "sides": sides, "rule": band}


def entropy_data(comparisons: Mapping[str, Comparison]) -> Data:
    """Entropy windows of one or several comparisons, a panel each."""
    panels: Data = {}
    for title, comparison in comparisons.items():
        rows = []
        for window in comparison.entropy:
            means = {
                side: table[window.rows]["ent/action/mean"][0]
                for side, table in comparison.windows.items()
                if table
            }
            row: Data = {"rows": window.rows, "overlap": window.overlap}
            for side in SIDES:
                row[side] = [means[side], *window.ranges[side]]
            rows.append(row)
        if rows:
            panels[title] = {"labels": _labels(comparison), "windows": rows}
    return {"panels": panels} if panels else {}


def _late_data(comparison: Comparison) -> Data:
    late = comparison.late
    if late is None or late.rule is None:
        return {}
    sides: dict[str, Data] = {}
    for side, values in late.values.items():
        data = comparison.sides[side]
        index = [data.grid.index(rows) for rows in LATE_ROWS]
        at_checkpoints = data.means()[:, index]
        seeds = [
            [seed, float(value), *block_bootstrap_interval(row, block=LATE_BLOCK)]
            for seed, value, row in zip(data.seed_numbers, values, at_checkpoints, strict=True)
        ]
        mean: list[float] = [float(np.mean(values))]
        if len(values) > 1:
            # Not from the distribution's own interval, which is NaN where there is no spread.
            half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * stats.sem(values))
            mean += [mean[0] - half, mean[0] + half]
        sides[side] = {"seeds": seeds, "mean": mean}
    return {
        "title": comparison.title,
        "labels": _labels(comparison),
        "sides": sides,
        "range": [late.rule.low, late.rule.high],
    }


def draw_all(
    figures: Mapping[str, Data], directory: Path, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Draw every figure in all ``formats`` into ``directory``; returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, data in figures.items():
        figure = DRAWINGS[name](data)
        # Lay out once, not once a file.
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
        figure.set_layout_engine(None)
        for suffix in formats:
            path = directory / f"{name}.{suffix}"
            save(figure, path)
            written.append(path)
    return written


def _curves(data: Data) -> Figure:
    present = [side for side in SIDES if data["sides"].get(side)]
    figure, all_axes = new_figure(5.3 * len(present), 4.6, len(present))
    for axes, side in zip(all_axes, present, strict=True):
        seeds = {seed: dict(map(tuple, points)) for seed, points in data["sides"][side].items()}
        for dashes, curve in zip(cycle(SEED_STYLES), seeds.values(), strict=False):
            axes.plot(
                list(curve), list(curve.values()), linestyle=dashes, color=COLOUR[side], lw=1.1,
                alpha=0.75,
            )  # fmt: skip
        _label_ends(axes, seeds, COLOUR[side])
        rows = sorted(set.intersection(*(set(curve) for curve in seeds.values())))
        mean = [float(np.mean([curve[at] for curve in seeds.values()])) for at in rows]
        axes.plot(
            rows, mean, "-", color="black", lw=2.2, marker=MARKER[side], ms=4,
            markevery=max(1, len(rows) // 15),
            label=f"{SIDE_LABEL[side]}: mean of {len(seeds)} seeds",
        )  # fmt: skip
        _draw_rule(axes, data["rule"])
        axes.axhline(
            CAP_RETURN, color="0.4", lw=0.9, ls=(0, (1, 3)), label=f"return {CAP_RETURN:.0f}"
        )
        axes.set(
            title=data["labels"][side],
            xlabel="thousand rows (transitions of all 16 environments)",
            ylim=(0, MAX_EPISODE_STEPS * 1.03),
        )
        thousands(axes)
    all_axes[0].set_ylabel("evaluation return (mean of an evaluation)")
    figure.suptitle(data["title"])
    entries = (axes.get_legend_handles_labels() for axes in all_axes)
    named = {label: handle for pair in entries for handle, label in zip(*pair, strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_rule(axes: Axes, rule: Data | None) -> None:
    if rule is None:
        return
    axes.fill_between(
        rule["rows"], *rule["range"], color=COLOUR["reference"], alpha=0.2, lw=0,
        label=f"{rule['name']} rule: range of the reference seeds",
    )  # fmt: skip
    axes.plot(
        rule["rows"], [rule["A"]] * 2, ":", color=COLOUR["ajax"], lw=2.6,
        label=f"{rule['name']} rule: A, mean of the Ajax seeds",
    )  # fmt: skip


def _label_ends(axes: Axes, seeds: Mapping[str, Mapping[int, float]], colour: str) -> None:
    """Name each seed beside the end of its curve, pushed apart so that no two names overlap."""
    apart, last = MAX_EPISODE_STEPS * 0.04, np.inf
    for seed, curve in sorted(seeds.items(), key=lambda item: -list(item[1].values())[-1]):
        end = max(curve)
        last = min(curve[end], last - apart)
        axes.annotate(
            f"s{seed}", (end, curve[end]), xytext=(end * 1.02, last), color=colour, fontsize=7.5,
            va="center", annotation_clip=False,
        )  # fmt: skip


def _entropy(data: Data) -> Figure:
    panels = data["panels"]
    figure, all_axes = new_figure(max(5.2, 3.9 * len(panels)), 3.9, len(panels))
    for axes, (title, panel) in zip(all_axes, panels.items(), strict=True):
        windows = panel["windows"]
        ends = np.array([window["rows"] for window in windows])
        step = float(np.min(np.diff(ends))) if len(ends) > 1 else 1.0
        for side, shift in (("reference", -0.13), ("ajax", 0.13)):
            table = [window[side] for window in windows]
            axes.errorbar(
                ends + shift * step, [mean for mean, _, _ in table], bars(table), fmt=MARKER[side],  # type: ignore[index]
                color=COLOUR[side], ms=4.5, capsize=2.5, lw=1.4, label=panel["labels"][side],  # type: ignore[index]
            )  # fmt: skip
        for index, window in enumerate(w for w in windows if not w["overlap"]):
            axes.axvspan(
                window["rows"] - step / 2, window["rows"] + step / 2, color="0.85", zorder=0,
                lw=0, label="seed ranges disjoint" if index == 0 else None,
            )  # fmt: skip
        axes.set(xlabel="window ends at row (thousands)", ylim=(0, 0.72))
        axes.set_title(title.replace(": ", ":\n", 1))
        thousands(axes)
        # A tick for each window: the sides' marks stand left and right of it.
        axes.set_xticks(ends)
        axes.set_xlim(ends[0] - step / 2, ends[-1] + step / 2)
        axes.legend(fontsize=7.5, loc="lower left")
    all_axes[0].set_ylabel("actor entropy ent/action/mean (nats)\nmean and range over seeds")
    return figure


def _late(data: Data) -> Figure:
    figure, (axes,) = new_figure(7.2, 4.2)
    axes.axhspan(*data["range"], color=COLOUR["reference"], alpha=0.13, lw=0,
                 label="rule: range of the reference seeds")  # fmt: skip
    position = 0
    ticks: list[tuple[float, str]] = []
    for side in SIDES:
        entry = data["sides"][side]
        for index, (seed, value, low, high) in enumerate(entry["seeds"]):
            axes.errorbar(
                position, value, bars([(value, low, high)]), fmt=MARKER[side], ms=5,
                color=COLOUR[side], capsize=3, lw=1.1, alpha=0.8,
                label=f"{data['labels'][side]}: one seed" if index == 0 else None,
            )  # fmt: skip
            ticks.append((position, f"s{seed}"))
            position += 1
        mean, *bounds = entry["mean"]
        error = bars([(mean, *bounds)]) if bounds else None
        axes.errorbar(
            position, mean, error, fmt=MARKER[side], ms=9, color=COLOUR[side], capsize=6, lw=2.6,
            label=f"{data['labels'][side]}: mean of {len(entry['seeds'])} seeds",
        )  # fmt: skip
        ticks.append((position, "mean"))
        position += 2
    axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
    axes.set(
        title=f"{data['title']}: LATE", ylabel="mean evaluation return, rows 12000 to 24000",
        xlabel="bars: 95 % intervals, not pre-registered (a seed: block bootstrap over its "
        "checkpoints;\nmean: t interval over seeds)",
        ylim=(0, MAX_EPISODE_STEPS),
    )  # fmt: skip
    figure.legend(loc="outside lower center", ncols=3, fontsize=7.5)
    return figure


DRAWINGS: dict[str, Callable[[Data], Figure]] = {
    "curves": _curves,
    "entropy": _entropy,
    "entropy_windows": _entropy,
    "late": _late,
    **round4_figures.DRAWINGS,
    **round5_figures.DRAWINGS,
}

"""What all figures share: colours, markers, the empty figure, its axes in thousands, its files.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, and sides differ in marker
too.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from shared.protocol import Side
from shared.records.files import write_atomic

# A matplotlibrc of the user's, in this directory say, is no part of a figure.
mpl.rcdefaults()

#: The numbers that a figure shows, as plain JSON data.
Data = dict[str, Any]

COLOUR: dict[Side, str] = {"reference": "#0072B2", "ajax": "#D55E00"}
MARKER: dict[Side, str] = {"reference": "o", "ajax": "s"}
#: Fixed, so that the same numbers give the same SVG.
_SETTINGS: Any = {
    "svg.hashsalt": "comparison",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.25,
}


def new_figure(
    width: float, height: float, columns: int = 1, *, sharey: bool = True
) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many inches, with its axes side by side."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, columns, sharey=sharey, squeeze=False)
    return figure, list(axes[0])


def save(figure: Figure, path: Path) -> None:
    """Write ``figure`` in the format of the file's suffix, in one step."""
    metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    content = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(content, format=path.suffix[1:], dpi=110, metadata=metadata)
    write_atomic(path, content.getvalue())


def thousands(axes: Axes) -> None:
    """Rows in thousands on the horizontal axis."""
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 4, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rows, _: f"{rows / 1000:g}"))


def bars(values: Sequence[Sequence[float]]) -> list[list[float]]:
    """Lengths of error bars below and above each (value, low, high).

    The mean of equal numbers may lie above the highest of them by a rounding error.
    """
    return [
        [max(0.0, value - low) for value, low, _ in values],
        [max(0.0, high - value) for value, _, high in values],
    ]

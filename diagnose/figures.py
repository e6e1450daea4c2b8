"""How figures of the diagnosis look and are saved."""

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from shared.protocol import Side
from shared.records.files import write_atomic

# A matplotlibrc of the user's, in this directory say, is no part of a figure.
mpl.rcdefaults()

#: Okabe and Ito's colours, which colour-blind readers can tell apart; sides differ in marker too.
COLOUR: dict[Side, str] = {"reference": "#0072B2", "ajax": "#D55E00"}
MARKER: dict[Side, str] = {"reference": "o", "ajax": "s"}
_FORMATS = {"png": {"Software": None}, "svg": {"Date": None}}
#: Fixed, so that the same numbers give the same SVG.
_SETTINGS: Any = {"svg.hashsalt": "diagnose", "svg.fonttype": "none", "font.size": 9}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, inches."""
    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg`` into ``directory``; returns the files."""
    written = []
    with mpl.rc_context(_SETTINGS):
        for kind, metadata in _FORMATS.items():
            content = io.BytesIO()
            figure.savefig(content, format=kind, metadata=metadata)
            written.append(directory / f"{name}.{kind}")
            write_atomic(written[-1], content.getvalue())
    return written

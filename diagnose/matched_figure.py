"""Figure of part ``matched``: a few metrics over updates, and when the metrics of a pair depart."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from diagnose.departures import METRICS
from diagnose.figures import COLOUR, new_figure
from diagnose.form_claims import Partings, Runs, cell_name
from shared.protocol import SIDE_LABEL, Form, Side

#: Metric -> whether its axis is logarithmic.
_SHOWN = {
    "ret/std": True,
    "val/std": True,
    "ent/action/mean": False,
    "vector_loss": True,
    "opt_grad_norm": True,
}
_LINE: dict[Form, str] = {"literal": "-", "exact": "--"}
#: Where the sides agree, the narrow line lies within the wide one.
_WIDTH: dict[Side, float] = {"reference": 3.5, "ajax": 1.0}


def draw(runs: Runs, parting: Partings) -> Figure:
    """Five metrics of every arm, and for every pair how many metrics have departed by an update."""
    figure = new_figure(11, 6)
    *panels, last = figure.subplots(2, 3).flat
    for panel, (metric, logarithmic) in zip(panels, _SHOWN.items(), strict=True):
        for (side, form), run in runs.items():
            values = run[metric]
            # What is exactly 0 has no place on a logarithmic axis.
            shown = np.where(values > 0, values, np.nan) if logarithmic else values
            panel.plot(
                np.arange(1, len(values) + 1),
                shown,
                _LINE[form],
                color=COLOUR[side],
                lw=_WIDTH[side],
                alpha=0.5 if side == "reference" else 1.0,
                label=f"{SIDE_LABEL[side]}, {form}",
            )
        panel.set(title=metric, yscale="log" if logarithmic else "linear", xlabel="update")
        panel.grid(alpha=0.25)
    updates = len(next(iter(runs.values()))[METRICS[0]])
    _draw_partings(last, parting, updates)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=4, fontsize=8)
    return figure


def _draw_partings(panel: Any, parting: Partings, updates: int) -> None:
    for (one, two), found in parting.items():
        at = np.sort([each.update for each in found])
        counts = [int((at <= update).sum()) for update in range(1, updates + 1)]
        name = f"{cell_name(one)} / {cell_name(two)}"
        panel.step(range(1, updates + 1), counts, where="post", lw=1, label=name)
    panel.set(
        title=f"metrics that have departed, of {len(METRICS)}",
        xlabel="update",
        xscale="log",
        ylim=(-2, len(METRICS) + 2),
    )
    panel.legend(fontsize=6.5)
    panel.grid(alpha=0.25)

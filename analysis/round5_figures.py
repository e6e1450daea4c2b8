"""Figure of round 5: each seed from literal to exact on both sides, and what is left."""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.canvas import COLOUR, MARKER, Data, new_figure
from analysis.round5 import Round5
from analysis.round5_rules import MARGIN
from shared.protocol import FORMS, SIDE_LABEL, SIDES

#: Estimate -> what the figure calls it.
_INTERVALS = {
    "effect, reference": "effect of the form,\nreference (95 %)",
    "effect, ajax": "effect of the form,\nAjax (95 %)",
    "effects, reference minus ajax": "effects, reference\nminus Ajax (90 %)",
    "rest, reference minus ajax": "left at the exact form,\nreference minus Ajax (95 %)",
    "rest for the margin": "the same (90 %)",
}


def figure_data(found: Round5) -> dict[str, Data]:
    """Figure name -> the numbers that it shows."""
    intervals = {
        name: [float(x) for x in (estimate.mean, estimate.low, estimate.high)]
        for name, (estimate, _) in found.estimates.items()
        if name in _INTERVALS
    }
    values = {
        side: {form: {str(s): v for s, v in found.values[side, form].items()} for form in FORMS}
        for side in SIDES
    }
    title = f"Round 5: {found.verdict.reading}"
    return {"pairs": {"title": title, "values": values, "intervals": intervals, "margin": MARGIN}}


def _pairs(data: Data) -> Figure:
    figure, (*panels, right) = new_figure(12, 4.4, 3, sharey=False)
    for side, axes in zip(SIDES, panels, strict=True):
        literal, exact = (data["values"][side][form] for form in FORMS)
        for seed, value in exact.items():
            pair = [literal[seed], value] if seed in literal else [value]
            axes.plot(
                [0, 1][-len(pair) :], pair, f"{MARKER[side]}-", color=COLOUR[side], ms=4, alpha=0.8
            )
        axes.set_title(f"{SIDE_LABEL[side]}: one line a seed")
        axes.set_xticks([0, 1], ["literal form", "exact form"])
        axes.set_xlim(-0.3, 1.3)
    panels[1].sharey(panels[0])
    panels[0].autoscale(axis="y")
    panels[0].set_ylabel("entropy of the policy at 4000 rows (nats)")
    _intervals(right, data)
    figure.suptitle(data["title"])
    return figure


def _intervals(axes: Axes, data: Data) -> None:
    axes.axvspan(-data["margin"], data["margin"], color="0.88", zorder=0)
    axes.axvline(0, color="0.4", lw=0.8)
    colours = [*(COLOUR[side] for side in SIDES), "0.2", "0.2", "0.2"]
    for height, (name, colour) in enumerate(zip(_INTERVALS, colours, strict=True)):
        mean, low, high = data["intervals"][name]
        axes.plot([low, high], [-height, -height], color=colour, lw=1.8)
        axes.plot([mean], [-height], "o", color=colour, ms=5)
    axes.set_yticks([-height for height in range(len(_INTERVALS))], [*_INTERVALS.values()])
    axes.set_title("means with intervals")
    axes.set_xlabel(f"difference of entropies (nats)\ngrey: within the margin of {data['margin']}")


DRAWINGS: dict[str, Callable[[Data], Figure]] = {"pairs": _pairs}

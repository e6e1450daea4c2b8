"""Figure of part ``expectation``: errors on mirrored logits, and how they follow the outer bins."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from diagnose.expectation_rows import Row
from diagnose.figures import COLOUR, MARKER, new_figure
from shared.protocol import SIDE_LABEL, SIDES

#: Drawn for an error of exactly 0, which a logarithm has no place for.
FLOOR = 1e-12
_FILL = {"literal": "full", "exact": "none"}


def draw(rows: Sequence[Row]) -> Figure:
    """Left: std of the error by case, compiled. Right: by the mass of the outer bins."""
    figure = new_figure(9.5, 4)
    left, right = figure.subplots(1, 2)
    compiled = [row for row in rows if row.mode == "jit"]
    cases = ["mirrored", "random/1e-4", "random/1"]
    for side in SIDES:
        for form, fill in _FILL.items():
            mine = [row for row in compiled if (row.side, row.form) == (side, form)]
            style = {
                "color": COLOUR[side],
                "marker": MARKER[side],
                "fillstyle": fill,
                "label": f"{SIDE_LABEL[side]}, {form}",
            }
            known = {row.case: max(row.error_std, FLOOR) for row in mine}
            shift = (-0.18, 0.18)[side == "ajax"] + (-0.05, 0.05)[form == "exact"]
            left.plot(
                [place + shift for place in range(len(cases))],
                [known.get(case, float("nan")) for case in cases],
                linestyle="",
                **style,
            )
            tilts = sorted((r.outer_mass, r.error_std) for r in mine if r.case.startswith("tilt/"))
            right.plot(
                [mass for mass, _ in tilts], [max(std, FLOOR) for _, std in tilts], lw=1, **style
            )
    left.set_xticks(range(len(cases)), cases)
    left.set(
        yscale="log", xlabel="logits", ylabel=f"std of the error against float64 ({FLOOR:g}: none)"
    )
    left.set_title("compiled, by case", fontsize=9)
    right.set(xscale="log", yscale="log", xlabel="probability of the bins beyond 1e6")
    right.set_title("mirrored logits, tilted away from the outer bins", fontsize=9)
    for axes in (left, right):
        axes.grid(alpha=0.25)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure

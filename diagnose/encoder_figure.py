"""Figure of part ``encoder``: both populations with seeds 0 to 2, and the outputs' differences."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from diagnose.encoder_measured import RUN_SEEDS, Output, Population
from diagnose.figures import COLOUR, MARKER, new_figure
from shared.probes.encoder_case import OUTPUTS, SHAKEN
from shared.protocol import SIDE_LABEL, SIDES

#: Drawn for no difference at all.
_FLOOR = 1e-9


def draw(population: Population, outputs: Sequence[Output]) -> Figure:
    """Left: distribution functions of the magnitude. Right: largest difference of each output."""
    figure = new_figure(9.5, 4)
    left, right = figure.subplots(1, 2)
    for side in SIDES:
        values = population.magnitudes[side]
        shares = (np.arange(len(values)) + 0.5) / len(values)
        label = f"{SIDE_LABEL[side]}, {len(values)} seeds"
        left.step(np.sort(values), shares, where="mid", color=COLOUR[side], label=label)
        left.plot(
            values[list(RUN_SEEDS)],
            [population.quantile(side, seed) for seed in RUN_SEEDS],
            *(MARKER[side],),
            color=COLOUR[side],
            label=f"{SIDE_LABEL[side]}, seeds 0 to 2",
        )
    left.set(xlabel="mean absolute output of the encoder at the start", ylabel="share of seeds")
    left.legend(fontsize=7.5)
    left.grid(alpha=0.25)
    shaken = [each for each in outputs if each.parameters == SHAKEN]
    places = range(len(shaken))
    differences = [max(each.difference, _FLOOR) for each in shaken]
    right.plot(differences, places, "o", color="#009E73", label="largest difference")
    tolerances = [each.tolerance for each in shaken]
    right.plot(tolerances, places, "|", color="black", label="tolerance")
    right.set_yticks(range(len(shaken)), [each.name for each in shaken], fontsize=7.5)
    right.set(xscale="log", xlim=(_FLOOR, 1e-4))
    right.set_xlabel("largest difference between the sides, equal parameters")
    right.legend(fontsize=7.5)
    right.set_ylim(len(OUTPUTS) - 0.5, -0.5)
    right.grid(alpha=0.25, axis="x")
    return figure

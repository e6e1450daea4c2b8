"""Part ``encoder``: do the encoders start alike, and do equal parameters give equal outputs?

The initial magnitude of the encoder's output over many seeds of each side, and the reference's
parameters put into Ajax's modules (protocol section 11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnose.encoder_figure import draw
from diagnose.encoder_measured import OUTPUT_TOLERANCE, RUN_SEEDS, Output, Population
from diagnose.findings import Claim, Finding, Table, number
from diagnose.sides import Answer, Sides
from shared.errors import UserError
from shared.probes.encoder_case import INITIAL, OUTPUTS, SHAKEN
from shared.probes.parameter_map import NETWORKS, PAIRS
from shared.protocol import SIDE_LABEL, SIDES, Side
from shared.records.arrays import below

PART = "encoder"
FEWEST_SEEDS = 200
#: Below it a difference of the populations counts as found.
LEVEL = 0.01
#: Largest relative difference of the means: three standard errors at the fewest seeds.
MEANS_APART = 0.02
#: Published: largest difference of the encoder's output from equal initial parameters.
ENCODER_TOLERANCE = 2e-6
#: With noise on every tensor no network's largest output is as small as this.
ZERO_THROUGHOUT = 0.1


@dataclass(frozen=True)
class Counts:
    """Optimised parameters of each side, and tensors of Ajax that were filled.

    ``unused``: those of the last column of both two-hot heads, kernel and bias.
    """

    reference: int
    ajax: int
    tensors: int
    unused: int


def run(sides: Sides, seeds: int, *, tiny: bool = False) -> Finding:
    """Ask both sides; ``seeds`` of each are initialised (see :func:`check_seeds`)."""
    check_seeds(seeds, tiny=tiny)
    given = {"seeds": np.arange(seeds), "tiny": np.asarray(tiny)}
    reference = sides.ask("reference", PART, given)
    ajax = sides.ask("ajax", PART, {**given, **reference.arrays})
    answers: dict[Side, Answer] = {"reference": reference, "ajax": ajax}
    magnitudes = {side: answers[side].arrays["magnitude"].astype(np.float64) for side in SIDES}
    ran = {side: dict(answers[side].ran) for side in SIDES}
    return judge(Population(magnitudes), compare(reference, ajax), count(reference, ajax), ran)


def check_seeds(seeds: int, *, tiny: bool) -> None:
    """Raise ``UserError`` for too few seeds; tiny widths are for trying it out, with any number."""
    fewest = len(RUN_SEEDS) if tiny else FEWEST_SEEDS
    if seeds < fewest:
        raise UserError(f"--seeds {seeds}: give at least {fewest}, or the tests can show little")


def compare(reference: Answer, ajax: Answer) -> list[Output]:
    """Every output of every set of parameters. Raises ``KeyError`` where a side lacks one."""
    found = []
    for parameters in (INITIAL, SHAKEN):
        for name in OUTPUTS:
            ours, theirs = (
                each.arrays[f"{parameters}/outputs/{name}"].astype(np.float64)
                for each in (reference, ajax)
            )
            if ours.shape != theirs.shape:
                raise ValueError(f"{name}: {ours.shape} of the reference, {theirs.shape} of Ajax")
            difference = float(np.abs(ours - theirs).max())
            found.append(Output(parameters, name, float(np.abs(ours).max()), difference))
    return found


def count(reference: Answer, ajax: Answer) -> Counts:
    """Parameters and tensors on both sides."""
    tensors = below(reference.arrays, f"{INITIAL}/parameters")
    optimised = sum(each.size for name, each in tensors.items() if name.startswith(NETWORKS))
    unused = sum(
        tensors[pair.reference][..., pair.kept :].size
        for pair in PAIRS
        if pair.kept is not None and pair.reference.startswith(NETWORKS)
    )
    found = ajax.arrays
    return Counts(optimised, int(found["parameters"]), int(found["tensors"]), unused)


def judge(
    population: Population, outputs: Sequence[Output], counts: Counts, ran: Mapping[Side, object]
) -> Finding:
    """The finding of these numbers; ``ran`` goes into its JSON."""
    return Finding(
        part=PART,
        title="The encoder at the start, and the networks on equal parameters",
        agreed="the sides' encoders start from one population and seeds 0 to 2 fall apart by "
        "chance; equal parameters give equal outputs in every network",
        claims=[*_of_population(population), *_of_outputs(outputs, counts)],
        tables=[_population_table(population), _outputs_table(outputs)],
        data=_data(population, outputs, counts) | {"ran": ran},
        draw=lambda: draw(population, outputs),
    )


def _of_population(population: Population) -> list[Claim]:
    means = ", ".join(f"{side} {mean:.4f}" for side, mean in population.means.items())
    run_seeds = f"{100 * population.run_seeds_apart:+.1f} %"
    return [
        Claim(
            f"the mean initial magnitudes agree within {100 * MEANS_APART:g} % (published: 0.4019 "
            "and 0.4025, within 0.6 %)",
            f"{means}: {100 * population.apart:+.2f} %",
            abs(population.apart) <= MEANS_APART,
            "a larger difference",
        ),
        Claim(
            f"neither test tells the populations apart (p at least {LEVEL})",
            f"Welch p {number(population.welch)}, Kolmogorov-Smirnov p "
            f"{number(population.kolmogorov)}",
            min(population.welch, population.kolmogorov) >= LEVEL,
            "a smaller p",
        ),
        Claim(
            f"seeds 0 to 2 are as far apart as chance puts them (share at least {LEVEL})",
            f"Ajax {run_seeds} against the reference; {100 * population.chance:.0f} % of random "
            "triples are as far apart",
            population.chance >= LEVEL,
            "a distance that chance hardly gives",
        ),
    ]


def _of_outputs(outputs: Sequence[Output], counts: Counts) -> list[Claim]:
    unused = counts.reference - counts.ajax
    encoder = next(each for each in outputs if (each.parameters, each.name) == (INITIAL, "encoder"))
    shaken = [each for each in outputs if each.parameters == SHAKEN]
    worst = max(outputs, key=lambda each: each.difference / each.tolerance)
    zero = [each.name for each in shaken if each.largest <= ZERO_THROUGHOUT]
    return [
        Claim(
            "every parameter tensor has its counterpart; only the unused column of the two-hot "
            "heads is left over",
            f"{counts.reference:,} against {counts.ajax:,} parameters, {counts.tensors} tensors",
            counts.tensors == len(PAIRS) and unused == counts.unused,
            "a tensor left over or missing",
        ),
        Claim(
            f"the reference's encoder put into Ajax gives its output within {ENCODER_TOLERANCE:g}",
            number(encoder.difference),
            encoder.difference <= ENCODER_TOLERANCE,
            "a larger difference",
        ),
        Claim(
            f"so does every network, within {OUTPUT_TOLERANCE:g} of its largest output, with noise "
            "on every tensor",
            f"nearest to it {worst.name}: {number(worst.difference)}, allowed "
            f"{number(worst.tolerance)}" + "".join(f"; {name} is zero throughout" for name in zero),
            all(each.agrees for each in outputs) and not zero,
            "a larger difference, or an output that is zero throughout",
        ),
    ]


def _population_table(population: Population) -> Table:
    rows = []
    for side in SIDES:
        values = population.magnitudes[side]
        seeds = [
            f"{values[seed]:.4f} ({100 * population.quantile(side, seed):.0f} %)"
            for seed in RUN_SEEDS
        ]
        spread = (f"{values.mean():.4f}", f"{values.std(ddof=1):.4f}")
        rows.append((SIDE_LABEL[side], str(len(values)), *spread, *seeds))
    return Table(
        "Mean absolute output of the encoder at the start; in brackets the quantile of a seed in "
        "its side's population.",
        ("side", "seeds", "mean", "std", *(f"seed {seed}" for seed in RUN_SEEDS)),
        rows,
    )


def _outputs_table(outputs: Sequence[Output]) -> Table:
    return Table(
        "The reference's parameters on both sides: as initialised, and with noise on every tensor.",
        ("parameters", "output", "what", "largest value", "largest difference"),
        [
            (
                *(each.parameters, each.name, OUTPUTS[each.name]),
                *(number(each.largest), number(each.difference)),
            )
            for each in outputs
        ],
    )


def _data(population: Population, outputs: Sequence[Output], counts: Counts) -> dict[str, Any]:
    return {
        "magnitudes": dict(population.magnitudes),
        "means": population.means,
        "welch_p": population.welch,
        "kolmogorov_smirnov_p": population.kolmogorov,
        "quantiles": {
            side: [population.quantile(side, seed) for seed in RUN_SEEDS] for side in SIDES
        },
        "run_seeds_apart": population.run_seeds_apart,
        "run_seeds_chance": population.chance,
        "outputs": [vars(each) for each in outputs],
        "parameters": vars(counts),
    }

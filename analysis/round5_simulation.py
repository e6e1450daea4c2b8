"""``python -m analysis.round5_simulation``: how often round 5's tests hold, and how it is read.

Simulated rounds go through the registered rules themselves (:mod:`analysis.round5_rules`). The
tables are those of prereg/ROUND5.md: shares of rounds in per cent, with the spread as seen and,
behind the slash, with the pessimistic one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast, get_args

import numpy as np

from analysis.round5_rules import (
    EXACT_SEEDS,
    PAIRED_SEEDS,
    BySide,
    Flag,
    Flags,
    Floats,
    Reading,
    flags,
    readings,
)
from shared.protocol import SIDES, Side

SIMULATED, SEED = 4_000, 5


@dataclass(frozen=True)
class Spread:
    """How much the seeds of a side differ: standard deviations, and a correlation."""

    #: Of the entropy at the exact form, and of the paired effect.
    exact: Mapping[Side, float]
    effect: Mapping[Side, float]
    #: Between both, as in round 4.
    correlation: Mapping[Side, float]


def _sides(reference: float, ajax: float) -> dict[Side, float]:
    return {"reference": reference, "ajax": ajax}


#: Pooled over the published rounds and round 4; and the largest that either of them shows.
SPREADS: tuple[Spread, Spread] = (
    Spread(_sides(0.0125, 0.0256), _sides(0.0079, 0.0116), _sides(-0.40, -0.98)),
    Spread(_sides(0.0152, 0.0355), _sides(0.0154, 0.0154), _sides(-0.40, -0.98)),
)


@dataclass(frozen=True)
class Scenario:
    """What is true: the effects of the form, and the rest (reference minus Ajax, exact form)."""

    name: str
    reference: float
    ajax: float
    rest: float = 0.0
    #: Student's t with 4 degrees of freedom, at the same standard deviation, instead of normal.
    heavy: bool = False


#: The scenarios at an edge of a hypothesis are named by what is then false.
SCENARIOS: tuple[Scenario, ...] = (
    Scenario("no effect", 0, 0),
    Scenario("half the effect seen", 0.032, 0.026),
    Scenario("effect as seen", 0.064, 0.052),
    Scenario("effect as seen", 0.064, 0.052, 0.0125),
    Scenario("effect as seen", 0.064, 0.052, 0.025),
    Scenario("effect as seen, a further cause", 0.064, 0.052, 0.05),
    Scenario("the same effect on both sides", 0.058, 0.058),
    Scenario("smaller effect", 0.051, 0.039),
    Scenario("edge of P1 and of refuted", 0.02, 0.02),
    Scenario("edge of P1 on one side", 0.02, 0.049),
    Scenario("edge of P2", 0.073, 0.043),
    Scenario("edge of P3", 0.064, 0.052, 0.03),
    Scenario("edge of P3, heavy tails", 0.064, 0.052, 0.03, heavy=True),
    Scenario("effect as seen, heavy tails", 0.064, 0.052, heavy=True),
)
#: Finished blocks -> seeds that then have both forms, and seeds that have the exact one.
CLOSED: Mapping[int, tuple[int, int]] = {5: (6, 6), 6: (6, 9), 7: (9, 9), 8: (9, 12)}
#: Shown as columns.
TESTS: tuple[Flag, ...] = ("P1", "P2", "P3", "rest", "refuted")
READINGS: tuple[Reading, ...] = get_args(Reading)


def simulate(
    truth: Scenario, spread: Spread, rounds: int, rng: np.random.Generator, pairs: int, seeds: int
) -> Flags:
    """Flags ``[rounds]`` of simulated rounds with ``pairs`` of ``seeds`` seeds in both forms."""

    def noise(count: int) -> Floats:
        shape = (rounds, count)
        return rng.standard_t(4, shape) / 2**0.5 if truth.heavy else rng.standard_normal(shape)

    literal: dict[Side, Floats] = {}
    exact: dict[Side, Floats] = {}
    for side in SIDES:
        level, own, share = noise(seeds), noise(pairs), spread.correlation[side]
        joint = share * level[:, :pairs] + (1 - share**2) ** 0.5 * own
        mean = truth.reference if side == "reference" else truth.ajax
        exact[side] = spread.exact[side] * level + (truth.rest if side == "reference" else 0.0)
        literal[side] = exact[side][:, :pairs] + mean + spread.effect[side] * joint
    return flags(cast(BySide, literal), cast(BySide, exact))


def shares(
    truth: Scenario, rounds: int, seed: int, pairs: int, seeds: int
) -> dict[str, tuple[float, ...]]:
    """Test or reading -> share of rounds with the spread as seen, and with the pessimistic one."""
    rng = np.random.default_rng(seed)
    runs = [simulate(truth, spread, rounds, rng, pairs, seeds) for spread in SPREADS]
    read = [readings(run) for run in runs]
    return {test: tuple(float(run[test].mean()) for run in runs) for test in TESTS} | {
        reading: tuple(float((words == reading).mean()) for words in read) for reading in READINGS
    }


def tables(rounds: int = SIMULATED, seed: int = SEED) -> Iterator[list[list[str]]]:
    """The tables as rows of cells: the tests, the readings, and a round that is closed early."""
    full = len(PAIRED_SEEDS), len(EXACT_SEEDS)
    found = [(truth, shares(truth, rounds, seed, *full)) for truth in SCENARIOS]
    for columns in (TESTS, READINGS):
        yield [["true state", "effects", "true rest", *columns]] + [
            [truth.name, f"{truth.reference:.3f}, {truth.ajax:.3f}", f"{truth.rest:.4f}"]
            + [_cell(of[column]) for column in columns]
            for truth, of in found
        ]
    rests = [truth for truth in SCENARIOS if truth.name == "effect as seen"]
    at = [f"{what}, rest {truth.rest:.4f}" for what in ("P3", "first reading") for truth in rests]
    rows = [["blocks", "pairs", "exact seeds", "P2", *at]]
    for blocks, size in CLOSED.items():
        closed = [shares(truth, rounds, seed, *size) for truth in rests]
        cells = [_cell(of[what]) for what in ("P3", READINGS[0]) for of in closed]
        rows.append([str(blocks), *map(str, size), _cell(closed[0]["P2"]), *cells])
    yield rows


def _cell(values: tuple[float, ...]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


if __name__ == "__main__":
    for table in tables():
        print(*("| " + " | ".join(row) + " |" for row in table), "", sep="\n")

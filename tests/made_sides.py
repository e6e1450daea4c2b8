"""Sides made in memory, for tests of the statistics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analysis.checks import Sizes
from analysis.comparison import ENTROPY, Comparison, compare_sides
from analysis.data import SeedData, SideData
from shared.protocol import Side, checkpoints, updates
from shared.records.rows import Episode, Evaluation, Record


def evaluation(rows: int, mean: float, *, seed: int = 0) -> Evaluation:
    return Evaluation(seed, rows, updates(rows), None, None, mean, mean, 1.0)


def record(rows: int, train: dict[str, float | None], **changes: Any) -> Record:
    values: dict[str, Any] = {
        "seed": 0,
        "rows": rows,
        "updates": updates(rows),
        "side": "ajax",
        "eval_mean": 100.0,
        "eval_len_mean": None,
        "eval_returns": None,
        "s2_logged": None,
        "train": train,
        "train_raw": None,
        "retnorm": None,
    }
    return Record(**values | changes)


def episode(worker: int, row_last: int, score: float = 10.0) -> Episode:
    return Episode(0, worker, row_last, int(score), score, True)


def side_of_means(
    side: Side,
    means: ArrayLike,
    grid: Sequence[int],
    *,
    entropy: ArrayLike | None = None,
    seeds: Sequence[int] | None = None,
) -> SideData:
    """One side with evaluation means ``[seeds, checkpoints]`` at ``grid``.

    With ``entropy`` (same shape) each checkpoint also has a record with that mean entropy.
    """
    table = np.asarray(means, dtype=float)
    numbers = range(len(table)) if seeds is None else seeds
    entropies = None if entropy is None else np.asarray(entropy, dtype=float)
    data = []
    for index, seed in enumerate(numbers):
        evaluations = tuple(
            evaluation(rows, float(mean), seed=seed)
            for rows, mean in zip(grid, table[index], strict=True)
        )
        records = (
            None
            if entropies is None
            else tuple(
                record(rows, {ENTROPY: float(value)}, seed=seed, side=side)
                for rows, value in zip(grid, entropies[index], strict=True)
            )
        )
        data.append(SeedData(seed, evaluations, records))
    return SideData(side, "made", tuple(data))


def compare_means(
    reference: ArrayLike,
    ajax: ArrayLike,
    *,
    round_number: int | None = 1,
    every: int = 2_000,
    smoke: bool = False,
    entropy: tuple[ArrayLike, ArrayLike] | None = None,
) -> Comparison:
    """A comparison of two tables of evaluation means ``[seeds, checkpoints]``."""
    rows = every * np.asarray(reference, dtype=float).shape[1]
    grid = checkpoints(rows, every)
    entropies = entropy or (None, None)
    sides = [
        side_of_means(side, means, grid, entropy=values)
        for side, means, values in zip(
            ("reference", "ajax"), (reference, ajax), entropies, strict=True
        )
    ]
    sizes = Sizes(sides[0].seed_numbers, rows, every, 10, smoke)
    return compare_sides("made", round_number, sizes, sides[0], sides[1], smoke=smoke)

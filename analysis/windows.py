"""Window means of training metrics, per seed and as mean and range over seeds.

A window covers the updates between two checkpoints and is named by the rows at which it ends.
Means of joined windows are weighted by the number of metric samples (protocol section 5).
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from analysis.data import SideData, WindowTable
from shared.metrics import DERIVED_SCALE, EXACT_SCALE, derived_scale
from shared.records import Record

#: Rows of a window in every published table.
STANDARD_WIDTH = 2_000

#: Window's last row -> metric -> value.
SeedWindows = dict[int, dict[str, float]]


def window_width(every: int) -> int:
    """Rows of a window: 2000 where checkpoints divide it, else the distance of checkpoints."""
    return STANDARD_WIDTH if STANDARD_WIDTH % every == 0 else every


def seed_windows(records: Sequence[Record], width: int) -> SeedWindows:
    """Window means of one seed over windows of ``width`` rows.

    A metric without a finite sample in a window is left out of it; so is the last window where
    the records end inside it.
    """
    groups: dict[int, list[tuple[float, Record]]] = {}
    previous = 0
    for record in records:
        # Without a recorded count, the updates since the last record stand for it.
        samples = record.window_samples
        weight = record.updates - previous if samples is None else samples
        previous = record.updates
        groups.setdefault(-(-record.rows // width) * width, []).append((float(weight), record))
    last = records[-1].rows if records else 0
    return {end: _joined(group) for end, group in groups.items() if end <= last}


def _joined(group: Sequence[tuple[float, Record]]) -> dict[str, float]:
    names = sorted({name for _, record in group for name in record.train})
    values = {
        name: _weighted((weight, record.train.get(name)) for weight, record in group)
        for name in names
    }
    found = {name: value for name, value in values.items() if value is not None}
    for name, scale in (
        (DERIVED_SCALE, derived_scale(found)),
        (EXACT_SCALE, (group[-1][1].retnorm or {}).get("scale")),
    ):
        if scale is not None and math.isfinite(scale):
            found[name] = scale
    return found


def _weighted(samples: Iterable[tuple[float, float | None]]) -> float | None:
    usable = [(weight, value) for weight, value in samples if value is not None and weight > 0]
    if not usable:
        return None
    if any(not math.isfinite(value) for _, value in usable):
        return None
    if len(usable) == 1:
        return usable[0][1]  # exactly as recorded
    weights, values = zip(*usable, strict=True)
    return float(np.average(values, weights=weights))


def side_windows(side: SideData, width: int) -> dict[int, SeedWindows] | None:
    """Seed -> its windows; ``None`` where a seed has no records."""
    windows = {
        each.seed: seed_windows(each.records, width)
        for each in side.seeds
        if each.records is not None
    }
    return windows if windows and len(windows) == len(side.seeds) else None


def window_table(side: SideData, width: int) -> WindowTable | None:
    """(mean, lowest, highest seed) per window and metric, recomputed from records or carried.

    A metric that a seed lacks in a window is left out of that window.
    """
    windows = side_windows(side, width)
    if windows is None:
        return side.carried_windows
    per_seed = list(windows.values())
    table: dict[int, dict[str, tuple[float, float, float]]] = {}
    for end in sorted(set.intersection(*(set(each) for each in per_seed))):
        shared_names = set.intersection(*(set(each[end]) for each in per_seed))
        table[end] = {}
        for name in sorted(shared_names):
            values = [each[end][name] for each in per_seed]
            table[end][name] = (float(np.mean(values)), min(values), max(values))
    return table


def metric_at(windows: dict[int, SeedWindows], end: int, name: str) -> list[float] | None:
    """Values over seeds of one metric in one window; ``None`` where a seed lacks it."""
    values = [each.get(end, {}).get(name) for each in windows.values()]
    found = [value for value in values if value is not None]
    return found if len(found) == len(values) else None

"""Window means of training metrics, per seed and as mean and range over seeds.

A window covers the updates between two checkpoints and is named by the rows at which it ends.
Means of joined windows are weighted by the number of metric samples (protocol section 5).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from analysis.data import SideData, WindowTable
from shared.metrics import DERIVED_SCALE, EXACT_SCALE, derived_scale
from shared.protocol import WINDOW_ROWS
from shared.records.rows import Record

#: Window's last row -> metric -> value.
SeedWindows = dict[int, dict[str, float]]


def window_width(every: int) -> int:
    """Rows of a window: 2000 where checkpoints divide it, else the distance of checkpoints."""
    return WINDOW_ROWS if WINDOW_ROWS % every == 0 else every


def common_width(sides: Iterable[SideData], every: int) -> int:
    """Rows of a window that the records of all seeds divide; by ``every`` where there are none."""
    steps = {
        min(after - before for before, after in pairwise((0, *(row.rows for row in each.records))))
        for side in sides
        for each in side.seeds
        if each.records
    }
    return math.lcm(*map(window_width, steps or {every}))


#: Records of one window, each with the number of its metric samples; and their means.
_Group = Sequence[tuple[float, Record]]
_Sampled = Sequence[tuple[float, Mapping[str, float | None]]]


def seed_windows(records: Sequence[Record], width: int) -> SeedWindows:
    """Window means of one seed over windows of ``width`` rows.

    A metric without a finite sample in a window is left out of it; so is the last window where
    the records end inside it.
    """
    return {end: _joined(group) for end, group in _groups(records, width).items()}


def seed_value(records: Sequence[Record], width: int, end: int, name: str) -> float:
    """One metric of one seed in the window of ``width`` rows that ends at ``end``.

    NaN where the window is not there, and where any of its means is not a finite number: records
    have null for these, and :func:`seed_windows` averages the others.
    """
    sampled = _sampled(_groups(records, width).get(end, []))
    whole = all(train.get(name) is not None for _, train in sampled)
    value = _weighted(sampled, name) if whole else None
    return math.nan if value is None else value


def _groups(records: Sequence[Record], width: int) -> dict[int, _Group]:
    """Window's last row -> its records, of the windows that the records fill.

    A record is about the rows since the one before it: a window needs one that ends where it
    begins, so that none reaches into it from before.
    """
    groups: dict[int, list[tuple[float, Record]]] = {}
    previous = 0
    for record in records:
        # Without a recorded count, the updates since the last record stand for it.
        samples = record.window_samples
        weight = record.updates - previous if samples is None else samples
        previous = record.updates
        groups.setdefault(-(-record.rows // width) * width, []).append((float(weight), record))
    begun = {0, *(record.rows for record in records)}
    return {end: group for end, group in groups.items() if end - width in begun and end in begun}


def _sampled(group: _Group) -> _Sampled:
    return [(weight, record.train) for weight, record in group if weight > 0]


def _joined(group: _Group) -> dict[str, float]:
    sampled = _sampled(group)
    names = set[str]().union(*(train for _, train in sampled))
    values = {name: _weighted(sampled, name) for name in names}
    found = {name: value for name, value in values.items() if value is not None}
    for name, scale in (
        (DERIVED_SCALE, derived_scale(found)),
        (EXACT_SCALE, (group[-1][1].retnorm or {}).get("scale")),
    ):
        if scale is not None and math.isfinite(scale):
            found[name] = scale
    return found


def _weighted(sampled: _Sampled, name: str) -> float | None:
    """Mean of one metric; ``None`` without a sample, or where a sample is not finite.

    A loop over two to five numbers: numpy's overhead per call would be ten times its cost.
    """
    total = weights = 0.0
    only: float | None = None
    for weight, train in sampled:
        value = train.get(name)
        if value is not None:
            only = None if weights else value
            total += weight * value
            weights += weight
    if not weights or not math.isfinite(total):
        return None
    return total / weights if only is None else only  # one sample: exactly as recorded


def side_windows(side: SideData, width: int) -> dict[int, SeedWindows] | None:
    """Seed -> its windows; ``None`` where a seed has no records."""
    windows = {
        each.seed: seed_windows(each.records, width)
        for each in side.seeds
        if each.records is not None
    }
    return windows if windows and len(windows) == len(side.seeds) else None


def window_table(windows: Mapping[int, SeedWindows]) -> WindowTable:
    """(mean, lowest, highest seed) per window and metric; ``windows`` maps seeds to theirs.

    A metric that a seed lacks in a window is left out of that window.
    """
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

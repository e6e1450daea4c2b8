"""What the statistics work on: the recorded figures of one side, wherever they came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from analysis.statistics import Floats
from shared.errors import printable
from shared.protocol import Side
from shared.records.rows import Episode, Evaluation, Record

#: Window ending at rows -> metric (Ajax's name) -> (mean over seeds, lowest seed, highest seed).
WindowTable = Mapping[int, Mapping[str, tuple[float, float, float]]]


@dataclass(frozen=True)
class Missing:
    """A file that is not there (or not complete), and the statistics that it puts out of reach."""

    file: str
    statistics: str

    def __str__(self) -> str:
        return f"{self.statistics}: needs {self.file}"


@dataclass(frozen=True)
class SeedData:
    """One seed of one side; ``None`` where the source has no such file."""

    seed: int
    evaluations: tuple[Evaluation, ...]
    records: tuple[Record, ...] | None = None
    episodes: tuple[Episode, ...] | None = None
    #: S2 at every checkpoint as published, where raw episodes are not available.
    carried_s2: tuple[float | None, ...] | None = None

    @property
    def grid(self) -> tuple[int, ...]:
        """Checkpoints (rows) of its evaluations, ascending."""
        return tuple(row.rows for row in self.evaluations)


@dataclass(frozen=True)
class SideData:
    """All seeds of one side. ``source`` is a location under a named root, or ``published``."""

    side: Side
    source: str
    seeds: tuple[SeedData, ...]
    arm: str | None = None
    #: Window means as published, where raw records are not available.
    carried_windows: WindowTable | None = None
    missing: tuple[Missing, ...] = field(default=())

    @property
    def arm_label(self) -> str:
        """The arm in words: what ran is not guessed where nothing recorded it."""
        return printable(self.arm or "arm not recorded")

    @property
    def published(self) -> bool:
        """Whether these are the published figures rather than the records of a run."""
        return self.source.startswith("published")

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds, ascending."""
        return tuple(each.seed for each in self.seeds)

    @property
    def grid(self) -> tuple[int, ...]:
        """Checkpoints (rows) that every seed has, ascending."""
        grids = [set(each.grid) for each in self.seeds]
        return tuple(sorted(set.intersection(*grids))) if grids else ()

    def means(self) -> Floats:
        """Evaluation means ``[seeds, checkpoints]`` at :attr:`grid`."""
        wanted = self.grid
        table = [{row.rows: row.mean for row in each.evaluations} for each in self.seeds]
        return np.array([[row[at] for at in wanted] for row in table], dtype=np.float64).reshape(
            len(table), len(wanted)
        )

"""What the bench measured on this machine: its file, and how fast processes are by it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from launch.plan import COSTS
from launch.ratio import Ratio
from launch.schedule import Mix
from shared.errors import RecordError
from shared.files import read_json_object, write_json
from shared.protocol import SIDES, Side

FORMAT = 1
#: Key of the file that holds what follows from the others (``launch.limits``).
LIMITS = "limits"
#: Below the repository; one file per machine, environment and widths.
DIRECTORY = Path(".work") / "bench"


@dataclass(frozen=True)
class Start:
    """Seconds from the start of a process to its first update: compiling, and from the cache.

    ``warm_s`` is ``None`` where that was not measured, as Ajax's at tiny widths once.
    """

    cold_s: float
    warm_s: float | None


@dataclass(frozen=True)
class Together:
    """Seconds per update of processes that run side by side; ``None`` for a side without any.

    A reference process trains one seed, the Ajax process :attr:`Bench.ajax_seeds` at once.
    """

    reference: int
    ajax: int
    reference_s: float | None
    ajax_s: float | None

    def update_s(self, side: Side) -> float | None:
        """Seconds per update of the processes of ``side``."""
        return self.reference_s if side == "reference" else self.ajax_s


@dataclass(frozen=True)
class Observers:
    """What observing costs the reference, with every observer at work at every tick.

    ``share``: time inside observers, evaluations apart, over training time. ``ratio``: observed
    to bare ticks in turn, evaluations apart. ``evaluation_s``: seconds of an evaluation.
    """

    share: float
    ratio: Ratio
    evaluation_s: float


@dataclass(frozen=True)
class Bench:
    """One bench. ``peak_bytes`` is the most memory that a process of a side held."""

    measured: str
    system: str
    cores: int
    tiny: bool
    ajax_seeds: int
    start: Mapping[Side, Start]
    together: tuple[Together, ...]
    observers: Observers
    peak_bytes: Mapping[Side, int]

    @property
    def most(self) -> int:
        """The most processes that were measured side by side."""
        return max(each.reference + each.ajax for each in self.together)

    def update_s(self, side: Side, seeds: int, mix: Mix) -> float:
        """As :class:`launch.schedule.Speed`: from the largest measured mix within ``mix``.

        More processes than cores share them evenly. Ajax's time grows with its seeds.
        """
        found = max(
            (
                each
                for each in self.together
                if each.update_s(side) is not None
                and all(getattr(each, name) <= mix[name] for name in SIDES)
            ),
            key=lambda each: each.reference + each.ajax,
        )
        measured, running = found.reference + found.ajax, sum(mix.values())
        crowded = max(1.0, running / max(self.cores, measured))
        each_seed = seeds / self.ajax_seeds if side == "ajax" else 1.0
        return (found.update_s(side) or 0.0) * each_seed * crowded

    def start_s(self, side: Side, *, warm: bool) -> float:
        """Seconds of start-up of a process of ``side``."""
        start = self.start[side]
        return start.warm_s if warm and start.warm_s is not None else start.cold_s


@dataclass(frozen=True)
class Published:
    """Stands in for a bench: the published figures, of two cores and two processes at a time."""

    tiny: bool

    def update_s(self, side: Side, seeds: int, mix: Mix) -> float:  # noqa: ARG002
        """As :class:`launch.schedule.Speed`, whatever runs beside."""
        return COSTS[side, self.tiny].update_s * seeds

    def start_s(self, side: Side, *, warm: bool) -> float:
        """Seconds of start-up of a process of ``side``."""
        cost = COSTS[side, self.tiny]
        return cost.warm_s if warm else cost.start_s


def bench_path(repo: Path, cpu: str, keys: Sequence[str], cores: int, *, tiny: bool) -> Path:
    """The file for this CPU, these environments (their cache keys) and this many cores."""
    digest = hashlib.sha256("\n".join((cpu, *keys)).encode()).hexdigest()[:8]
    return repo / DIRECTORY / f"{cores}cores-{digest}{'-tiny' if tiny else ''}.json"


def save(path: Path, bench: Bench, limits: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write the bench and what was said of its ``limits``; the one before it is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"format": FORMAT, **asdict(bench), LIMITS: list(limits)})


def load(path: Path) -> Bench:
    """Read a bench. Raises :class:`RecordError` for a file that holds none."""
    content = read_json_object(path)
    if content.pop("format", None) != FORMAT:
        raise RecordError(f"{path}: is no bench of format {FORMAT}; run nox -s bench again")
    content.pop(LIMITS, None)
    try:
        return _decode(content)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise RecordError(f"{path}: {error} is wrong or missing; run nox -s bench again") from None


def _decode(content: dict[str, Any]) -> Bench:
    observers = content["observers"]
    ratio = Ratio(**_numbers(observers["ratio"]))
    starts = {side: _numbers(content["start"][side]) for side in SIDES}
    together = tuple(Together(**_numbers(each)) for each in content["together"])
    for side in SIDES:
        float(starts[side]["cold_s"])  # of the two it is the one that is always known
        alone = (each for each in together if each.reference + each.ajax == 1)
        if not any(each.update_s(side) for each in alone):
            raise ValueError(f"together, {side} alone")
    return replace(
        Bench(**content),
        cores=int(content["cores"]),
        ajax_seeds=int(content["ajax_seeds"]),
        start={side: Start(**starts[side]) for side in SIDES},
        together=together,
        observers=Observers(**_numbers({**observers, "ratio": 0.0}) | {"ratio": ratio}),
        peak_bytes={side: int(content["peak_bytes"][side]) for side in SIDES},
    )


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """``row``, whose values are numbers or null. Raises ``ValueError`` for one that is not."""
    for name, value in row.items():
        if value is not None and not isinstance(value, int | float):
            raise ValueError(f"{name} {value!r}")
    return dict(row)

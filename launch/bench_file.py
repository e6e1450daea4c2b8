"""The bench's file: what was measured on this machine, and how fast processes are by it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launch.ratio import Ratio
from launch.schedule import Mix
from shared.errors import RecordError
from shared.protocol import SIDES, Side
from shared.records.files import read_json_object, write_json

FORMAT = 1
#: Below the repository; one file per machine, environment and widths.
DIRECTORY = Path(".work") / "bench"


@dataclass(frozen=True)
class StartTimes:
    """Seconds from the start of a process to its first update: compiling, and from the cache.

    ``warm_s`` is ``None`` where that was not measured, as Ajax's at tiny widths once.
    """

    cold_s: float
    warm_s: float | None


@dataclass(frozen=True)
class MixSpeed:
    """Seconds per update of processes that run side by side; ``None`` for a side without any.

    A reference process trains one seed, the Ajax process :attr:`Bench.ajax_seeds` at once.
    """

    reference: int
    ajax: int
    reference_s: float | None
    ajax_s: float | None

    @property
    def processes(self) -> int:
        """Processes of both sides together."""
        return self.reference + self.ajax

    def update_s(self, side: Side) -> float | None:
        """Seconds per update of the processes of ``side``."""
        return self.reference_s if side == "reference" else self.ajax_s


@dataclass(frozen=True)
class ObserverCosts:
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
    start: Mapping[Side, StartTimes]
    together: tuple[MixSpeed, ...]
    observers: ObserverCosts
    peak_bytes: Mapping[Side, int]

    @property
    def most(self) -> int:
        """The most processes that were measured side by side."""
        return max(mix.processes for mix in self.together)

    def update_s(self, side: Side, seeds: int, mix: Mix) -> float:
        """As :class:`launch.schedule.Speed`: from the largest measured mix within ``mix``.

        More processes than cores share them evenly. Ajax's time grows with its seeds.
        """
        within = [
            measured
            for measured in self.together
            if measured.update_s(side) is not None
            and all(getattr(measured, name) <= mix[name] for name in SIDES)
        ]
        nearest = max(within, key=lambda measured: measured.processes)
        crowded = max(1.0, sum(mix.values()) / max(self.cores, nearest.processes))
        of_seeds = seeds / self.ajax_seeds if side == "ajax" else 1.0
        return (nearest.update_s(side) or 0.0) * of_seeds * crowded

    def start_s(self, side: Side, *, warm: bool) -> float:
        """Seconds of start-up of a process of ``side``."""
        start = self.start[side]
        return start.warm_s if warm and start.warm_s is not None else start.cold_s


def bench_path(repo: Path, cpu: str, keys: Sequence[str], cores: int, *, tiny: bool) -> Path:
    """The file for this CPU, these environments (their cache keys) and this many cores."""
    digest = hashlib.sha256("\n".join((cpu, *keys)).encode()).hexdigest()[:8]
    return repo / DIRECTORY / f"{cores}cores-{digest}{'-tiny' if tiny else ''}.json"


def save(path: Path, bench: Bench, limits: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write the bench and what was said of its ``limits``; the one before it is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"format": FORMAT, **asdict(bench), "limits": list(limits)})


def load(path: Path) -> Bench:
    """Read a bench. Raises :class:`RecordError` for a file that holds none."""
    content = read_json_object(path)
    if content.get("format") != FORMAT:
        raise RecordError(f"{path}: is no bench of format {FORMAT}; run nox -s bench again")
    try:
        return _decode(content)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"{path}: {error} is wrong or missing; run nox -s bench again") from None


def _decode(content: Mapping[str, Any]) -> Bench:
    start, observers = content["start"], content["observers"]
    bench = Bench(
        measured=str(content["measured"]),
        system=str(content["system"]),
        cores=int(content["cores"]),
        tiny=bool(content["tiny"]),
        ajax_seeds=int(content["ajax_seeds"]),
        start={
            side: StartTimes(float(start[side]["cold_s"]), _seconds(start[side]["warm_s"]))
            for side in SIDES
        },
        together=tuple(
            MixSpeed(
                *(int(mix[side]) for side in SIDES),
                *(_seconds(mix[f"{side}_s"]) for side in SIDES),
            )
            for mix in content["together"]
        ),
        observers=ObserverCosts(
            share=float(observers["share"]),
            ratio=Ratio(**observers["ratio"]),
            evaluation_s=float(observers["evaluation_s"]),
        ),
        peak_bytes={side: int(content["peak_bytes"][side]) for side in SIDES},
    )
    for side in SIDES:
        if not any(mix.processes == 1 and mix.update_s(side) for mix in bench.together):
            raise ValueError(f"together, {side} alone")
    return bench


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)

"""Typed rows of a run's JSON-lines files (protocol section 7), with their reader and writer.

Every row that this project writes carries ``"format": FORMAT``. Rows of the published rounds
carry none and are format 0; :data:`MIGRATIONS` lifts a row one format at a time. A value that may
be null may be absent.
"""

import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from shared.errors import RecordError, shown
from shared.protocol import MAX_EPISODE_STEPS, SIDE_KEY, SIDE_LABEL, SIDES, Side
from shared.records.files import plain
from shared.records.jsonl import read_jsonl

FORMAT = 1
#: The sides compute in float32: no number of theirs is larger. Sums and squares of such numbers
#: are finite in float64.
LARGEST = 3.4028235e38
#: Whole numbers up to here are exact as float64, as which JSON's other readers take them.
LARGEST_COUNT = 2**53

Migration = Callable[[dict[str, Any]], dict[str, Any]]


def _from_published(row: dict[str, Any]) -> dict[str, Any]:
    """Format 0 -> 1: the published rounds have other names for two things of a window.

    Python wrote NaN there for what is null. Rows from elsewhere may not count updates.
    """
    row = {"updates": 0, **plain(row)}
    if "train" not in row:
        return row
    lifted = {"window_samples": row.get("n_metric_samples"), **row}
    if isinstance(bounds := row.get("retnorm"), dict):
        lifted["retnorm"] = {_PUBLISHED_BOUNDS.get(key, key): bounds[key] for key in bounds}
    return lifted


_PUBLISHED_BOUNDS = {"lo": "low", "hi": "high"}


#: ``MIGRATIONS[n]`` turns a row of format n into one of format n + 1.
MIGRATIONS: dict[int, Migration] = {0: _from_published}


@dataclass(frozen=True)
class Row:
    """Base of the typed rows: conversion to and from JSON objects."""

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object of the current format."""
        return {"format": FORMAT, **asdict(self)}


@dataclass(frozen=True)
class Checkpoint(Row):
    """What every line of ``evals.jsonl`` and ``records.jsonl`` begins with.

    ``arm`` and ``round`` are names of the protocol's tables; lines of older runs lack both.
    """

    seed: int
    rows: int
    updates: int
    arm: str | None = field(default=None, kw_only=True)
    round: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Evaluation(Checkpoint):
    """One line of ``evals.jsonl``: an evaluation of the sampled policy at ``rows``.

    ``returns`` and ``lengths`` hold one entry per episode, or ``None`` for Ajax, which logs means
    only. ``wall_s`` is seconds since the process began. ``side`` is as in :class:`Record`.
    """

    returns: tuple[float, ...] | None
    lengths: tuple[int, ...] | None
    mean: float
    len_mean: float | None = None
    wall_s: float | None = None
    side: str | None = None


@dataclass(frozen=True)
class Record(Checkpoint):
    """One line of ``records.jsonl``: the window that ends at ``rows``.

    ``train`` holds window means under Ajax's metric names, ``train_raw`` under the side's own;
    a mean that is not a finite number is ``None``. ``side`` is ``ref`` or ``ajax``.
    ``window_samples`` is the number of metric samples that the means average; ``None`` where it
    was not recorded. The reference's metrics come one update late: its first window with updates
    has one sample fewer than updates. ``retnorm`` holds the return normaliser's ``low``, ``high``
    and ``scale`` at ``rows``.
    """

    side: str
    eval_mean: float
    eval_len_mean: float | None
    eval_returns: tuple[float, ...] | None
    s2_logged: float | None
    train: dict[str, float | None]
    train_raw: dict[str, float | None] | None
    retnorm: dict[str, float | None] | None
    wall_s: float | None = None
    window_samples: int | None = None


@dataclass(frozen=True)
class Episode(Row):
    """One line of ``episodes.jsonl``: a finished training episode of environment ``worker``.

    ``row_last`` is the 0-based index, among that environment's rows, of the episode's last row.
    Lines of older runs lack ``side``, ``arm`` and ``round``.
    """

    seed: int
    worker: int
    row_last: int
    length: int
    score: float
    terminal: bool
    side: str | None = None
    arm: str | None = None
    round: str | None = None


@dataclass(frozen=True)
class Progress(Row):
    """One line of ``progress.jsonl``: ``wall_s`` seconds after the process began."""

    rows: int
    updates: int
    wall_s: float


R = TypeVar("R", bound=Row)
C = TypeVar("C", bound=Checkpoint)


@dataclass(frozen=True)
class Place:
    """Whose rows a file must hold, by where it lies; ``None`` where that is not on record."""

    side: Side
    seed: int
    arm: str | None = None
    round: str | None = None

    def __str__(self) -> str:
        parts = [f"{SIDE_LABEL[self.side]} seed {self.seed}"]
        parts += [f"arm {self.arm}"] if self.arm is not None else []
        parts += [f"round {self.round}"] if self.round is not None else []
        return ", ".join(parts)

    def fault(self, row: Mapping[str, Any]) -> str | None:
        """What says that ``row``, as it was read, is another's; ``None`` where nothing does."""
        # Only the reference lists the returns of an evaluation (protocol section 7).
        own = row.get("format") == FORMAT and "side" not in row
        if self.side == "ajax" and own and row.get("returns"):
            return "it lists returns, as the reference's do"
        for key in ("side", "seed", "arm", "round"):
            wanted, found = getattr(self, key), row.get(key)
            if key == "side":
                found = _SIDE_OF_KEY.get(str(found), found)
            if None not in (wanted, found) and found != wanted and str(found) != str(wanted):
                return f"its {key} is {shown(row[key])}"
        return None


_SIDE_OF_KEY: dict[str, Side] = {SIDE_KEY[side]: side for side in SIDES}


def read_rows(path: Path, kind: type[R], place: Place | None = None) -> list[R]:
    """All rows of a JSON-lines file, migrated and checked.

    Raises :class:`RecordError`, also at a row that is not of ``place``.
    """
    return [row for _, row in _numbered(path, kind, place)]


def _numbered(path: Path, kind: type[R], place: Place | None) -> Iterator[tuple[int, R]]:
    known = _fields(kind)
    for number, row in read_jsonl(path):
        where = f"{path}:{number}"
        if place is not None and (fault := place.fault(row)):
            raise RecordError(
                f"{where}: not a row of {place}: {fault}; put the file back that was written there"
            )
        yield number, _decode(kind, known, _migrate(row, where), where)


def read_checkpoints(path: Path, kind: type[C], place: Place) -> list[C]:
    """Rows of ``evals.jsonl`` or ``records.jsonl`` of ``place``, in ascending order of ``rows``.

    Raises :class:`RecordError` at a row of another place, and at a duplicated or out-of-order
    checkpoint. A checkpoint that the round has and the file lacks is for the checks to name.
    """
    rows: list[C] = []
    previous = 0
    for number, row in _numbered(path, kind, place):
        where, at = f"{path}:{number}", row.rows
        if at <= 0:
            raise RecordError(f"{where}: rows is {at}, expected a positive number")
        if at == previous:
            raise RecordError(f"{where}: checkpoint {at} is there twice; remove one line")
        if at < previous:
            raise RecordError(f"{where}: checkpoint {at} follows {previous}; restore the order")
        previous = at
        rows.append(row)
    if not rows:
        raise RecordError(f"{path}: holds no checkpoint; rerun this process")
    return rows


def check_episode(episode: Episode) -> str | None:
    """What is wrong with one finished episode (protocol section 9, checks), or ``None``."""
    if episode.length != episode.score:
        return f"score {episode.score:g} is not its length {episode.length}"
    if not 1 <= episode.length <= MAX_EPISODE_STEPS:
        return f"length {episode.length} is outside 1..{MAX_EPISODE_STEPS}"
    if not episode.terminal and episode.length != MAX_EPISODE_STEPS:
        return f"ended at {episode.length} steps without being terminal"
    return None


def _migrate(row: dict[str, Any], where: str) -> dict[str, Any]:
    version = row.pop("format", 0)
    if type(version) is not int or not 0 <= version <= FORMAT:
        raise RecordError(
            f"{where}: format {version!r} is unknown (this version reads 0 to {FORMAT}); "
            "update this project"
        )
    for step in range(version, FORMAT):
        row = MIGRATIONS[step](row)
    return row


def _decode(
    kind: type[R], known: dict[str, tuple[Any, bool]], row: dict[str, Any], where: str
) -> R:
    """Build one typed row; keys that the type does not know are ignored (newer minor additions)."""
    values: dict[str, Any] = {}
    for name, (annotation, required) in known.items():
        if required and name not in row:
            raise RecordError(f"{where}: {name!r} is missing; restore the line")
        try:
            values[name] = _convert(row.get(name), annotation)
        except OverflowError:
            raise RecordError(
                f"{where}: {name!r} is {shown(row[name])}, larger than any number of a run; "
                "restore the line"
            ) from None
        except (TypeError, ValueError):
            raise RecordError(
                f"{where}: {name!r} is {shown(row[name])}, expected {_describe(annotation)}"
            ) from None
    return kind(**values)


def _fields(kind: type[Row]) -> dict[str, tuple[Any, bool]]:
    """Name -> its annotation, and whether it must be there: what may be null may be absent."""
    hints = get_type_hints(kind)
    return {
        column.name: (hints[column.name], type(None) not in get_args(hints[column.name]))
        for column in fields(kind)
    }


def _convert(value: Any, annotation: Any) -> Any:
    """``value`` as ``annotation``; raises if it is not one."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(value, next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        _require(isinstance(value, list))
        return tuple(_convert(item, arguments[0]) for item in value)
    if origin is dict:
        _require(isinstance(value, dict))
        return {str(key): _convert(item, arguments[1]) for key, item in value.items()}
    if annotation is float:
        _require(isinstance(value, int | float) and not isinstance(value, bool))
        _require(math.isfinite(value))
        if abs(value) > LARGEST:
            raise OverflowError
        return float(value)
    if annotation is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    _require(type(value) is annotation)
    if annotation is int and abs(value) > LARGEST_COUNT:
        raise OverflowError
    return value


def _require(condition: bool) -> None:
    if not condition:
        raise TypeError


def _describe(annotation: Any) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return {"int": "an integer", "float": "a number", "str": "text", "bool": "true or false"}.get(
        name, name
    )

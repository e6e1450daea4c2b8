"""Typed rows of a run's JSON-lines files (protocol section 7), with their reader and writer.

Every row that this project writes carries ``"format": FORMAT``. Rows of the published rounds
carry none and are format 0; :data:`MIGRATIONS` lifts a row one format at a time.
"""

import math
import types
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from shared.errors import RecordError
from shared.files import read_jsonl
from shared.protocol import MAX_EPISODE_STEPS

FORMAT = 1

Migration = Callable[[dict[str, Any]], dict[str, Any]]


def _from_published(row: dict[str, Any]) -> dict[str, Any]:
    """Format 0 -> 1: the published rounds did not record how many samples a window has."""
    return {"window_samples": None, **row} if "train" in row else row


#: ``MIGRATIONS[n]`` turns a row of format n into one of format n + 1.
MIGRATIONS: dict[int, Migration] = {0: _from_published}


@dataclass(frozen=True)
class Row:
    """Base of the typed rows: conversion to and from JSON objects."""

    #: Fields that must be finite numbers; ``None`` of an optional field is allowed.
    finite: ClassVar[tuple[str, ...]] = ()

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

    finite = ("mean", "len_mean")

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
    ``window_samples`` is the number of updates whose metrics the means average; ``None`` where it
    was not recorded. ``retnorm`` holds the return normaliser's ``low``, ``high`` and ``scale`` at
    ``rows``.
    """

    finite = ("eval_mean",)

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

    finite = ("score",)

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


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """All rows of a JSON-lines file, migrated and checked. Raises :class:`RecordError`."""
    known = _fields(kind)
    return [
        _decode(kind, known, _migrate(row, f"{path}:{number}"), f"{path}:{number}")
        for number, row in read_jsonl(path)
    ]


def read_checkpoints(path: Path, kind: type[C], *, seed: int, every: int | None) -> list[C]:
    """Rows of ``evals.jsonl`` or ``records.jsonl`` of one seed, in ascending order of ``rows``.

    With ``every``, consecutive checkpoints must be that many rows apart, the first one at
    ``every``. Raises :class:`RecordError` at a row of another seed, and at a missing, duplicated
    or out-of-order checkpoint.
    """
    rows = read_rows(path, kind)
    if not rows:
        raise RecordError(f"{path}: holds no checkpoint; rerun this process")
    previous = 0
    for number, row in enumerate(rows, start=1):
        where, at = f"{path}:{number}", row.rows
        if row.seed != seed:
            raise RecordError(f"{where}: seed {row.seed} in seed {seed}'s file")
        if at <= 0:
            raise RecordError(f"{where}: rows is {at}, expected a positive number")
        if at == previous:
            raise RecordError(f"{where}: checkpoint {at} is there twice; remove one line")
        if at < previous:
            raise RecordError(f"{where}: checkpoint {at} follows {previous}; restore the order")
        if every is not None and at != previous + every:
            raise RecordError(
                f"{where}: checkpoint {previous + every} is missing ({at} follows {previous}, "
                f"evaluation every {every} rows); restore the line or rerun this process"
            )
        previous = at
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
        if name not in row:
            if required:
                raise RecordError(f"{where}: {name!r} is missing; restore the line")
            continue
        try:
            values[name] = _convert(row[name], annotation)
        except (TypeError, ValueError, OverflowError):
            raise RecordError(
                f"{where}: {name!r} is {row[name]!r}, expected {_describe(annotation)}"
            ) from None
    for name in kind.finite:
        if isinstance(values.get(name), float) and not math.isfinite(values[name]):
            raise RecordError(f"{where}: {name!r} is {values[name]}, expected a finite number")
    return kind(**values)


def _fields(kind: type[Row]) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind)
    return {each.name: (hints[each.name], each.default is MISSING) for each in fields(kind)}


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
        return float(value)
    if annotation is int and isinstance(value, float) and value.is_integer():
        return int(value)
    _require(type(value) is annotation)
    return value


def _require(condition: bool) -> None:
    if not condition:
        raise TypeError


def _describe(annotation: Any) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return {"int": "an integer", "float": "a number", "str": "text", "bool": "true or false"}.get(
        name, name
    )

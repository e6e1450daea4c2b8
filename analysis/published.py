"""The published figures under ``results/published/`` as sides, and what the publication states."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from analysis.data import Missing, SeedData, SideData
from shared.errors import RecordError, UserError
from shared.protocol import PAIRINGS, SIDES, Side, updates
from shared.provenance.roots import REPO
from shared.records.jsonl import read_jsonl
from shared.records.rows import Evaluation

DIRECTORY = REPO / "results" / "published"
FORMAT = 1


@dataclass(frozen=True)
class PublishedRound:
    """One round's file: its header, timings, and each side's seeds."""

    header: dict[str, Any]
    timing: dict[Side, list[dict[str, Any]]]
    seeds: dict[Side, tuple[SeedData, ...]]


@dataclass
class Stated:
    """What the publication states of one comparison."""

    rule: dict[str, Any] = field(default_factory=dict)
    #: (side, seed) -> S1, and S2, S2_curve or LATE where stated.
    seeds: dict[tuple[Side, int], dict[str, Any]] = field(default_factory=dict)
    s2_audit: dict[int, dict[str, float]] = field(default_factory=dict)
    welch: dict[str, dict[str, Any]] = field(default_factory=dict)
    concordance: dict[str, Any] = field(default_factory=dict)
    #: Windows (their last rows) in which the seed ranges of the actor's entropy are disjoint.
    entropy_disjoint: list[int] | None = None
    reading: str | None = None


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """``("file:line", object)`` of a published file; its first line must state a known format."""
    for number, row in read_jsonl(path):
        if number == 1 and row.get("format") != FORMAT:
            raise RecordError(
                f"{path}:1: format {row.get('format')!r} is unknown (this version reads {FORMAT})"
            )
        yield f"{path}:{number}", row


@cache
def load_round(number: int, directory: Path = DIRECTORY) -> PublishedRound:
    """The published figures of one round. Raises :class:`UserError` for a round without any."""
    path = directory / f"round{number}.jsonl"
    if not path.exists():
        raise UserError(f"round {number} has no published figures; published are 1, 2 and 3")
    header: dict[str, Any] = {}
    timing: dict[Side, list[dict[str, Any]]] = {side: [] for side in SIDES}
    evaluations: dict[tuple[Side, int], list[Evaluation]] = {}
    for where, row in _lines(path):
        try:
            if row["kind"] == "round":
                header = row
            elif row["kind"] == "timing":
                timing[row["side"]].append(row)
            else:
                evaluation = _evaluation(row)
                evaluations.setdefault((row["side"], row["seed"]), []).append(evaluation)
        except (KeyError, TypeError) as error:
            raise RecordError(f"{where}: {error} is missing or wrong; restore the file") from None
    seeds = {
        side: tuple(
            SeedData(seed, tuple(rows))
            for (owner, seed), rows in evaluations.items()
            if owner == side
        )
        for side in SIDES
    }
    return PublishedRound(header, timing, seeds)


def _evaluation(row: dict[str, Any]) -> Evaluation:
    returns = row.get("returns")
    return Evaluation(
        seed=row["seed"],
        rows=row["rows"],
        updates=updates(row["rows"]),
        returns=tuple(map(float, returns)) if returns else None,
        # Reward is 1 on every step, so that an episode's return is its length.
        lengths=tuple(map(int, returns)) if returns else None,
        mean=float(row["mean"]),
    )


@cache
def load_statistics(directory: Path = DIRECTORY) -> dict[str, Stated]:
    """Comparison (``round1``, ``pairE``, ``pairR``, ``round3``) -> what was stated of it."""
    stated = {name: Stated() for name in PAIRINGS}
    for where, row in _lines(directory / "statistics.jsonl"):
        try:
            entry = stated[row["comparison"]]
            match row["kind"]:
                case "rule":
                    entry.rule = row
                case "seed":
                    entry.seeds[row["side"], row["seed"]] = row
                case "s2_audit":
                    entry.s2_audit[row["seed"]] = row
                case "welch":
                    entry.welch[row["statistic"]] = row
                case "concordance":
                    entry.concordance = row
                case "entropy":
                    entry.entropy_disjoint = row["disjoint"]
                case "reading":
                    entry.reading = row["text"]
                case kind:
                    raise RecordError(f"{where}: kind {kind!r} is unknown; restore the file")
        except KeyError as error:
            raise RecordError(f"{where}: {error} is missing or unknown; restore the file") from None
    return stated


@cache
def load_windows(
    directory: Path = DIRECTORY,
) -> dict[str, dict[Side, dict[int, dict[str, tuple[float, float, float]]]]]:
    """Comparison -> side -> window's last row -> metric -> (mean, lowest, highest seed)."""
    tables: dict[str, dict[Side, dict[int, dict[str, tuple[float, float, float]]]]] = {}
    for where, row in _lines(directory / "windows.jsonl"):
        try:
            for side in SIDES:
                if row[side] and None not in row[side]:
                    mean, low, high = row[side]
                    table = tables.setdefault(row["comparison"], {each: {} for each in SIDES})
                    table[side].setdefault(row["rows"], {})[row["metric"]] = (mean, low, high)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{where}: {error} is missing or wrong; restore the file") from None
    return tables


def published_side(side: Side, number: int) -> SideData:
    """The published figures of ``side`` in round ``number``, as a source of a comparison.

    S2 and window means are carried, not recomputed: their raw files are not available.
    """
    found = load_round(number)
    comparison = next(
        (name for name, pairing in PAIRINGS.items() if pairing.rounds[side] == number),
        f"round{number}",
    )
    stated = load_statistics().get(comparison, Stated())
    seeds = tuple(
        SeedData(
            each.seed,
            each.evaluations,
            carried_s2=_carried_s2(stated, side, each.seed),
        )
        for each in found.seeds[side]
    )
    windows = load_windows().get(comparison, {}).get(side)
    lost = "S2, window means" if windows is None else "recomputing S2 and window means (carried)"
    return SideData(
        side=side,
        source=f"published round {number}",
        seeds=seeds,
        arm=found.header["arms"][side],
        carried_windows=windows,
        missing=(Missing(f"published round {number}, {side}: episodes and records", lost),),
    )


def _carried_s2(stated: Stated, side: Side, seed: int) -> tuple[float | None, ...] | None:
    curve = stated.seeds.get((side, seed), {}).get("S2_curve")
    return tuple(curve) if curve else None

"""What was published beside what is recomputed: the table that ``nox -s reproduce`` prints."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.comparison import Statistic
from analysis.difference import equal
from analysis.formats import integers, number, span
from analysis.published import Stated, load_statistics, load_windows
from analysis.readings import read_round3
from analysis.study import Study
from shared.protocol import CAP_ROWS, PAIRINGS, SIDE_KEY, SIDE_LABEL, SIDES


@dataclass(frozen=True)
class Row:
    """One line of the table; ``equal`` is ``None`` for what is carried, not recomputed."""

    statistic: str
    published: str
    recomputed: str
    equal: bool | None


def published_rows(studies: Mapping[str, Study]) -> list[Row]:
    """All rows, comparison by comparison."""
    rows: list[Row] = []
    for name, pairing in PAIRINGS.items():
        stated, result = load_statistics()[name], studies[pairing.directory]
        for part in (_statistics, _rules, _welch, _concordance, _entropy, _reading, _carried):
            rows += [
                Row(f"{name} {row.statistic}", row.published, row.recomputed, row.equal)
                for row in part(stated, result)
            ]
    return rows


def _row(
    name: str, published: Sequence[Any], recomputed: Sequence[Any], show: Callable[[Any], str]
) -> Row:
    same = len(published) == len(recomputed) and all(map(equal, published, recomputed))
    return Row(name, " ".join(map(show, published)), " ".join(map(show, recomputed)), same)


def _by_name(result: Study) -> dict[str, Statistic]:
    found = (result.comparison.late, result.comparison.s1)
    return {each.name: each for each in found if each is not None}


def _statistics(stated: Stated, result: Study) -> Iterator[Row]:
    for name, statistic in _by_name(result).items():
        for side in SIDES:
            published = [row[name] for (owner, _), row in stated.seeds.items() if owner == side]
            recomputed = list(map(float, statistic.values[side]))
            yield _row(f"{name} {SIDE_LABEL[side]}, each seed", published, recomputed, number)


def _rules(stated: Stated, result: Study) -> Iterator[Row]:
    statistics = _by_name(result)
    if stated.rule:
        found = statistics["S1"].rule
        assert found is not None
        row = stated.rule
        yield _row("S1 rule: A", [row["A"]], [found.A], number)
        published = [row["reference_low"], row["reference_high"]]
        same = all(map(equal, published, [found.low, found.high]))
        yield Row("S1 rule: reference range", span(*published), span(found.low, found.high), same)
    for name, row in ({"S1": stated.rule} if stated.rule else stated.welch).items():
        found = statistics[name].rule
        assert found is not None
        published = [row["LEARNS"], row["WITHIN_RANGE"]]
        yield _row(
            f"{name} LEARNS, WITHIN_RANGE", published, [found.learns, found.within_range], str
        )


def _welch(stated: Stated, result: Study) -> Iterator[Row]:
    for name, row in stated.welch.items():
        found = _by_name(result)[name].welch
        assert found is not None
        if "p" in row:
            yield _row(f"{name} Welch p, all digits", [row["p"]], [found.p], repr)
        # Published to these digits; the recomputed value is rounded the same way.
        for key, value, digits in (("t_printed", found.t, 3), ("p_printed", found.p, 4)):
            label = f"{name} Welch {key[0]}"
            yield _row(label, [row[key]], [round(value, digits)], lambda v: f"{v:g}")


def _concordance(stated: Stated, result: Study) -> Iterator[Row]:
    if not stated.concordance:
        return
    found = result.comparison.concordance
    for rows in CAP_ROWS:
        published = [stated.concordance[f"{SIDE_KEY[side]}_{rows}"] for side in SIDES]
        recomputed = [found[side].at[rows] for side in SIDES]
        yield _row(f"runs at the cap, row {rows}", published, recomputed, str)
    published = [stated.concordance[f"{SIDE_KEY[side]}_rate_16_24k"] for side in SIDES]
    yield _row(
        "rate at the cap, 16000-24000",
        published,
        [found[side].rate for side in SIDES],
        lambda value: number(value, 3),
    )


def _entropy(stated: Stated, result: Study) -> Iterator[Row]:
    if stated.entropy_disjoint is None:
        return
    disjoint = result.comparison.disjoint_windows
    yield Row(
        "entropy windows with disjoint ranges",
        integers(stated.entropy_disjoint),
        integers(disjoint),
        disjoint == stated.entropy_disjoint,
    )


def _reading(stated: Stated, result: Study) -> Iterator[Row]:
    late = result.comparison.late
    if stated.reading is None or late is None:
        return
    found = read_round3(result.comparison.concordance["reference"], late.welch)
    short = [(text or "out of reach").split(" (")[0] for text in (stated.reading, found)]
    yield Row("reading", short[0], short[1], found == stated.reading)


def _carried(stated: Stated, _: Study) -> Iterator[Row]:
    for side in SIDES:
        values = [
            row["S2"] for (owner, _), row in stated.seeds.items() if owner == side and "S2" in row
        ]
        if values:
            yield _carry(f"S2 {SIDE_LABEL[side]}, each seed", map(number, values))
    for name, table in load_windows().items():
        if load_statistics()[name] is stated:
            metrics = {metric for windows in table["reference"].values() for metric in windows}
            text = f"{len(metrics)} metrics, {len(table['reference'])} windows"
            yield _carry("window means", [text])


def _carry(name: str, values: Iterable[str]) -> Row:
    return Row(name, " ".join(values), "raw files not available", None)

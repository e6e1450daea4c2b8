"""What was published beside what is recomputed: the table that ``nox -s reproduce`` prints."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.companions import companion
from analysis.comparison import Statistic
from analysis.difference import equal
from analysis.formats import integers, interval, number, span
from analysis.published import Stated, load_statistics, load_windows
from analysis.readings import read_round3
from analysis.statistics import Floats, Rule, rule
from analysis.study import Study
from shared.protocol import CAP_ROWS, PAIRINGS, SIDE_KEY, SIDE_LABEL, SIDES, Side


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
            recomputed = list(map(float, statistic.values[side]))
            published = list(map(float, _published_values(stated, name)[side]))
            yield _row(f"{name} {SIDE_LABEL[side]}, each seed", published, recomputed, number)


def _rules(stated: Stated, result: Study) -> Iterator[Row]:
    for name, statistic in _by_name(result).items():
        published, found = _published_rule(stated, name), statistic.rule
        assert found is not None
        if not stated.rule:
            yield from _means(stated, name, statistic)
        yield _row(f"{name} rule: A", [published.A], [found.A], number)
        first, second = (published.low, published.high), (found.low, found.high)
        same = all(map(equal, first, second))
        yield Row(f"{name} rule: reference range", span(*first), span(*second), same)
        row = stated.rule or stated.welch[name]
        verdicts = [row["LEARNS"], row["WITHIN_RANGE"]], [found.learns, found.within_range]
        yield _row(f"{name} LEARNS, WITHIN_RANGE", *verdicts, str)


def _published_rule(stated: Stated, name: str) -> Rule:
    """As stated; of round 3, whose rule is published in words, from every seed's value."""
    row, values = stated.rule, _published_values(stated, name)
    if row:
        return Rule(row["A"], row["reference_low"], row["reference_high"])
    return rule(values["reference"], values["ajax"])


def _means(stated: Stated, name: str, statistic: Statistic) -> Iterator[Row]:
    """The reference's mean (Ajax's is A) and the difference with its interval."""
    published = _published_values(stated, name)
    means = [float(np.mean(each["reference"])) for each in (published, statistic.values)]
    yield _row(f"{name} Reference, mean", means[:1], means[1:], number)
    gaps = [companion(each["reference"], each["ajax"]) for each in (published, statistic.values)]
    numbers = [[each.difference, *(each.interval or ())] for each in gaps]
    shown = [f"{each.difference:.1f} {interval(each.interval)}" for each in gaps]
    same = len(numbers[0]) == len(numbers[1]) and all(map(equal, *numbers))
    yield Row(f"{name} difference, Welch 95 %", shown[0], shown[1], same)


def _published_values(stated: Stated, name: str) -> dict[Side, Floats]:
    return {
        side: np.array([row[name] for (owner, _), row in stated.seeds.items() if owner == side])
        for side in SIDES
    }


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
    yield Row("reading (H2: correlated seeds, D2)", short[0], short[1], found == stated.reading)


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

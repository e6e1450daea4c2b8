"""Sections of the Markdown tables: each makes the lines of one section, or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.checks import Check
from analysis.companions import Companion, fisher
from analysis.comparison import Comparison, Statistic
from analysis.formats import DASH, integers, interval, markdown_table, number, p_value, span, yes
from analysis.readings import read_round3, read_round3_as_first_written, round3_notes
from shared.protocol import CAP_RETURN, CAP_ROWS, SIDE_KEY, SIDE_LABEL, SIDES

#: Above this many checkpoints a table shows every 2000 rows; the figures show all.
MANY_CHECKPOINTS = 20
UNREGISTERED = "not pre-registered"
#: Columns of a table of companions, after the first.
_COMPANION_HEAD = (
    "difference [95 %]",
    "P(Ajax > reference) [95 %]",
    "permutation p",
    "smallest p possible",
    "Hedges g [95 %]",
    "detectable at 80 % [range]",
)
#: One more, where the round has a rule of this kind.
_RULE_FAILS = "rule fails by chance"


@dataclass(frozen=True)
class Page:
    """What a section is made from."""

    comparison: Comparison
    checks: Sequence[Check]


def _statistic_table(comparison: Comparison, statistic: Statistic | None) -> list[str]:
    if statistic is None:
        return []
    # S2 belongs to rounds 1 and 2 (prereg/PROTOCOL.md, section 9).
    extra = statistic.name == "S2" and comparison.round_number in (3, 4)
    mark = f" ({UNREGISTERED} in this round)" if extra else ""
    lines = [f"## {statistic.name}{mark}", "", _definition(statistic), ""]
    columns = {
        side: dict(zip(comparison.sides[side].seed_numbers, map(float, values), strict=True))
        for side, values in statistic.values.items()
    }
    rows = [
        [f"seed {seed}", *(number(columns.get(side, {}).get(seed)) for side in SIDES)]
        for seed in sorted({seed for column in columns.values() for seed in column})
    ]
    means = [statistic.values.get(side) for side in SIDES]
    mean = ["mean", *(number(float(v.mean()) if v is not None else None) for v in means)]
    low = ["lowest", *(number(float(v.min()) if v is not None else None) for v in means)]
    high = ["highest", *(number(float(v.max()) if v is not None else None) for v in means)]
    lines += markdown_table(["", *(SIDE_LABEL[side] for side in SIDES)], [*rows, mean, low, high])
    if statistic.rule is not None and statistic.name != "S2":
        rule = statistic.rule
        lines += [
            "",
            f"Rule: A = {rule.A:.1f}, reference range {span(rule.low, rule.high)}: "
            f"LEARNS {yes(rule.learns)}, WITHIN_RANGE {yes(rule.within_range)}.",
        ]
    return lines


def _definition(statistic: Statistic) -> str:
    if statistic.name == "S2":
        return (
            f"Training-episode score at row {statistic.rows[-1]}: per environment the mean of its "
            "last 10 finished episodes, then the mean over 16 environments. No rule."
        )
    rows = statistic.rows
    listed = integers(rows) if len(rows) <= 3 else f"{rows[0]} to {rows[-1]} ({len(rows)})"
    return f"Per seed, the mean evaluation at the checkpoints {listed}."


def s1(page: Page) -> list[str]:
    """S1 per seed and its rule."""
    return _statistic_table(page.comparison, page.comparison.s1)


def late(page: Page) -> list[str]:
    """LATE per seed and its rule."""
    return _statistic_table(page.comparison, page.comparison.late)


def s2(page: Page) -> list[str]:
    """S2 per seed; there is no rule for it."""
    return _statistic_table(page.comparison, page.comparison.s2)


def welch(page: Page) -> list[str]:
    """Welch's test of LATE and S1."""
    rows = [
        [each.name, number(each.welch.t, 3), number(each.welch.df, 2), p_value(each.welch.p)]
        for each in (page.comparison.late, page.comparison.s1)
        if each is not None and each.welch is not None
    ]
    lines = ["## Welch's t-test", "", "Two-sided; t is positive where the reference is higher.", ""]
    return [*lines, *markdown_table(["statistic", "t", "df", "p"], rows)] if rows else []


def concordance(page: Page) -> list[str]:
    """Seeds at the cap, on both sides."""
    found = page.comparison.concordance
    rows = []
    for at in CAP_ROWS:
        counts = [found[side].at[at] if side in found else None for side in SIDES]
        cells = [
            DASH if count is None else f"{count}/{found[side].seeds}"
            for side, count in zip(SIDES, counts, strict=True)
        ]
        rows.append([f"at {at}", *cells, _fisher(page.comparison, at)])
    rates = [number(found[side].rate if side in found else None, 3) for side in SIDES]
    rows.append(["rate over 16000-24000", *rates, "below"])
    head = ["", *(SIDE_LABEL[side] for side in SIDES), "Fisher p (not pre-registered)"]
    return [
        "## Concordance",
        "",
        f"Seeds whose evaluation reaches {CAP_RETURN:.0f}.",
        "",
        *markdown_table(head, rows),
    ]


def _fisher(comparison: Comparison, at: int) -> str:
    found = comparison.concordance
    if set(found) != set(SIDES):
        return DASH
    counts = (found["reference"].at[at], found["ajax"].at[at])
    if counts[0] is None or counts[1] is None:
        return DASH
    seeds = (found["reference"].seeds, found["ajax"].seeds)
    return p_value(fisher((counts[0], counts[1]), seeds))


def reading3(page: Page) -> list[str]:
    """Round 3's reading, as amended and as first written."""
    reference = page.comparison.concordance.get("reference")
    if reference is None or page.comparison.late is None:
        return []
    text = read_round3(reference, page.comparison.late.welch)
    first = read_round3_as_first_written(reference)
    return ["## Reading", "", f"As amended on 2026-10-04: {text or 'out of reach'}.", "",
            f"By the rule as first written: {first or 'out of reach'}.", "",
            *round3_notes(page.comparison)]  # fmt: skip


def evaluations(page: Page) -> list[str]:
    """Evaluation means of every seed."""
    columns = {
        f"{SIDE_KEY[side]} s{each.seed}": {row.rows: row.mean for row in each.evaluations}
        for side, data in page.comparison.sides.items()
        for each in data.seeds
    }
    grid = sorted({rows for column in columns.values() for rows in column})
    if len(grid) > MANY_CHECKPOINTS:
        grid = [rows for rows in grid if rows % 2_000 == 0] or grid
    rows = [[str(at), *(number(column.get(at)) for column in columns.values())] for at in grid]
    return ["## Evaluation mean at each checkpoint", "", *markdown_table(["rows", *columns], rows)]


def common(page: Page) -> list[str]:
    """Both sides at the checkpoints that every seed has, where the sides have different ones."""
    found = page.comparison.common
    if len(found) > MANY_CHECKPOINTS:
        found = tuple(each for each in found if each.rows[0] % 2_000 == 0) or found
    tests = {each.name: (each.companion, 1) for each in found if each.companion is not None}
    rows = [
        [each.name, *(number(float(each.values[side].mean())) for side in SIDES)] for each in found
    ]
    return [
        f"## Evaluation at each common checkpoint ({UNREGISTERED})",
        "",
        *markdown_table(["mean over seeds", *(SIDE_LABEL[side] for side in SIDES)], rows),
        "",
        *companion_table(page.comparison, "checkpoint", tests),
    ] if found else []  # fmt: skip


def s2_curves(page: Page) -> list[str]:
    """S2 of every seed, checkpoint by checkpoint."""
    columns = {
        f"{SIDE_KEY[side]} s{seed.seed}": dict(zip(seed.grid, curves[seed.seed], strict=True))
        for side, curves in page.comparison.s2_curves.items()
        for seed in page.comparison.sides[side].seeds
        if seed.seed in curves
    }
    if not columns:
        return []
    grid = sorted({rows for column in columns.values() for rows in column})
    shown = [at for at in grid if len(grid) <= MANY_CHECKPOINTS or at % 2_000 == 0] or grid
    rows = [[str(at), *(number(column.get(at)) for column in columns.values())] for at in shown]
    return ["## S2 at each checkpoint", "", *markdown_table(["rows", *columns], rows)]


def companion_table(
    comparison: Comparison, first: str, found: Mapping[str, tuple[Companion, int]]
) -> list[str]:
    """Lines of a table of companions, under their names, with each statistic's own decimals."""
    fails = [_RULE_FAILS] if comparison.ruled else []
    rows = []
    for name, (each, digits) in found.items():
        test = each.permutation
        rows.append(
            [
                name,
                f"{each.difference:.{digits}f} {interval(each.interval, digits)}",
                f"{number(each.ajax_higher, 2)} {interval(each.ajax_higher_interval, 2)}",
                p_value(test.p) + ("" if test.exact else f" ({test.regroupings} drawn)"),
                p_value(test.smallest_p),
                *([f"{test.rule_fails:.1%}"] if fails else []),
                f"{number(each.hedges_g, 2)} {interval(each.hedges_interval, 2)}",
                f"{number(each.detectable, digits)} {interval(each.detectable_interval, digits)}",
            ]
        )
    return markdown_table([first, *_COMPANION_HEAD[:4], *fails, *_COMPANION_HEAD[4:]], rows)


def _companion_notes(*, rule: bool) -> list[str]:
    """What the columns of a table of companions are, and what each assumes, a line each."""
    fails = (
        "- *Rule fails by chance*: the share of regroupings in which LEARNS fails, that is, how "
        "often it would fail if the side made no difference."
    )
    return [
        "- *Difference*: reference mean minus Ajax mean, with Welch's interval, which takes the "
        "seeds of a side as normal and lets the sides' spreads differ.",
        "- *P(Ajax > reference)*: the chance that a seed of Ajax is higher than one of the "
        "reference. It assumes no distribution; its interval (Newcombe's) is approximate, and "
        "with three seeds a side it is a 90 % interval at worst.",
        "- *Permutation p*: two-sided, over all regroupings of the seeds. It tests that the sides "
        "have the same distribution: a difference in spread alone can make it small.",
        *([fails] if rule else []),
        "- *Hedges g*: the difference over one spread pooled from both sides. It means little "
        "where the sides' spreads differ: read the difference first.",
        "- *Detectable*: the smallest true difference that Welch's test at 5 % finds with 80 % "
        "power, for normal seeds with the spread seen here. The range is what the spread's own "
        "95 % interval leaves of it.",
    ]


def companions(page: Page) -> list[str]:
    """The companions that were not pre-registered."""
    statistics = (page.comparison.late, page.comparison.s1, page.comparison.s2)
    found = {
        each.name: (each.companion, 1)
        for each in statistics
        if each is not None and each.companion is not None
    }
    if page.comparison.round_number == 3 and page.comparison.late_rates is not None:
        found["late rate at the cap"] = (page.comparison.late_rates, 3)
    if not found:
        return []
    return [
        "## What these seeds can show (not pre-registered)",
        "",
        *_companion_notes(rule=bool(page.comparison.ruled)),
        "",
        *companion_table(page.comparison, "statistic", found),
    ]

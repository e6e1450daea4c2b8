"""``reading.md`` of round 4: the result, what decided it, and everything else as description."""

from collections.abc import Iterator, Mapping, Sequence

from analysis import round4_limits, round4_paired
from analysis.formats import DASH, interval, markdown_table, number, yes
from analysis.replication import ajax_note
from analysis.round4 import METRICS, WINDOWS, Round4, at_checkpoints, beside, paired_effects
from analysis.round4_paired import estimates
from analysis.round4_rules import (
    AS_THEY_ARE,
    CELLS,
    CONTROL_TOLERANCE,
    CONTROL_WINDOW,
    Finding,
    Outcome,
    cell_name,
    half_the_smaller,
    mean,
)
from analysis.sections import UNREGISTERED
from shared.protocol import FORMS, SIDE_LABEL, SIDES

OUTCOMES: dict[Outcome, str] = {
    "confirmed": "confirmed: the two-hot expectation is the cause of these early differences; all "
    "statistics follow the form, and all controls hold",
    "refuted": "refuted",
    "undecided": "undecided",
}
HEAD = """\
# Reading of round 4

Is the two-hot expectation the cause of the early differences, on x86-64 Linux and with this
release of Ajax? Both forms of it ran on both sides, on seeds that nobody had looked at. The rules
were fixed before any run (`prereg/ROUND4.md`). This page leads with what was found out after them,
each seed held against itself, then applies the rules, and shows the rest as description."""

RULES = """\
A statistic *follows the form* if every literal seed lies on the expected side of every exact seed
(of both sides), the form's effect on each side is at least the smallest effect, and at each form
the remainder between the sides is less than half the smaller of the two effects. It *follows the
side* if at each form the sides' seed ranges are disjoint and the effect on at least one side is
less than half the smaller remainder. Effects and remainders are differences of means over seeds, of
logarithms (shown as factors) or of the values as they are."""

BESIDE = """\
Published: rounds 1 and 2, from another machine and architecture, and seeds 0 to 2. Mean over seeds
[lowest, highest seed]."""


def reading_line(found: Round4) -> str:
    """The result in one line."""
    reasons = "; ".join(found.verdict.reasons)
    return f"Reading: {OUTCOMES[found.verdict.word]}{f': {reasons}' if reasons else ''}."


def render(found: Round4) -> str:
    """The whole document."""
    sections = (
        HEAD.splitlines(),
        round4_paired.section(
            found.findings, [paired_effects(found, each) for each in found.findings]
        ),
        ["## The registered outcome", "", reading_line(found), "", *round4_limits.lines(found)],
        _statistics(found),
        _rules(found),
        _controls(found),
        _as_they_are(found),
        _chance(found),
        *_published(found),
        _checkpoints(found, "evaluations", "Evaluation mean"),
        _checkpoints(found, "S2", "S2, the score of the last training episodes"),
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _of_seeds(values: Sequence[float]) -> str:
    """``mean [lowest, highest]`` over seeds."""
    return f"{mean(values):.4f} {interval((min(values), max(values)), 4)}" if values else DASH


def _statistics(found: Round4) -> list[str]:
    rows = [
        [
            f"`{each.measure.metric}`",
            str(each.measure.window),
            *(_of_seeds(each.sample[cell]) for cell in CELLS),
            each.word,
        ]
        for each in found.findings
    ]
    head = ["statistic", "window", *map(cell_name, CELLS), "reading"]
    return [
        "## The statistics",
        "",
        "Mean over seeds [lowest, highest seed] of the mean over the window of 2000 rows that ends "
        "there.",
        "",
        *markdown_table(head, rows),
    ]


def _rules(found: Round4) -> list[str]:
    rows = [
        [
            f"`{each.measure.metric}`",
            "higher" if each.measure.sign > 0 else "lower",
            yes(each.apart),
            *(each.measure.written(each.effects[side]) for side in SIDES),
            each.measure.written(each.measure.threshold),
            *(each.measure.written(each.remainders[form]) for form in FORMS),
            each.measure.written(half_the_smaller(each.effects)),
        ]
        for each in found.findings
    ]
    head = [
        "statistic",
        "literal expected",
        "all literal seeds so",
        *(f"effect on {SIDE_LABEL[side]}" for side in SIDES),
        "smallest effect",
        *(f"remainder, {form}" for form in FORMS),
        "half the smaller effect",
    ]
    faults = [
        f"- `{each.measure.metric}` ({each.word}): {'; '.join(each.faults)}."
        for each in found.findings
        if each.faults
    ]
    return [
        "## What decided",
        "",
        *RULES.splitlines(),
        "",
        *markdown_table(head, rows),
        *(["", *faults] if faults else []),
    ]


def _controls(found: Round4) -> list[str]:
    rows = [
        [
            f"`{each.metric}`",
            *(_of_seeds(each.sample[cell]) for cell in CELLS),
            *(f"{each.changes[side]:+.2%}" for side in SIDES),
            yes(each.holds),
        ]
        for each in found.controls
    ]
    changes = [f"{SIDE_LABEL[side]}, exact against literal" for side in SIDES]
    return [
        f"## Negative controls, window ending at {CONTROL_WINDOW} rows",
        "",
        f"A control holds if on each side the means of the forms differ by at most "
        f"{CONTROL_TOLERANCE:.0%}, relative to the literal form's.",
        "",
        *markdown_table(["control", *map(cell_name, CELLS), *changes, "holds"], rows),
    ]


def _as_they_are(found: Round4) -> list[str]:
    rows = [
        [
            f"`{each.measure.metric}`",
            str(each.measure.window),
            *(_of_seeds(each.sample[cell]) for cell in AS_THEY_ARE),
            yes(each.differs),
            _difference(found, each),
        ]
        for each in found.findings
        if each.measure.to_explain
    ]
    head = ["statistic", "window", *(f"{cell_name(c)} (as it is)" for c in AS_THEY_ARE), "disjoint"]
    head.append("difference [95 %, Welch]")
    return [
        "## Is there an early difference to explain?",
        "",
        "The rule reads overlapping seed ranges of the two sides as they are as none; the "
        f"difference with its interval is {UNREGISTERED}.",
        "",
        *markdown_table(head, rows),
    ]


def _difference(found: Round4, finding: Finding) -> str:
    value = estimates(finding, paired_effects(found, finding))["as_they_are"]
    return value.written(finding.measure) if value else DASH


def _chance(found: Round4) -> list[str]:
    ways = []
    for finding in found.findings:
        effects = [v for side in paired_effects(found, finding).values() for v in side.values()]
        right = sum(value > 0 for value in effects)
        ways.append(f"`{finding.measure.metric}` {right} of {len(effects)}")
    pairs = len(effects)
    return [
        "## What these seeds can show",
        "",
        "A seed's two runs are a pair. Without any effect each of the "
        f"{pairs} pairs moves in the expected direction with a chance of one half, and all of them "
        f"do once in {2**pairs} for one statistic; the statistics are not independent. Pairs "
        f"that moved so: {', '.join(ways)}. Within a side the rules look at the size of the "
        "effect, and at no test. The round ends before either side has learned the task: it says "
        "nothing about final performance, about later differences, or about rare failures.",
    ]


# --- description ----------------------------------------------------------------------------


def _published(found: Round4) -> Iterator[list[str]]:
    decided = [(each.measure.metric, each.measure.window) for each in found.findings]
    decided += [(each.metric, CONTROL_WINDOW) for each in found.controls]
    others = {end: [m for m in METRICS if (m, end) not in decided] for end in WINDOWS}
    yield [
        "## Beside the published windows: the statistics and the controls",
        "",
        *BESIDE.splitlines(),
        "",
        ajax_note(found.ajax),
        "",
        *_beside_table(found, decided),
    ]
    for end, metrics in others.items():
        yield [
            f"## Beside the published windows: the other metrics, window ending at {end} rows",
            "",
            f"Description ({UNREGISTERED}).",
            "",
            *_beside_table(found, [(metric, end) for metric in metrics]),
        ]


def _beside_table(found: Round4, wanted: Sequence[tuple[str, int]]) -> list[str]:
    rows = []
    for metric, end in wanted:
        for cell in CELLS:
            here = found.windows[cell].get(end, {}).get(metric)
            there = beside(cell, end, metric)
            if here is not None or there is not None:
                shown = "not published" if there is None else _mean_and_range(there)
                rows.append([f"`{metric}` {end}", cell_name(cell), shown, _mean_and_range(here)])
    return markdown_table(["metric, window", "arm", "published", "round 4"], rows)


def _mean_and_range(values: Sequence[float] | None) -> str:
    if values is None:
        return DASH
    value, *bounds = values
    if not bounds:
        return f"{value:.3f} (no seed range)"
    return f"{value:.4f} {interval((bounds[0], bounds[1]), 4)}"


def _checkpoints(found: Round4, name: str, title: str) -> list[str]:
    columns: Mapping[str, Mapping[int, Sequence[float] | None]] = {
        cell_name(cell): at_checkpoints(found, cell, name) for cell in CELLS
    }
    grid = sorted({rows for column in columns.values() for rows in column})
    rows = [[str(at), *(_short(column.get(at)) for column in columns.values())] for at in grid]
    return [
        f"## {title} at each checkpoint ({UNREGISTERED})",
        "",
        "Mean over seeds [lowest, highest seed].",
        "",
        *markdown_table(["rows", *columns], rows),
    ]


def _short(values: Sequence[float] | None) -> str:
    if values is None:
        return DASH
    value, low, high = values
    return f"{number(value)} {interval((low, high))}"

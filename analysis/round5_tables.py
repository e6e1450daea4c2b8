"""``reading.md`` of round 5: differences by seed and their intervals first, then the rest."""

import math

from analysis.formats import DASH, markdown_table, p_value, yes
from analysis.replication import ajax_note
from analysis.round4_rules import CONTROL_WINDOW
from analysis.round5 import Round5
from analysis.round5_rules import FLAGS, MANIPULATIONS, MARGIN, SMALLEST_EFFECT, Estimate
from shared.protocol import FORMS, SIDE_LABEL, SIDES

HEAD = """\
# Reading of round 5

Is the two-hot expectation the cause of the early entropy, and is anything else? Both forms of it
ran on both sides. The rules were fixed before any run (`prereg/ROUND5.md`), and nothing was looked
at before the last block had finished. Values are means of `ent/action/mean` over the window that
ends at 4000 rows."""


def reading_line(found: Round5) -> str:
    """The result in one line."""
    faults = "; ".join(found.verdict.faults)
    more = ""
    if found.verdict.reading.startswith("the cause") and found.verdict.flags["rest"]:
        more = "; something smaller than the margin remains"
    return f"Reading: {found.verdict.reading}{more}{f': {faults}' if faults else ''}."


def render(found: Round5) -> str:
    """The whole document."""
    sections = (
        HEAD.splitlines(),
        _by_seed(found),
        _estimates(found),
        [reading_line(found)],
        _tests(found),
        _placebo(found),
        _checks(found),
        _load(found),
        [ajax_note(found.ajax)],
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _number(value: float | None) -> str:
    return DASH if value is None or not math.isfinite(value) else f"{value:.4f}"


def interval_of(estimate: Estimate) -> str:
    """``mean [low, high]``."""
    low, mean, high = (_number(float(x)) for x in (estimate.low, estimate.mean, estimate.high))
    return f"{mean} [{low}, {high}]"


def _by_seed(found: Round5) -> list[str]:
    seeds = sorted({seed for cell in found.values.values() for seed in cell})
    effects = {side: found.effects(side) for side in SIDES}
    rows = [
        [
            str(seed),
            *(
                _number(value)
                for side in SIDES
                for value in (
                    *(found.values[side, form].get(seed) for form in FORMS),
                    effects[side].get(seed),
                )
            ),
        ]
        for seed in seeds
    ]
    head = [f"{SIDE_LABEL[side]}, {what}" for side in SIDES for what in (*FORMS, "difference")]
    return [
        "## Each seed against itself",
        "",
        "A seed starts from the same parameters in both forms of its side. The difference is its "
        "literal value minus its exact one.",
        "",
        *markdown_table(["seed", *head], rows),
    ]


def _estimates(found: Round5) -> list[str]:
    rows = [
        [name, interval_of(estimate), f"{confidence:.0%}"]
        for name, (estimate, confidence) in found.estimates.items()
    ]
    return [
        "## Means and intervals",
        "",
        "The rest is what is left between the sides at the exact form. Log ratios (of literal over "
        "exact, by seed) are secondary and have no vote.",
        "",
        *markdown_table(["estimate", "mean [interval]", "confidence"], rows),
    ]


def _tests(found: Round5) -> list[str]:
    p = {
        flag: ", ".join(
            f"{name.removeprefix(f'{flag}, ')} {p_value(value)}" if ", " in name else p_value(value)
            for name, value in found.p.items()
            if name == flag or name.startswith(f"{flag}, ")
        )
        for flag in FLAGS
    }
    rows = [[flag, p[flag] or DASH, yes(found.verdict.flags[flag])] for flag in FLAGS]
    return [
        "## The tests",
        "",
        f"P1 and refuted are about an effect of {SMALLEST_EFFECT}, P2 and P3 about the margin of "
        f"{MARGIN}. P1, P2 and P3 are a fixed sequence: one counts only if those before it hold.",
        "",
        *markdown_table(["test", "p", "holds"], rows),
    ]


def _placebo(found: Round5) -> list[str]:
    lines = ["## The placebo: the first block once more", ""]
    if found.placebo is None:
        return [*lines, f"Left out: {'; '.join(found.placebo_faults)}."]
    rows = []
    for side in SIDES:
        placebo, effects = found.placebo[side], [*found.effects(side).values()]
        mean = sum(effects) / len(effects)
        spread = math.sqrt(sum((x - mean) ** 2 for x in effects) / max(len(effects) - 1, 1))
        rows.append(
            [
                SIDE_LABEL[side],
                " ".join(map(_number, placebo.differences.tolist())),
                _number(placebo.spread),
                _number(spread),
                yes(placebo.identical),
            ]
        )
    head = ["side", "repeat minus first run, by seed", "their spread about 0"]
    head += ["standard deviation of the effects", "alike bit for bit"]
    return [*lines, *markdown_table(head, rows)]


def _checks(found: Round5) -> list[str]:
    shown = []
    for measure in MANIPULATIONS:
        cells = []
        for side in SIDES:
            values = [*found.manipulations[measure.name][side].values()]
            least = min(values) if all(map(math.isfinite, values)) and values else math.nan
            cells.append(measure.written(least))
        shown.append([f"`{measure.name}`", *cells, measure.written(measure.threshold)])
    controls = [
        [
            f"`{each.metric}` {CONTROL_WINDOW}",
            *(f"{each.changes[side]:+.2%}" for side in SIDES),
            yes(each.holds),
        ]
        for each in found.controls
    ]
    sides = [SIDE_LABEL[side] for side in SIDES]
    return [
        "## Manipulation checks and controls",
        "",
        "The smallest that any pair shows, and what is needed:",
        "",
        *markdown_table(["measure", *sides, "needed"], shown),
        "",
        "Controls, which have no vote: the change from the literal form's mean to the exact one's.",
        "",
        *markdown_table(["control", *sides, "within 1 %"], controls),
    ]


def _load(found: Round5) -> list[str]:
    rows = [
        [
            part,
            str(each["launched"] or DASH),
            str(each["load averages"] or DASH),
            " ".join(DASH if x is None else f"{x:.0f}" for x in each["seconds"].values()),
        ]
        for part, each in found.load.items()
    ]
    head = ["block", "started", "load averages", "seconds: reference by seed, Ajax"]
    return ["## Load of the machine", "", *markdown_table(head, rows)]

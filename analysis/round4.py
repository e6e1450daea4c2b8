"""Round 4: the four arms of its two parts, what the rules say of them, and how it is read."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from analysis.comparison import Curve
from analysis.data import SideData, WindowTable
from analysis.replication import published_window, which_ajax
from analysis.round4_paired import estimates, seed_effects
from analysis.round4_rules import (
    CELLS,
    CONTROL_WINDOW,
    CONTROLS,
    MEASURES,
    Cell,
    Control,
    Finding,
    Sample,
    Verdict,
    control,
    judge,
    mean,
    verdict,
)
from analysis.study import Study
from analysis.windows import seed_value
from shared.metrics import TABLE_METRICS
from shared.protocol import FORMS, ROUNDS, SERIES, WINDOW_ROWS, Form, Round, Side

FORMAT = 1
#: The part in which both sides compute the form.
PARTS: dict[Form, Round] = {
    ROUNDS[name].arm("reference").expectation: ROUNDS[name] for name in SERIES["4"]
}
#: Windows that the round has, and the metrics of them that are shown.
WINDOWS = (2_000, 4_000)
METRICS = tuple(dict.fromkeys((*TABLE_METRICS, *(each.metric for each in MEASURES))))


@dataclass(frozen=True)
class Round4:
    """The four arms, and everything that the rules say of them."""

    sides: Mapping[Cell, SideData]
    findings: tuple[Finding, ...]
    controls: tuple[Control, ...]
    verdict: Verdict
    #: Description, without a rule: window means, and S2 of each seed at each checkpoint.
    windows: Mapping[Cell, WindowTable]
    s2: Mapping[Cell, Mapping[int, Curve]]
    #: Which Ajax ran, as the parts' checks say.
    ajax: str


def smokes(studies: Mapping[str, Study]) -> list[str]:
    """The parts to which the rules do not apply, a line each; ``studies`` by part."""
    return [
        f"{part} is a smoke: tiny widths have no early differences to read"
        for part, each in studies.items()
        if each.comparison.smoke or each.comparison.sizes.tiny
    ]


def read_round4(studies: Mapping[str, Study]) -> Round4:
    """Apply the pre-registered rules to both parts; one that lacks a file leaves it undecided."""
    of_form = {form: studies[chosen.part] for form, chosen in PARTS.items()}
    sides = {(side, form): of_form[form].comparison.sides[side] for side, form in CELLS}
    findings = tuple(
        judge(measure, _sample(sides, measure.window, measure.metric)) for measure in MEASURES
    )
    controls = tuple(control(name, _sample(sides, CONTROL_WINDOW, name)) for name in CONTROLS)
    failed = [f"{form}: {check}" for form in FORMS for check in of_form[form].failed]
    return Round4(
        sides,
        findings,
        controls,
        verdict(findings, controls, failed),
        windows={
            (side, form): of_form[form].comparison.windows[side] or {} for side, form in CELLS
        },
        s2={(side, form): of_form[form].comparison.s2_curves[side] for side, form in CELLS},
        ajax="; ".join(dict.fromkeys(which_ajax(of_form[form].checks) for form in FORMS)),
    )


def _sample(sides: Mapping[Cell, SideData], window: int, metric: str) -> Sample:
    return {
        cell: tuple(
            seed_value(each.records or (), WINDOW_ROWS, window, metric) for each in data.seeds
        )
        for cell, data in sides.items()
    }


def paired_effects(found: Round4, finding: Finding) -> dict[Side, dict[int, float]]:
    """Effect of the form on every seed of a side that ran in both, on the statistic's scale."""
    return seed_effects(finding, {cell: data.seed_numbers for cell, data in found.sides.items()})


def beside(cell: Cell, window: int, metric: str) -> tuple[float, ...] | None:
    """What was published of the same arm: (mean, lowest, highest seed), a mean alone, or none."""
    side, form = cell
    return published_window(side, PARTS[form].arm(side).name, window, metric)


# --- as JSON --------------------------------------------------------------------------------


def key(cell: Cell) -> str:
    """``reference literal``: a cell in JSON documents."""
    return " ".join(cell)


def as_json(found: Round4) -> dict[str, Any]:
    """``reading.json``: every number that ``reading.md`` shows, in full."""
    return {
        "format": FORMAT,
        "reading": found.verdict.word,
        "reasons": list(found.verdict.reasons),
        "statistics": {each.measure.name: _finding(found, each) for each in found.findings},
        "controls": {
            each.metric: {
                "window": CONTROL_WINDOW,
                "seeds": _seeds(found, each.sample),
                "changes": dict(each.changes),
                "holds": each.holds,
            }
            for each in found.controls
        },
        "not_pre_registered": {
            "seed_effects": {
                each.measure.name: {
                    side: {str(seed): value for seed, value in effects.items()}
                    for side, effects in paired_effects(found, each).items()
                }
                for each in found.findings
            },
            "paired": {
                each.measure.name: {
                    name: value and asdict(value)
                    for name, value in estimates(each, paired_effects(found, each)).items()
                }
                for each in found.findings
            },
            "windows": {
                str(end): {key(cell): _shown(table, end) for cell, table in found.windows.items()}
                for end in WINDOWS
            },
            "evaluations": {
                key(cell): {
                    str(each.seed): [row.mean for row in each.evaluations] for each in data.seeds
                }
                for cell, data in found.sides.items()
            },
            "S2": {
                key(cell): {str(seed): list(curve) for seed, curve in curves.items()}
                for cell, curves in found.s2.items()
            },
        },
    }


def _finding(found: Round4, each: Finding) -> dict[str, Any]:
    measure = each.measure
    return {
        "metric": measure.metric,
        "window": measure.window,
        "scale": "logarithm" if measure.logarithm else "as it is",
        "literal_expected": "higher" if measure.sign > 0 else "lower",
        "smallest_effect": measure.smallest,
        "seeds": _seeds(found, each.sample),
        "effects": dict(each.effects),
        "remainders": dict(each.remainders),
        "reading": each.word,
        "faults": list(each.faults),
    } | ({"sides_as_they_are_differ": each.differs} if measure.to_explain else {})


def _shown(table: WindowTable, end: int) -> dict[str, tuple[float, float, float]]:
    window = table.get(end, {})
    return {name: window[name] for name in METRICS if name in window}


def _seeds(found: Round4, sample: Sample) -> dict[str, dict[str, float]]:
    return {
        key(cell): dict(zip(map(str, found.sides[cell].seed_numbers), values, strict=True))
        for cell, values in sample.items()
    }


def over_seeds(values: Sequence[float | None]) -> tuple[float, float, float] | None:
    """(mean, lowest, highest) of one arm's seeds; ``None`` where a seed has no value."""
    found = [value for value in values if value is not None]
    if not found or len(found) < len(values):
        return None
    return mean(found), min(found), max(found)


def at_checkpoints(found: Round4, cell: Cell, name: str) -> dict[int, tuple[float, ...] | None]:
    """Checkpoint -> (mean, lowest, highest seed) of ``evaluations`` or ``S2`` of one arm."""
    data = found.sides[cell]
    curves: list[dict[int, float | None]] = [
        {row.rows: row.mean for row in each.evaluations}
        if name == "evaluations"
        else dict(
            zip((r.rows for r in each.evaluations), found.s2[cell].get(each.seed, ()), strict=False)
        )
        for each in data.seeds
    ]
    return {rows: over_seeds([curve.get(rows) for curve in curves]) for rows in data.grid}

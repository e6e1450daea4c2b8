"""Round 5: from the checked sides of its blocks to values, what the tests say, and JSON."""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.checked import Checked
from analysis.data import SideData
from analysis.load import launches, read_object
from analysis.replication import which_ajax
from analysis.round4_rules import CELLS, CONTROL_WINDOW, CONTROLS, Control, Measure, control, effect
from analysis.round5_rules import (
    MANIPULATIONS,
    MOST_ENTROPY,
    OUTCOME,
    OUTCOME_WINDOW,
    BySeed,
    Estimate,
    Placebo,
    Verdict,
    by_side,
    difference_estimate,
    effect_p,
    equivalence_p,
    log_ratios,
    manipulation_faults,
    mean_estimate,
    paired_effects,
    rest_p,
    verdict,
)
from analysis.windows import seed_value
from shared.protocol import FORMS, ROUNDS, SERIES, SIDES, WINDOW_ROWS, Form, Round, Side
from shared.records.layout import AJAX_NAME, TIMING, RunLayout

FORMAT = 1
#: By part, in the order in which they run.
BLOCKS: Mapping[str, Round] = {ROUNDS[name].part: ROUNDS[name] for name in SERIES["5"]}
#: Repeats the first block; decides nothing.
PLACEBO = "5-placebo"
#: Sides of blocks, each with the form that it ran.
Sides = Iterable[tuple[Form, SideData]]


@dataclass(frozen=True)
class Round5:
    """The values of all seeds, and everything that the rules say of them."""

    #: Of the outcome.
    values: BySeed
    paired_seeds: tuple[int, ...]
    verdict: Verdict
    #: Name of an estimate, or of a test -> the estimate with its confidence, or p.
    estimates: Mapping[str, tuple[Estimate, float]]
    p: Mapping[str, float]
    #: Measure -> side -> seed -> what the pair shows, on the measure's scale.
    manipulations: Mapping[str, Mapping[Side, Mapping[int, float]]]
    controls: tuple[Control, ...]
    #: ``None`` where a check of its runs failed, with what failed.
    placebo: Mapping[Side, Placebo] | None
    placebo_faults: tuple[str, ...]
    #: Block -> when it was started, the load then, and the seconds of each process.
    load: Mapping[str, Mapping[str, Any]]
    ajax: str

    def effects(self, side: Side) -> dict[int, float]:
        """Seed that ran in both forms -> literal minus exact."""
        literal, exact = (self.values[side, form] for form in FORMS)
        return {
            seed: literal.get(seed, math.nan) - exact.get(seed, math.nan)
            for seed in self.paired_seeds
        }


def read_round5(blocks: Mapping[str, Checked]) -> Round5:
    """Apply the registered rules to the blocks, by part; all of them have finished."""
    deciding = {part: each for part, each in blocks.items() if part != PLACEBO}
    sides = [
        (_form(part), data)
        for part, each in deciding.items()
        for data in each.loaded.sides.values()
    ]
    exact, literal = (_seeds(deciding, form) for form in ("exact", "literal"))
    paired = tuple(seed for seed in exact if seed in literal)
    values = values_of(sides, OUTCOME, OUTCOME_WINDOW)
    measured = {each: values_of(sides, each.metric, each.window) for each in MANIPULATIONS}
    failed = [f"{part}: {check}" for part, each in deciding.items() for check in each.failed]
    for measure, found in measured.items():
        failed += manipulation_faults(measure, found, paired)
    repeat = blocks.get(PLACEBO)
    faults = tuple(map(str, repeat.failed)) if repeat else ("it was not run",)
    with warnings.catch_warnings():
        # Repeats that are alike, and a side without values, have no spread.
        warnings.simplefilter("ignore", RuntimeWarning)
        return Round5(
            values,
            paired,
            verdict(values, failed, paired, exact),
            *_estimates(values, paired, exact),
            {each.name: _shown(each, found, paired) for each, found in measured.items()},
            tuple(_control(name, sides, paired) for name in CONTROLS),
            _placebo(repeat, values) if repeat and not faults else None,
            faults,
            {part: _load(each, BLOCKS[part]) for part, each in blocks.items()},
            "; ".join(dict.fromkeys(which_ajax(each.checks) for each in blocks.values())),
        )


def _form(part: str) -> Form:
    return BLOCKS[part].arm("reference").expectation


def _seeds(parts: Iterable[str], form: Form) -> tuple[int, ...]:
    return tuple(sorted(s for part in parts if _form(part) == form for s in BLOCKS[part].seeds))


def _shown(
    measure: Measure, found: BySeed, paired: tuple[int, ...]
) -> dict[Side, dict[int, float]]:
    """What each pair shows of the form, on the measure's scale."""

    def of(side: Side, seed: int) -> float:
        literal, exact = ([found[side, form].get(seed, math.nan)] for form in FORMS)
        return effect(measure, literal, exact)

    return {side: {seed: of(side, seed) for seed in paired} for side in SIDES}


def values_of(sides: Sides, metric: str, window: int) -> dict[tuple[Side, Form], dict[int, float]]:
    """Cell -> seed -> mean of ``metric`` over the window; NaN where it has none."""
    found: dict[tuple[Side, Form], dict[int, float]] = {cell: {} for cell in CELLS}
    for form, data in sides:
        for each in data.seeds:
            value = seed_value(each.records or (), WINDOW_ROWS, window, metric)
            found[data.side, form][each.seed] = value
    return found


def _estimates(
    values: BySeed, paired: tuple[int, ...], exact_seeds: tuple[int, ...]
) -> tuple[dict[str, tuple[Estimate, float]], dict[str, float]]:
    """The estimates, each with its confidence, and p of the tests, by name."""
    literal, exact = (
        by_side(values, "literal", paired),
        by_side(values, "exact", exact_seeds),
    )
    effects = {side: paired_effects(literal[side], exact[side]) for side in SIDES}
    first, second = effects["reference"], effects["ajax"]
    reference, ajax = exact["reference"], exact["ajax"]
    found = {f"effect, {side}": (mean_estimate(effects[side]), 0.95) for side in SIDES}
    found["effects, reference minus ajax"] = (difference_estimate(first, second, 0.9), 0.9)
    found["rest, reference minus ajax"] = (difference_estimate(reference, ajax), 0.95)
    found["rest for the margin"] = (difference_estimate(reference, ajax, 0.9), 0.9)
    away = [{side: MOST_ENTROPY - form[side] for side in SIDES} for form in (literal, exact)]
    for name, (high, low) in {"entropy": (literal, exact), "distance from ln 2": away}.items():
        logs = {side: log_ratios(high[side], low[side]) for side in SIDES}
        for side in SIDES:
            found[f"log ratio of {name}, {side}"] = (mean_estimate(logs[side]), 0.95)
        between = difference_estimate(logs["reference"], logs["ajax"])
        found[f"log ratio of {name}, reference minus ajax"] = (between, 0.95)
    p = {f"P1, {side}": float(effect_p(effects[side], "greater")) for side in SIDES}
    p |= {f"refuted, {side}": float(effect_p(effects[side], "less")) for side in SIDES}
    p |= {"P2": float(equivalence_p(first, second)), "P3": float(equivalence_p(reference, ajax))}
    return found, p | {"rest": float(rest_p(reference, ajax))}


def _control(name: str, sides: Sides, paired: tuple[int, ...]) -> Control:
    found = values_of(sides, name, CONTROL_WINDOW)
    return control(
        name, {cell: [found[cell].get(seed, math.nan) for seed in paired] for cell in CELLS}
    )


def _placebo(repeat: Checked, values: BySeed) -> dict[Side, Placebo]:
    seeds = BLOCKS[PLACEBO].seeds
    again = values_of(
        (("exact", data) for data in repeat.loaded.sides.values()), OUTCOME, OUTCOME_WINDOW
    )
    later, first = by_side(again, "exact", seeds), by_side(values, "exact", seeds)
    return {side: Placebo(later[side] - first[side]) for side in SIDES}


def _load(block: Checked, chosen: Round) -> dict[str, Any]:
    directory = next(iter(block.loaded.directories))
    layout, start = RunLayout(directory), launches(directory)[-1]
    places = {f"ref_s{seed}": layout.reference_dir(seed) for seed in chosen.seeds}
    places[AJAX_NAME] = layout.ajax_dir
    return {
        "launched": start.fields.get("launched"),
        "load averages": start.fields.get("load averages"),
        "seconds": {name: _seconds(place) for name, place in places.items()},
    }


def _seconds(place: Path) -> float | None:
    timing = read_object(place / TIMING) or {}
    began, ended = timing.get("t_start"), timing.get("t_end")
    if not isinstance(began, int | float) or not isinstance(ended, int | float):
        return None
    return ended - began


def as_json(found: Round5) -> dict[str, Any]:
    """``reading.json``: every number that ``reading.md`` shows, in full."""
    return {
        "format": FORMAT,
        "reading": found.verdict.reading,
        "reasons": list(found.verdict.faults),
        "tests": dict(found.verdict.flags),
        "p": dict(found.p),
        "effects": {side: found.effects(side) for side in SIDES},
        "estimates": {
            name: {**asdict(estimate), "confidence": confidence}
            for name, (estimate, confidence) in found.estimates.items()
        },
        "values": {" ".join(cell): found.values[cell] for cell in CELLS},
        "placebo": {
            "differences": found.placebo
            and {side: each.differences for side, each in found.placebo.items()},
            "faults": list(found.placebo_faults),
        },
        "manipulations": found.manipulations,
        "controls": {
            each.metric: {"changes": dict(each.changes), "holds": each.holds}
            for each in found.controls
        },
        "load": found.load,
    }

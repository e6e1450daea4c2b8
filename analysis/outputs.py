"""``summary.json`` and ``analysis3.json``: the comparison's numbers under the published keys.

Keys of protocol section 7 keep their names; everything not pre-registered stands under
``companions``, except ``entropy_disjoint``, which is pre-registered for round 2's pairs only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from analysis.checks import Check
from analysis.checks_ajax import S2Audit
from analysis.comparison import Comparison
from analysis.readings import read_round3, read_round3_as_first_written
from shared.protocol import CAP_ROWS, SIDE_KEY, SIDES, Side, s1_rows

FORMAT = 1


def file_names(round_number: int | None) -> tuple[str, str]:
    """Names of the Markdown and the JSON file of a comparison."""
    return (
        ("analysis3.md", "analysis3.json") if round_number == 3 else ("compare.md", "summary.json")
    )


def as_json(
    comparison: Comparison, checks: Sequence[Check], audits: Mapping[int, S2Audit]
) -> dict[str, Any]:
    """The JSON object that belongs to this kind of comparison."""
    make = _analysis3 if comparison.round_number == 3 else _summary
    return {
        "format": FORMAT,
        **make(comparison, audits),
        "arms": {SIDE_KEY[side]: data.arm for side, data in comparison.sides.items()},
        "sources": {SIDE_KEY[side]: data.source for side, data in comparison.sides.items()},
        "companions": _companions(comparison),
        **_apart(comparison),
        "out_of_reach": [str(missing) for missing in comparison.out_of_reach],
        "checks": [str(check) for check in checks],
        "checks_failed": sum(check.ok is False for check in checks),
    }


def _apart(comparison: Comparison) -> dict[str, Any]:
    """What only comparisons have whose sides differ in seeds or checkpoints, or cannot be right."""
    seeds = {f"seeds_{SIDE_KEY[side]}": list(comparison.sides[side].seed_numbers) for side in SIDES}
    return {
        **({"notes": list(comparison.notes), **seeds} if comparison.notes else {}),
        **({"impossible": comparison.impossible} if comparison.impossible else {}),
    }


def _seeds(comparison: Comparison) -> list[int]:
    """The seeds of either side."""
    return sorted({s for data in comparison.sides.values() for s in data.seed_numbers})


def _summary(comparison: Comparison, audits: Mapping[int, S2Audit]) -> dict[str, Any]:
    every_seed = [each for data in comparison.sides.values() for each in data.seeds]
    grid = sorted({rows for each in every_seed for rows in each.grid})

    def on_grid(rows: Sequence[int], values: Sequence[float | None]) -> list[float | None]:
        return [dict(zip(rows, values, strict=True)).get(at) for at in grid] if values else []

    return {
        "smoke": comparison.smoke,
        "seeds": _seeds(comparison),
        "rows": grid,
        **(_s1_rule(comparison) if "S1" in comparison.ruled else {}),
        "per_seed": {
            SIDE_KEY[side]: {
                str(each.seed): {
                    **_s1(comparison, side, each.seed),
                    "S2": (comparison.s2_curves[side].get(each.seed) or (None,))[-1],
                    "eval": on_grid(each.grid, [row.mean for row in each.evaluations]),
                    "S2_curve": on_grid(each.grid, comparison.s2_curves[side].get(each.seed, ())),
                }
                for each in comparison.sides[side].seeds
            }
            for side in SIDES
        },
        "ajax_s2_audit": {str(seed): asdict(audit) for seed, audit in audits.items()},
        "entropy_disjoint": comparison.disjoint_windows,
    }


def _s1_rule(comparison: Comparison) -> dict[str, Any]:
    rule = comparison.s1.rule if comparison.s1 else None
    return {
        "s1_rows": list(s1_rows(comparison.sizes.checkpoints, smoke=comparison.smoke)),
        "A": rule and rule.A,
        "ref_S1_min": rule and rule.low,
        "ref_S1_max": rule and rule.high,
        "LEARNS": rule and rule.learns,
        "WITHIN_RANGE": rule and rule.within_range,
    }


def _s1(comparison: Comparison, side: Side, seed: int) -> dict[str, float | None]:
    """S1 of one seed, in a round that has S1; ``None`` where it is out of reach."""
    if "S1" not in comparison.ruled:
        return {}
    if comparison.s1 is None or side not in comparison.s1.values:
        return {"S1": None}
    position = comparison.sides[side].seed_numbers.index(seed)
    return {"S1": float(comparison.s1.values[side][position])}


def _analysis3(comparison: Comparison, audits: Mapping[int, S2Audit]) -> dict[str, Any]:
    late, s1, found = comparison.late, comparison.s1, comparison.concordance
    values: dict[str, Any] = {
        f"{name}_{SIDE_KEY[side]}": list(map(float, each.values.get(side, ()))) if each else []
        for name, each in (("late", late), ("s1", s1))
        for side in SIDES
    }
    counts = {
        f"{SIDE_KEY[side]}_{rows}": found[side].at[rows] if side in found else None
        for rows in CAP_ROWS
        for side in SIDES
    }
    rates = {
        f"{SIDE_KEY[side]}_rate_16_24k": found[side].rate if side in found else None
        for side in SIDES
    }
    reference = found.get("reference")
    welch = late.welch if late else None
    return {
        "smoke": comparison.smoke,
        "seeds": _seeds(comparison),
        **values,
        "p_late": welch.p if welch else None,
        "t_late": welch.t if welch else None,
        "p_s1": s1.welch.p if s1 and s1.welch else None,
        "t_s1": s1.welch.t if s1 and s1.welch else None,
        **{
            f"{name}_{verdict}": getattr(each.rule, attribute) if each and each.rule else None
            for name, each in (("late", late), ("s1", s1))
            for verdict, attribute in (("LEARNS", "learns"), ("WITHIN_RANGE", "within_range"))
        },
        "concordance": counts | rates,
        "reading": read_round3(reference, welch) if reference else None,
        "reading_as_first_written": read_round3_as_first_written(reference) if reference else None,
        "ajax_s2_audit": {str(seed): asdict(audit) for seed, audit in audits.items()},
    }


def _companions(comparison: Comparison) -> dict[str, Any]:
    """Not pre-registered."""
    statistics = {
        each.name: asdict(each.companion)
        for each in (comparison.late, comparison.s1, comparison.s2)
        if each is not None and each.companion is not None
    }
    entropy = {str(rows): asdict(each) for rows, each in comparison.entropy_tests.items()}
    rates = comparison.late_rates if comparison.round_number == 3 else None
    common = {str(s.rows[0]): asdict(s.companion) for s in comparison.common if s.companion}
    return (
        statistics
        | ({"late_rate": asdict(rates)} if rates else {})
        | ({"entropy": entropy} if entropy else {})
        | ({"common": common} if common else {})
    )

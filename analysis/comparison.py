"""One comparison of two sides: every statistic that their figures allow, as one pure value."""

from dataclasses import dataclass

import numpy as np

from analysis.checks import Sizes
from analysis.companions import Companion, companion
from analysis.data import Missing, SideData, WindowTable
from analysis.statistics import (
    Concordance,
    EntropyWindow,
    Floats,
    Rule,
    Welch,
    concordance,
    mean_at,
    rule,
    s2_curve,
    welch,
)
from analysis.windows import SeedWindows, metric_at, side_windows, window_table, window_width
from shared.protocol import LATE_ROWS, SIDE_KEY, SIDES, Side, s1_rows

ENTROPY = "ent/action/mean"

#: Round -> its statistics with a rule, the one that gives the verdict last; any other has S1.
RULED: dict[int | None, tuple[str, ...]] = {3: ("S1", "LATE"), 4: ()}

Curve = tuple[float | None, ...]


@dataclass(frozen=True)
class Statistic:
    """One statistic of both sides: values over seeds ``[seeds]``, the rule, and companions.

    ``rule``, ``welch`` and ``companion`` are ``None`` where a side is missing.
    """

    name: str
    rows: tuple[int, ...]
    values: dict[Side, Floats]
    rule: Rule | None
    welch: Welch | None
    companion: Companion | None


@dataclass(frozen=True)
class Comparison:
    """Everything computed from two sides. ``round_number`` is None for a cross pair."""

    title: str
    round_number: int | None
    smoke: bool
    sizes: Sizes
    sides: dict[Side, SideData]
    s1: Statistic | None
    late: Statistic | None
    #: Side -> seed -> S2 at every checkpoint.
    s2_curves: dict[Side, dict[int, Curve]]
    s2: Statistic | None
    concordance: dict[Side, Concordance]
    windows: dict[Side, WindowTable | None]
    entropy: tuple[EntropyWindow, ...]
    #: Window -> companion of the entropy over seeds, where each seed's value is known.
    entropy_tests: dict[int, Companion]
    out_of_reach: tuple[Missing, ...]

    @property
    def late_rates(self) -> Companion | None:
        """Companion of each seed's late rate; ``None`` where a side has none."""
        rates = [self.concordance[side].seed_rates for side in SIDES if side in self.concordance]
        if len(rates) < len(SIDES) or not all(rates):
            return None
        return companion(np.array(rates[0]), np.array(rates[1]))

    @property
    def disjoint_windows(self) -> list[int]:
        """Windows (their last rows) in which the entropy's seed ranges are disjoint."""
        return [window.rows for window in self.entropy if not window.overlap]

    @property
    def ruled(self) -> tuple[str, ...]:
        """Names of the statistics that have a rule in this round, the verdict's last."""
        return ruled_statistics(self.round_number, smoke=self.smoke)

    @property
    def primary(self) -> Statistic | None:
        """The statistic whose rule is the verdict; ``None`` without one, or out of reach."""
        named = {"S1": self.s1, "LATE": self.late}
        return named[self.ruled[-1]] if self.ruled else None


def ruled_statistics(round_number: int | None, *, smoke: bool) -> tuple[str, ...]:
    """Names of a round's statistics with a rule; LATE lies beyond a smoke's last row."""
    names = RULED.get(round_number, ("S1",))
    return tuple(name for name in names if name != "LATE" or not smoke)


def compare_sides(
    title: str,
    round_number: int | None,
    sizes: Sizes,
    reference: SideData,
    ajax: SideData,
    *,
    smoke: bool,
) -> Comparison:
    """Compute every statistic that the two sides' figures allow (protocol section 9)."""
    sides: dict[Side, SideData] = {"reference": reference, "ajax": ajax}
    width = window_width(sizes.every) if sizes.rows >= 2_000 else sizes.every
    per_seed = {side: side_windows(data, width) for side, data in sides.items()}
    windows = {
        side: data.carried_windows if found is None else window_table(found)
        for (side, data), found in zip(sides.items(), per_seed.values(), strict=True)
    }
    curves = {side: _s2_curves(data) for side, data in sides.items()}
    rows = {"S1": s1_rows(sizes.checkpoints, smoke=smoke), "LATE": LATE_ROWS}
    names = ruled_statistics(round_number, smoke=smoke)
    ruled = {name: _at_checkpoints(name, sides, rows[name]) for name in names}
    s2 = _last_s2(curves, sides, sizes)
    return Comparison(
        title=title,
        round_number=round_number,
        smoke=smoke,
        sizes=sizes,
        sides=sides,
        s1=ruled.get("S1"),
        late=ruled.get("LATE"),
        s2_curves=curves,
        s2=s2,
        concordance={
            side: concordance(data.means(), data.grid) for side, data in sides.items() if data.seeds
        },
        windows=windows,
        entropy=_entropy(windows),
        entropy_tests=_entropy_tests(per_seed),
        out_of_reach=_out_of_reach(sides, ruled),
    )


def _statistic(name: str, rows: tuple[int, ...], values: dict[Side, Floats]) -> Statistic:
    if any(len(values.get(side, ())) == 0 for side in SIDES):
        return Statistic(name, rows, values, None, None, None)
    reference, ajax = values["reference"], values["ajax"]
    return Statistic(
        name,
        rows,
        values,
        rule(reference, ajax),
        welch(reference, ajax),
        companion(reference, ajax),
    )


def _at_checkpoints(
    name: str, sides: dict[Side, SideData], rows: tuple[int, ...]
) -> Statistic | None:
    values = {
        side: found
        for side, data in sides.items()
        if data.seeds and (found := mean_at(data.means(), data.grid, rows)) is not None
    }
    return _statistic(name, rows, values) if values else None


def _s2_curves(side: SideData) -> dict[int, Curve]:
    """Seed -> S2 at its evaluations' rows: from episodes, Ajax's log, or carried."""
    curves: dict[int, Curve] = {}
    for each in side.seeds:
        if each.episodes is not None:
            grid = [row.rows for row in each.evaluations]
            curves[each.seed] = tuple(s2_curve(each.episodes, grid))
        elif side.side == "ajax" and each.records is not None:
            curves[each.seed] = tuple(row.s2_logged for row in each.records)
        elif each.carried_s2 is not None:
            curves[each.seed] = each.carried_s2
    return curves


def _last_s2(
    curves: dict[Side, dict[int, Curve]], sides: dict[Side, SideData], sizes: Sizes
) -> Statistic | None:
    """S2 at the last checkpoint that every seed has, of the sides on which every seed has one."""
    by_rows = {
        side: [
            dict(zip((row.rows for row in each.evaluations), curves[side][each.seed], strict=False))
            for each in data.seeds
        ]
        for side, data in sides.items()
        if data.seeds and len(curves[side]) == len(data.seeds)
    }
    shared = set(sizes.checkpoints).intersection(*(s for each in by_rows.values() for s in each))
    if not by_rows or not shared:
        return None
    values: dict[Side, Floats] = {}
    for side, seeds in by_rows.items():
        found = [value for each in seeds if (value := each[max(shared)]) is not None]
        if len(found) == len(seeds):
            values[side] = np.array(found, dtype=np.float64)
    return _statistic("S2", (max(shared),), values) if values else None


def _entropy(windows: dict[Side, WindowTable | None]) -> tuple[EntropyWindow, ...]:
    tables = {side: table for side, table in windows.items() if table}
    if len(tables) < len(SIDES):
        return ()
    shared = set.intersection(
        *({end for end, row in table.items() if ENTROPY in row} for table in tables.values())
    )
    return tuple(
        EntropyWindow(
            end,
            {
                side: (table[end][ENTROPY][1], table[end][ENTROPY][2])
                for side, table in tables.items()
            },
        )
        for end in sorted(shared)
    )


def _entropy_tests(windows: dict[Side, dict[int, SeedWindows] | None]) -> dict[int, Companion]:
    reference, ajax = windows["reference"], windows["ajax"]
    if reference is None or ajax is None:
        return {}
    tests = {}
    for end in sorted(
        set.intersection(*(set(each) for each in (*reference.values(), *ajax.values())))
    ):
        first, second = (metric_at(each, end, ENTROPY) for each in (reference, ajax))
        if first and second:
            tests[end] = companion(np.array(first), np.array(second))
    return tests


def _out_of_reach(
    sides: dict[Side, SideData], wanted: dict[str, Statistic | None]
) -> tuple[Missing, ...]:
    """What the files lack, and which checkpoint-based statistics a side's grid does not reach."""
    found = [missing for data in sides.values() for missing in data.missing]
    for side, data in sides.items():
        lost = [name for name, value in wanted.items() if value is None or side not in value.values]
        if data.seeds and lost:
            last = data.grid[-1] if data.grid else 0
            found.append(Missing(f"{SIDE_KEY[side]} evaluations past row {last}", ", ".join(lost)))
    return tuple(found)

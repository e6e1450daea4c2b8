"""One comparison of two sides: every statistic that their figures allow, as one pure value."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analysis.checks import Sizes
from analysis.companions import Companion, companion
from analysis.data import Missing, SideData, WindowTable
from analysis.formats import integers, some
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
from analysis.windows import SeedWindows, common_width, metric_at, side_windows, window_table
from shared.protocol import (
    CAP_RATE_WINDOW,
    CAP_ROWS,
    LATE_ROWS,
    SIDE_KEY,
    SIDE_LABEL,
    SIDES,
    WINDOW_ROWS,
    Side,
    s1_rows,
)

ENTROPY = "ent/action/mean"
#: How the title begins where a check says that the data cannot be right.
NO_VERDICT = "No verdict, the data cannot be right"

#: Round -> its statistics with a rule, the one that gives the verdict last; any other has S1.
RULED: dict[int | None, tuple[str, ...]] = {3: ("S1", "LATE"), 4: (), 5: ()}

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
    #: Where the sides differ in their checkpoints: the evaluation at each one that all seeds have.
    common: tuple[Statistic, ...] = ()
    #: What the sides do not have in common, a line each.
    notes: tuple[str, ...] = ()
    #: The first check that says that the data cannot be right: then no rule is applied.
    impossible: str | None = None

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
    width = common_width(sides.values(), sizes.every) if sizes.rows >= 2_000 else sizes.every
    per_seed = {side: side_windows(data, width) for side, data in sides.items()}
    windows = {
        side: window_table(found)
        if found is not None
        # As published, ranges over seeds of windows of one width.
        else (data.carried_windows if width == WINDOW_ROWS else None)
        for (side, data), found in zip(sides.items(), per_seed.values(), strict=True)
    }
    curves = {side: _s2_curves(data) for side, data in sides.items()}
    rows = {"S1": s1_rows(sizes.checkpoints, smoke=smoke), "LATE": LATE_ROWS}
    names = ruled_statistics(round_number, smoke=smoke)
    ruled = {name: _at_checkpoints(name, sides, rows[name]) for name in names}
    s2 = _last_s2(curves, sides)
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
        concordance={side: _concordance(data) for side, data in sides.items() if data.seeds},
        windows=windows,
        entropy=_entropy(windows),
        entropy_tests=_entropy_tests(per_seed),
        out_of_reach=(*_out_of_reach(sides, names, rows), *_windows_out_of_reach(sides, windows)),
        common=_common(sides),
        notes=_notes(sides),
    )


def withhold(found: Comparison, reason: str) -> Comparison:
    """The same figures without a rule, a test or a reading: by ``reason`` they cannot be right."""

    def bare(statistic: Statistic | None) -> Statistic | None:
        return statistic and replace(statistic, rule=None, welch=None, companion=None)

    return replace(
        found,
        title=f"{NO_VERDICT}: {found.title}",
        s1=bare(found.s1),
        late=bare(found.late),
        s2=bare(found.s2),
        concordance={},
        entropy_tests={},
        common=(),
        impossible=reason,
    )


def _concordance(data: SideData) -> Concordance:
    """At the protocol's checkpoints: the late rate needs all of them, a finer grid has others."""
    late = [rows for rows in LATE_ROWS if CAP_RATE_WINDOW[0] <= rows <= CAP_RATE_WINDOW[1]]
    wanted = late if set(late) <= set(data.grid) else CAP_ROWS
    kept = [index for index, rows in enumerate(data.grid) if rows in wanted]
    return concordance(data.means()[:, kept], [data.grid[index] for index in kept])


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
            curves[each.seed] = tuple(s2_curve(each.episodes, each.grid))
        elif side.side == "ajax" and each.records is not None:
            logged = {row.rows: row.s2_logged for row in each.records}
            curves[each.seed] = tuple(logged.get(rows) for rows in each.grid)
        elif each.carried_s2 is not None:
            curves[each.seed] = each.carried_s2
    return curves


def _last_s2(curves: dict[Side, dict[int, Curve]], sides: dict[Side, SideData]) -> Statistic | None:
    """S2 at the last checkpoint that every seed has, of the sides on which every seed has one."""
    by_rows = {
        side: [
            dict(zip((row.rows for row in each.evaluations), curves[side][each.seed], strict=False))
            for each in data.seeds
        ]
        for side, data in sides.items()
        if data.seeds and len(curves[side]) == len(data.seeds)
    }
    every_seed = [set(seed) for seeds in by_rows.values() for seed in seeds]
    if not every_seed or not (shared := set.intersection(*every_seed)):
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
    sides: dict[Side, SideData], names: tuple[str, ...], wanted: dict[str, tuple[int, ...]]
) -> tuple[Missing, ...]:
    """What the files lack, and the checkpoints that each statistic lacks."""
    found = [missing for data in sides.values() for missing in data.missing]
    for side, data in sides.items():
        for name in names if data.seeds else ():
            if lacking := set(wanted[name]) - set(data.grid):
                without = [each.seed for each in data.seeds if not lacking <= set(each.grid)]
                seeds = f" of seeds {integers(without)}" if len(without) < len(data.seeds) else ""
                at = f"{SIDE_KEY[side]} evaluations{seeds} at {some(lacking)}"
                found.append(Missing(at, name))
    return tuple(found)


def _windows_out_of_reach(
    sides: dict[Side, SideData], windows: dict[Side, WindowTable | None]
) -> Iterator[Missing]:
    """Window means that a side's files hold, where the other side has no window of these rows."""
    held = {
        side: data.carried_windows is not None or all(each.records for each in data.seeds)
        for side, data in sides.items()
        if data.seeds
    }
    if len(held) == len(SIDES) and all(held.values()):
        reference, ajax = (set(windows[side] or ()) for side in SIDES)
        if not reference & ajax:
            what = "records at the same rows on both sides, from the first on"
            yield Missing(what, "training-metric windows, entropy overlap")


def _common(sides: dict[Side, SideData]) -> tuple[Statistic, ...]:
    """The evaluation at each common checkpoint; not where all seeds have the same."""
    grids = {seed.grid for data in sides.values() for seed in data.seeds}
    if len(grids) < 2 or not all(data.seeds for data in sides.values()):
        return ()
    shared = sorted(set.intersection(*map(set, grids)))
    found = (_at_checkpoints(f"row {rows}", sides, (rows,)) for rows in shared)
    # The rules are about other statistics.
    return tuple(replace(each, rule=None) for each in found if each is not None)


def _notes(sides: dict[Side, SideData]) -> tuple[str, ...]:
    """What the sides do not have in common: seeds, and checkpoints."""
    if not all(data.seeds for data in sides.values()):
        return ()
    notes = []
    if len({data.seed_numbers for data in sides.values()}) > 1:
        own = (f"{SIDE_LABEL[side]} {integers(d.seed_numbers)}" for side, d in sides.items())
        notes.append(f"seeds: {', '.join(own)}; all are used, and no statistic here is paired")
    common = set.intersection(*(set(data.grid) for data in sides.values()))
    alone = []
    for side, data in sides.items():
        for seed in data.seeds:
            if others := set(seed.grid) - common:
                alone.append((f"{SIDE_KEY[side]} s{seed.seed}", some(others)))
    if alone:
        shared = f"{len(common)} common checkpoints: {some(common)}" if common else "none"
        own = (f"{name} {rows}" for name, rows in alone)
        notes.append(f"compared: {shared}; not on every seed of both sides: {', '.join(own)}")
    return tuple(notes)

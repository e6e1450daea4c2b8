"""Tables of part ``matched``."""

from collections.abc import Sequence

from diagnose.departures import Compared
from diagnose.findings import Table, number
from diagnose.form_claims import CELLS, EXACT, PAIRS, Pair, Partings, Runs, cell_name, levels_of

#: Metrics in the table of those that come nearest to departing.
NEAREST = 10


def pairs_table(parting: Partings) -> Table:
    """Each pair: what it shows, and where it departs first."""
    rows = []
    for (one, two), found in parting.items():
        first = found[0].text if found else "none"
        shows = PAIRS[one, two]
        rows.append((f"{cell_name(one)} / {cell_name(two)}", shows, first, str(len(found))))
    return Table(
        "For every pair of arms the metric that departs first, and how many depart.",
        ("pair", "shows", "departs first", "metrics"),
        rows,
    )


def metrics_table(parting: Partings) -> Table:
    """Each metric that departs: by pair the update at which it does."""
    updates: dict[str, dict[Pair, int]] = {}
    for pair, found in parting.items():
        for each in found:
            updates.setdefault(each.metric, {})[pair] = each.update
    last = float("inf")
    order = sorted(
        updates, key=lambda name: ([updates[name].get(pair, last) for pair in parting], name)
    )
    return Table(
        "Update at which a metric departs first, by pair (-: it does not); metrics of no row do "
        "not depart in any.",
        ("metric", *(f"{cell_name(one)} / {cell_name(two)}" for one, two in parting)),
        [(name, *(str(updates[name].get(pair, "-")) for pair in parting)) for name in order],
    )


def nearest_table(port: Sequence[Compared]) -> Table:
    """The port itself: the metrics that cannot be judged to the end, and the nearest ones."""
    order = sorted(port, key=lambda each: (each.lost is None, -each.of_tolerance))
    lost = sum(each.lost is not None for each in port)
    return Table(
        f"{' / '.join(map(cell_name, EXACT))}: the metrics that rounding alone moves by too much "
        f"to be judged to the end, then the {NEAREST} nearest to departing, with their largest "
        "differences.",
        ("metric", "at update", "of its tolerance", "of its size", "judged before update"),
        [
            (
                *(each.metric, str(each.nearest), number(each.of_tolerance)),
                *(number(each.of_scale), "end" if each.lost is None else str(each.lost)),
            )
            for each in order[: lost + NEAREST]
        ],
    )


def levels_table(runs: Runs) -> Table:
    """What follows the form, and what should not: means of every arm."""
    return Table(
        "Means over all updates.",
        ("metric", *map(cell_name, CELLS)),
        [(name, *levels.values()) for name, levels in levels_of(runs).items()],
    )

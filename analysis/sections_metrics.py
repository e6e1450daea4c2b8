"""Sections about training metrics: the actor's entropy, the windows, and the published ones."""

from collections import Counter

from analysis.companions import disjoint_by_chance
from analysis.formats import DASH, integers, interval, markdown_table, span, yes
from analysis.replication import NEAR, ajax_note, beside_published, which_ajax
from analysis.sections import UNREGISTERED, Page, companion_table
from analysis.statistics import ranges_overlap
from shared.metrics import TABLE_METRICS
from shared.protocol import SIDE_LABEL, SIDES


def entropy(page: Page) -> list[str]:
    """The actor's entropy: seed ranges in every window."""
    comparison = page.comparison
    if not comparison.entropy:
        return []
    rows = [
        [
            str(window.rows),
            *(span(*window.ranges[side], digits=4) for side in SIDES),
            yes(window.overlap),
        ]
        for window in comparison.entropy
    ]
    n, m = (len(comparison.sides[side].seeds) for side in SIDES)
    # Pre-registered for round 2's pairs (prereg/ROUND2.md).
    mark = "" if comparison.round_number == 2 else f" ({UNREGISTERED} in this round)"
    lines = [
        f"## Entropy of the actor{mark}",
        "",
        "Seed ranges of `ent/action/mean` (nats) in each window; disjoint in the windows ending at "
        f"{integers(comparison.disjoint_windows)}.",
        "",
        *markdown_table(["window ends", *(SIDE_LABEL[side] for side in SIDES), "overlap"], rows),
        "",
        f"Not pre-registered: ranges of {n} and {m} exchangeable seeds are disjoint in "
        f"{disjoint_by_chance(n, m):.1%} of single windows by chance; neighbouring windows are not "
        "independent.",
    ]
    tests = comparison.entropy_tests
    if not tests:
        return [*lines, "Tests and intervals need each seed's value, not only the ranges."]
    named = {str(end): (found, 4) for end, found in tests.items()}
    return [*lines, "", *companion_table(comparison, "window ends", named)]


def replication(page: Page) -> list[str]:
    """Where a run's windows lie beside the published ones of the same arm; not for tiny widths."""
    lines: list[str] = []
    if page.comparison.sizes.tiny:
        return lines
    for side, data in page.comparison.sides.items():
        found = list(beside_published(data, page.comparison.windows[side]))
        if not found:
            continue
        words = Counter(each.word for each in found)
        lines += [
            "",
            f"{SIDE_LABEL[side]}, {data.arm}: of {len(found)} window means {words['inside']} lie "
            f"inside the published seed range, {words['near']} within {NEAR:.0%} of it, "
            f"{words['outside']} outside.",
        ]
        rows = [
            [
                str(each.rows),
                f"`{each.metric}`",
                interval((each.low, each.high), 4),
                interval((each.published_low, each.published_high), 4),
                f"{each.excess:.1%}",
            ]
            for each in found
            if each.word != "inside"
        ]
        if rows:
            head = ["window ends", "metric", "this run", "published", "outside by"]
            lines += ["", *markdown_table(head, rows)]
    if not lines:
        return []
    note = ["", ajax_note(which_ajax(page.checks))] if page.comparison.sides["ajax"].seeds else []
    return ["## Beside the published windows (not pre-registered)", *note, *lines]


def windows(page: Page) -> list[str]:
    """Window means of the training metrics."""
    tables = {side: table for side, table in page.comparison.windows.items() if table}
    ends = sorted({end for table in tables.values() for end in table})
    lines = ["## Training metrics, window means", "", "Mean over seeds [lowest, highest].",
             "An asterisk marks disjoint seed ranges (not pre-registered)."]  # fmt: skip
    for end in ends:
        rows = []
        for name in TABLE_METRICS:
            found = [tables.get(side, {}).get(end, {}).get(name) for side in SIDES]
            if any(found):
                cells = [f"{v[0]:.4f} {interval(v[1:], 4)}" if v else DASH for v in found]
                first, second = found
                disjoint = first and second and not ranges_overlap(first[1:], second[1:])
                rows.append([f"`{name}`{' *' if disjoint else ''}", *cells])
        if rows:
            head = ["metric", *(SIDE_LABEL[side] for side in SIDES)]
            lines += ["", f"### Window ending at {end} rows", "", *markdown_table(head, rows)]
    return lines if ends else []

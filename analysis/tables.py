"""``compare.md`` and ``analysis3.md``: a comparison as Markdown, section by section."""

from collections.abc import Callable, Sequence

from analysis import sections, sections_metrics
from analysis.checks import Check
from analysis.comparison import Comparison
from analysis.formats import DASH, integers, markdown_table, span
from analysis.replication import ajax_line
from analysis.sections import Page
from shared.protocol import ARMS, KNOWN_DIFFERENCES, SIDE_LABEL

Section = Callable[[Page], list[str]]


def render(comparison: Comparison, checks: Sequence[Check]) -> str:
    """The whole document: the sections of this kind of comparison that have content."""
    page = Page(comparison, checks)
    kind = ROUND3 if comparison.round_number == 3 else ROUNDS_1_AND_2
    parts = ["\n".join(lines) for section in kind if (lines := section(page))]
    return "\n\n".join(parts) + "\n"


#: Instead of a verdict, where a part of a round has no rule of its own.
NO_RULE = "No rule is about this part alone: round {} is read from its parts together (reading.md)."


def verdict(comparison: Comparison) -> str:
    """One sentence: what the rule says of the comparison."""
    if comparison.impossible:
        return f"No rule is applied. The first check that says so: {comparison.impossible}."
    if not comparison.ruled:
        return NO_RULE.format(comparison.round_number)
    statistic = comparison.primary
    if statistic is None or statistic.rule is None:
        return "The rule is out of reach: a side or a checkpoint is missing (below)."
    rule = statistic.rule
    where = f"Ajax {rule.A:.1f}, reference seeds {span(rule.low, rule.high)}"
    if rule.within_range:
        return f"{statistic.name}: Ajax lies within the reference's seed range ({where})."
    if rule.learns:
        return f"{statistic.name}: Ajax lies above the reference's seed range ({where})."
    return (
        f"{statistic.name}: LEARNS fails, Ajax lies {rule.low - rule.A:.1f} below the lowest "
        f"reference seed ({where})."
    )


def _head(page: Page) -> list[str]:
    sizes = page.comparison.sizes
    rows = [
        [
            SIDE_LABEL[side],
            data.arm_label if data.seeds else DASH,
            data.source,
            integers(data.seed_numbers),
        ]
        for side, data in page.comparison.sides.items()
    ]
    whose = "" if sizes.recorded else "Sizes are not recorded; the round has "
    failed = sum(check.ok is False for check in page.checks)
    return [
        f"# {page.comparison.title}",
        "",
        verdict(page.comparison),
        "",
        f"{whose}{sizes.rows} rows, evaluation every {sizes.every} rows on "
        f"{sizes.episodes} episodes"
        f"{', tiny widths (smoke: plumbing only, no learning)' if sizes.tiny else ''}. "
        f"Checks: {sum(check.ok is True for check in page.checks)} passed, {failed} failed, "
        f"{sum(check.ok is None for check in page.checks)} not possible.",
        "",
        *(f"{line}\n" for line in ajax_line(page.checks)),
        *(f"{note[0].upper()}{note[1:]}.\n" for note in page.comparison.notes),
        *markdown_table(["side", "arm", "figures from", "seeds"], rows),
    ]


def _out_of_reach(page: Page) -> list[str]:
    lines = [f"- {missing}" for missing in page.comparison.out_of_reach]
    return ["## Out of reach", "", *lines] if lines else []


def _checks(page: Page) -> list[str]:
    ordered = sorted(page.checks, key=lambda check: (check.ok is not False, check.ok is not None))
    return ["## Checks", "", *(f"- {check}" for check in ordered)] if page.checks else []


def _known(page: Page) -> list[str]:
    arms = {(each.side, each.name): each for each in ARMS}
    here = [arms.get((side, data.arm or "")) for side, data in page.comparison.sides.items()]
    lines = []
    for each in KNOWN_DIFFERENCES:
        gone = here[0] and here[1] and each.removed(here[0], here[1])
        note = " (removed by the arms of this comparison)" if gone else ""
        lines.append(f"- {each.name}{note}: {each.text}.")
    return ["## Known differences that the protocol cannot remove", "", *lines]


_COMMON: tuple[Section, ...] = (
    sections.companions,
    sections.common,
    sections.evaluations,
    sections.s2_curves,
    sections_metrics.replication,
    sections_metrics.windows,
    _out_of_reach,
    _checks,
    _known,
)
ROUNDS_1_AND_2: tuple[Section, ...] = (
    _head,
    sections.s1,
    sections.s2,
    sections_metrics.entropy,
    *_COMMON,
)
ROUND3: tuple[Section, ...] = (
    _head,
    sections.late,
    sections.s1,
    sections.welch,
    sections.concordance,
    sections.reading3,
    sections.s2,
    sections_metrics.entropy,
    *_COMMON,
)

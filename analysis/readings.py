"""Pre-registered readings of rounds 2 and 3 (protocol section 9): what a result means, in words."""

from dataclasses import dataclass

from analysis.comparison import Comparison, Statistic
from analysis.formats import interval, number, p_value
from analysis.statistics import Concordance, Welch
from shared.protocol import (
    CAP_RETURN,
    CAP_ROWS,
    H1_LATE_RATE,
    H1_RUNS,
    SIDE_LABEL,
    SIDES,
    SIGNIFICANCE,
    Side,
)


@dataclass(frozen=True)
class Gap:
    """The S1 gap of one comparison, in both senses that round 2's wording leaves open."""

    of_means: float
    to_lowest: float
    within_range: bool
    overlapping: int
    windows: int


@dataclass(frozen=True)
class PairReading:
    """One pair of round 2 beside round 1: does it meet the pre-registered conditions?"""

    gap: Gap
    shrank_of_means: bool
    shrank_to_lowest: bool

    @property
    def entropy_mostly_overlaps(self) -> bool:
        """Whether the seed ranges of the entropy overlap in most windows."""
        return 2 * self.gap.overlapping > self.gap.windows

    def holds(self, *, shrank: bool) -> bool:
        """The pair's conditions, given one reading of "the gap is smaller"."""
        return (self.gap.within_range or shrank) and self.entropy_mostly_overlaps


@dataclass(frozen=True)
class Round2Reading:
    """Both pairs against round 1, and the reading in words."""

    round1: Gap
    pairs: dict[str, PairReading]
    text: str


def gap(comparison: Comparison) -> Gap | None:
    """Both gaps of one comparison; ``None`` where S1 or the entropy windows are out of reach."""
    s1 = comparison.s1
    if s1 is None or s1.rule is None or s1.companion is None or not comparison.entropy:
        return None
    return Gap(
        of_means=s1.companion.difference,
        to_lowest=s1.rule.low - s1.rule.A,
        within_range=s1.rule.within_range,
        overlapping=sum(window.overlap for window in comparison.entropy),
        windows=len(comparison.entropy),
    )


def read_round2(round1: Comparison, pairs: dict[str, Comparison]) -> Round2Reading | None:
    """Is D22 the whole difference? ``None`` where a comparison lacks what the reading needs.

    The wording did not define the gap. Where its two senses disagree the reading is unsettled by
    its own wording, and says so.
    """
    first = gap(round1)
    gaps = {name: gap(each) for name, each in pairs.items()}
    if first is None or any(each is None for each in gaps.values()):
        return None
    read = {
        name: PairReading(each, each.of_means < first.of_means, each.to_lowest < first.to_lowest)
        for name, each in gaps.items()
        if each is not None
    }
    senses = {
        "between the means": all(each.holds(shrank=each.shrank_of_means) for each in read.values()),
        "to the lowest reference seed": all(
            each.holds(shrank=each.shrank_to_lowest) for each in read.values()
        ),
    }
    yes = [sense for sense, holds in senses.items() if holds]
    if len(yes) == len(senses):
        text = "D22 is the whole difference"
    elif not yes:
        text = "D22 is not the whole difference"
    else:
        text = (
            "unsettled by its own wording: D22 is the whole difference with the gap taken "
            f"{yes[0]}, and is not with the other sense of the gap"
        )
    return Round2Reading(first, read, text)


H1 = "H1 (the reference's last checkpoint is special)"
H3 = "H3 (the reference learns faster late)"
AJAX_HIGHER = "a significant LATE difference the other way (Ajax higher)"
#: The words of the publication; what H2 is, :data:`HYPOTHESES` says.
H2 = "H2 or noise (no reference concordance beyond its late rate, no significant LATE difference)"
HYPOTHESES = (
    "H1: the end of a run is special on the reference's side. H2 or noise: the reference's runs "
    "are correlated, because the stock replay sampler is seeded 0 in every run (D2), or the jump "
    "is noise; the rule does not tell these two apart. H3: the reference learns faster late."
)


def read_round3(reference: Concordance, late: Welch | None) -> str | None:
    """Reading of round 3 as amended on 2026-10-04; ``None`` where a figure is out of reach."""
    last = reference.at[CAP_ROWS[1]]
    if last is None or reference.rate is None or late is None:
        return None
    if last >= H1_RUNS and reference.rate <= H1_LATE_RATE:
        return H1
    if late.p < SIGNIFICANCE:
        return H3 if late.t > 0 else AJAX_HIGHER
    return H2


def read_round3_as_first_written(reference: Concordance) -> str | None:
    """Whether H1 would fire by the rule before its amendment; shown beside, never instead.

    H1 if at least 4 runs reach 400 at 24000 while the rate at 20000 is no higher than the rate
    over [16000, 24000].
    """
    first, last = (reference.at[rows] for rows in CAP_ROWS)
    if first is None or last is None or reference.rate is None:
        return None
    fires = last >= H1_RUNS and first / reference.seeds <= reference.rate
    return H1 if fires else "not H1"


def round3_notes(comparison: Comparison) -> list[str]:
    """What stands beside round 3's reading: the hypotheses, the counts and both differences."""
    lines = [HYPOTHESES, ""]
    found = comparison.concordance
    first = CAP_ROWS[0]
    counts = [
        f"{found[side].at[first]} of {found[side].seeds} ({SIDE_LABEL[side]})"
        for side in SIDES
        if side in found and found[side].at[first] is not None
    ]
    if len(counts) == len(SIDES):
        lines += [f"Runs that reach {CAP_RETURN:.0f} at row {first}: {' and '.join(counts)}.", ""]
    told = [difference_told(each) for each in (comparison.late, comparison.s1) if each is not None]
    return [*lines, " ".join(filter(None, told))]


def difference_told(statistic: Statistic) -> str | None:
    """A difference of means in a sentence, with its interval; ``None`` where there is no test.

    A p above 5 % is no evidence that the sides are equal: they are *not distinguished*.
    """
    found, test = statistic.companion, statistic.welch
    if found is None or test is None:
        return None
    higher: Side = "reference" if found.difference > 0 else "ajax"
    favours = f"{SIDE_LABEL[higher]} is higher by {number(abs(found.difference))}"
    word = "distinguished" if test.p < SIGNIFICANCE else "not distinguished"
    return (
        f"{statistic.name} (reference minus Ajax, {number(found.difference)} "
        f"{interval(found.interval)}, Welch p {p_value(test.p)}): the sides are {word}; {favours}."
    )

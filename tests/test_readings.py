"""Readings of rounds 2 and 3: every branch, both senses of the gap, and the boundaries."""

from itertools import product

import numpy as np
import pytest

from analysis.comparison import Comparison
from analysis.readings import (
    AJAX_HIGHER,
    H1,
    H2,
    H3,
    gap,
    read_round2,
    read_round3,
    read_round3_as_first_written,
)
from analysis.statistics import Concordance, Welch, concordance
from shared.protocol import checkpoints
from tests.made_sides import compare_means

GRID = checkpoints(24_000, 400)


# --- round 3 --------------------------------------------------------------------------------


def capped(last: int, late: int, *, at_20000: int = 0) -> Concordance:
    """Five runs of which ``last`` end at the cap; ``late`` of the 105 late checkpoints do."""
    means = np.zeros((5, len(GRID)))
    means[:last, GRID.index(24_000)] = 400.0
    means[:at_20000, GRID.index(20_000)] = 450.0
    free = [
        (seed, column)
        for seed, column in product(range(5), range(len(GRID)))
        if 16_000 <= GRID[column] <= 24_000 and GRID[column] not in (20_000, 24_000)
    ]
    for place in free[: late - last - at_20000]:
        means[place] = 500.0
    found = concordance(means, GRID)
    assert (found.at[24_000], found.at[20_000]) == (last, at_20000)
    assert found.rate == late / 105
    return found


REFERENCE_HIGHER = Welch(t=3.0, p=0.01, df=8.0)
AJAX_AHEAD = Welch(t=-3.0, p=0.01, df=8.0)
NO_DIFFERENCE = Welch(t=1.795, p=0.1216, df=8.0)


@pytest.mark.parametrize(
    ("last", "late", "welch", "reading"),
    [
        (4, 40, NO_DIFFERENCE, H1),
        (5, 40, NO_DIFFERENCE, H1),
        # H1 comes first, whatever LATE says.
        (4, 40, REFERENCE_HIGHER, H1),
        (4, 40, AJAX_AHEAD, H1),
        (3, 40, NO_DIFFERENCE, H2),
        (3, 40, REFERENCE_HIGHER, H3),
        (3, 40, AJAX_AHEAD, AJAX_HIGHER),
        # A policy that simply reaches the cap late is not H1: the amendment.
        (5, 90, NO_DIFFERENCE, H2),
        (5, 90, REFERENCE_HIGHER, H3),
    ],
)
def test_round_3_reads_every_branch(last: int, late: int, welch: Welch, reading: str) -> None:
    assert read_round3(capped(last, late), welch) == reading


@pytest.mark.parametrize(("late", "reading"), [(41, H1), (42, H1), (43, H2)])
def test_a_late_rate_of_exactly_four_tenths_is_still_h1(late: int, reading: str) -> None:
    assert 42 / 105 == 0.4
    assert read_round3(capped(4, late), NO_DIFFERENCE) == reading


@pytest.mark.parametrize(
    ("p", "t", "reading"),
    [
        (np.nextafter(0.05, 0), 2.4, H3),
        (0.05, 2.4, H2),
        (np.nextafter(0.05, 0), -2.4, AJAX_HIGHER),
        (0.05, -2.4, H2),
    ],
)
def test_a_p_of_exactly_five_percent_is_not_significant(p: float, t: float, reading: str) -> None:
    assert read_round3(capped(3, 40), Welch(t, float(p), 8.0)) == reading


def test_round_3_is_not_read_where_a_figure_is_out_of_reach() -> None:
    short = concordance(np.full((5, 10), 450.0), checkpoints(20_000, 2_000))
    assert read_round3(short, NO_DIFFERENCE) is None
    assert read_round3(capped(4, 40), None) is None
    assert read_round3_as_first_written(short) is None


@pytest.mark.parametrize(
    ("last", "late", "at_20000", "fires"),
    [
        (4, 42, 2, True),  # 2 of 5 at 20000 is the late rate: no higher
        (4, 41, 2, False),
        (3, 42, 2, False),
        (5, 104, 4, True),  # reaches the cap late: fires as first written, not as amended
    ],
)
def test_h1_as_first_written(last: int, late: int, at_20000: int, fires: bool) -> None:
    reference = capped(last, late, at_20000=at_20000)
    assert read_round3_as_first_written(reference) == (H1 if fires else "not H1")


# --- round 2 --------------------------------------------------------------------------------

WINDOWS = 10


def comparison(reference: list[float], ajax: list[float], overlapping: int = 8) -> Comparison:
    """Flat curves, so that S1 is the given value per seed; the last windows do not overlap."""
    columns = np.ones(WINDOWS)
    entropy = np.tile(np.linspace(0.4, 0.6, len(reference))[:, None], WINDOWS)
    other = entropy.copy()
    other[:, overlapping:] -= 0.3
    return compare_means(
        np.outer(reference, columns), np.outer(ajax, columns), entropy=(entropy, other)
    )


#: Means 300 against 200: gap of means 100, gap to the lowest reference seed 50.
ROUND_1 = ([250.0, 300.0, 350.0], [190.0, 200.0, 210.0])
#: Both gaps smaller: of means 80, to the lowest 40.
SMALLER = ([260.0, 300.0, 340.0], [210.0, 220.0, 230.0])
#: As published of pair E: smaller between the means (90), larger to the lowest seed (70).
MEANS_ONLY = ([280.0, 300.0, 320.0], [200.0, 210.0, 220.0])
#: The other way round: larger between the means (120), smaller to the lowest seed (30).
LOWEST_ONLY = ([230.0, 300.0, 430.0], [190.0, 200.0, 210.0])
LARGER = ([290.0, 300.0, 310.0], [150.0, 160.0, 170.0])
INSIDE = ([150.0, 300.0, 950.0], [190.0, 200.0, 210.0])  # WITHIN_RANGE though the gap grew

WHOLE = "D22 is the whole difference"
NOT_WHOLE = "D22 is not the whole difference"


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (SMALLER, SMALLER, WHOLE),
        (INSIDE, SMALLER, WHOLE),
        (INSIDE, INSIDE, WHOLE),
        (LARGER, SMALLER, NOT_WHOLE),
        (SMALLER, LARGER, NOT_WHOLE),
        (ROUND_1, SMALLER, NOT_WHOLE),  # an equal gap is not a smaller one
        (MEANS_ONLY, LOWEST_ONLY, NOT_WHOLE),
    ],
)
def test_round_2_holds_only_where_both_pairs_do(first, second, text) -> None:
    pairs = {"pairE": comparison(*first), "pairR": comparison(*second)}
    assert read_round2(comparison(*ROUND_1), pairs).text == text


@pytest.mark.parametrize(
    ("unclear", "sense"),
    [(MEANS_ONLY, "between the means"), (LOWEST_ONLY, "to the lowest reference seed")],
)
def test_round_2_is_unsettled_where_the_senses_of_the_gap_disagree(unclear, sense) -> None:
    pairs = {"pairE": comparison(*unclear), "pairR": comparison(*SMALLER)}
    text = read_round2(comparison(*ROUND_1), pairs).text
    assert text.startswith("unsettled by its own wording")
    assert f"with the gap taken {sense}," in text


@pytest.mark.parametrize(("overlapping", "text"), [(10, WHOLE), (6, WHOLE), (5, NOT_WHOLE)])
def test_most_windows_are_more_than_half(overlapping: int, text: str) -> None:
    pairs = {"pairE": comparison(*SMALLER, overlapping), "pairR": comparison(*SMALLER)}
    reading = read_round2(comparison(*ROUND_1, overlapping=0), pairs)
    assert reading.pairs["pairE"].gap.overlapping == overlapping
    assert reading.text == text


def test_the_gap_is_taken_in_both_senses() -> None:
    found = gap(comparison(*ROUND_1, overlapping=3))
    assert (found.of_means, found.to_lowest) == (100.0, 50.0)
    assert (found.within_range, found.overlapping, found.windows) == (False, 3, WINDOWS)


def test_round_2_is_not_read_without_entropy_or_s1() -> None:
    bare = compare_means(np.ones((3, WINDOWS)), np.ones((3, WINDOWS)))
    short = compare_means(np.ones((3, 5)), np.ones((3, 5)), entropy=(np.ones((3, 5)),) * 2)
    whole = comparison(*ROUND_1)
    assert gap(bare) is None and gap(short) is None
    assert read_round2(bare, {"pairE": whole, "pairR": whole}) is None
    assert read_round2(whole, {"pairE": whole, "pairR": short}) is None

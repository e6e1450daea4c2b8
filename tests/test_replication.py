from dataclasses import replace

import pytest

from analysis.data import SeedData, SideData
from analysis.published import load_windows
from analysis.replication import Beside, beside_published

PUBLISHED = load_windows()["round1"]["reference"]


def side(arm: str = "stock", source: str = "<repo>/run") -> SideData:
    return SideData("reference", source, (SeedData(0, ()),), arm=arm)


def test_the_published_windows_lie_inside_themselves() -> None:
    found = list(beside_published(side(), PUBLISHED))
    assert len(found) == sum(len(window) for window in PUBLISHED.values()) > 300
    assert {each.word for each in found} == {"inside"}


@pytest.mark.parametrize(
    ("factor", "word"), [(1.0, "inside"), (1.009, "near"), (1.02, "outside"), (0.5, "outside")]
)
def test_a_moved_seed_is_near_or_outside(factor: float, word: str) -> None:
    mean, low, high = PUBLISHED[2000]["rew_loss"]
    moved = {2000: {"rew_loss": (mean, low * min(factor, 1.0), high * max(factor, 1.0))}}
    (found,) = beside_published(side(), moved)
    assert found.word == word


def test_rounding_of_the_published_table_is_no_excess() -> None:
    entry = Beside(2000, "ret/std", 0.00996, 0.0104, 0.0100, 0.0104)
    assert entry.word == "inside"
    assert replace(entry, low=0.00980).word == "outside"


def test_a_published_side_or_an_unpublished_arm_is_not_held_against_itself() -> None:
    assert not list(beside_published(side(source="published round 1"), PUBLISHED))
    assert not list(beside_published(side(arm="exact-seeded"), PUBLISHED))
    assert not list(beside_published(side(), None))

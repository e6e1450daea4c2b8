"""Settings of the environment held against the default, on stand-ins whose speed is known."""

import pytest

from ajax_side.bench import Sums
from launch import settings
from launch.ratio import median_ratio
from launch.settings import SETTINGS, Finding, compare_settings, conclusion, same_digest
from tests.made_bench import StandInLab


@pytest.fixture
def made_up_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = {
        "fast": settings.Setting("made for the test", {"FASTER": "2"}),
        "other": settings.Setting("made for the test", {"FASTER": "2", "SUMS": "64:1 65:3"}),
        "nothing": settings.Setting("made for the test"),
        "missing": settings.Setting("made for the test", preload="no-such-library"),
    }
    monkeypatch.setattr(settings, "SETTINGS", made_up)
    monkeypatch.setenv("SUMS", "64:1 65:2")
    monkeypatch.setenv("VIRTUAL", "yes")


@pytest.mark.usefixtures("made_up_settings")
def test_settings_are_held_against_the_default(lab: StandInLab) -> None:
    said: list[str] = []
    names = ["fast", "other", "nothing", "missing"]
    fast, other, nothing = compare_settings(lab, names, ["reference"], 2, 6, said.append)
    assert fast.ratio.median == other.ratio.median == pytest.approx(0.5)
    assert fast.gains
    assert not other.same
    assert not other.gains
    assert nothing.ratio.median == pytest.approx(1.0)
    assert not nothing.gains
    assert any("missing: left out, no libno-such-library here" in line for line in said)
    assert said[-1] == "reference: best and safe: fast"


def test_nothing_is_recommended_without_a_sure_gain() -> None:
    ratio = median_ratio([0.95, 0.96, 0.98, 0.99, 0.97, 0.96])
    assert "the default stays" in conclusion([Finding("ajax", "own-core", ratio, same=True)])
    surely = median_ratio([0.9] * 6)
    assert "the default stays" in conclusion([Finding("ajax", "own-core", surely, same=False)])
    assert conclusion([Finding("ajax", "own-core", surely, same=True)]).endswith("own-core")
    few = median_ratio([0.9] * 5)
    assert "the default stays" in conclusion([Finding("ajax", "own-core", few, same=True)])


def test_digests_agree_as_far_as_both_go() -> None:
    assert same_digest("64:5 65:7 66:9", "64:5 65:7")
    assert same_digest("64:5 66:9", "65:7 66:9")
    assert not same_digest("64:5 65:7 66:9", "64:5 65:8")
    assert not same_digest("64:5", "65:5")
    assert not same_digest("", "")
    assert same_digest("c0ffee", "c0ffee")
    assert not same_digest("c0ffee", "c0ffed")


def test_ajax_tells_of_ticks_that_every_seed_has_reported() -> None:
    sums = Sums(2)
    assert sums.report() == {"digest": None}
    for tick, number in ((0, 5), (1, 6), (0, -2), (2, 1), (1, 2**31 - 1), (2, 2)):
        sums.add(tick, number)
    sums.add(3, 9)
    assert sums.report() == {"digest": f"0:3 1:{2**31 + 5} 2:3"}


def test_every_setting_says_why() -> None:
    for name, setting in SETTINGS.items():
        assert (
            name == "again"
            or setting.env
            or setting.xla_flags
            or setting.own_core
            or setting.preload
        )
        assert len(setting.why) > 20

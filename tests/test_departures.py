"""The rule by which metrics depart, on made series whose first departure is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diagnose.departures import (
    FACTOR,
    FLOOR,
    FLOOR_OF_EXTREMES,
    FLOOR_OF_NORMS,
    FLOOR_OF_PREDICTIONS,
    FLOOR_OF_REPLAY,
    FLOOR_OF_SHARES,
    METRICS,
    Control,
    Departure,
    Series,
    compare,
    compare_all,
    departures,
    family,
    floor,
    tolerance,
)

UPDATES = 30


def series(seed: int = 0) -> dict[str, Any]:
    """Every metric at every update: values of about 1."""
    rng = np.random.default_rng(seed)
    return {name: 1 + 0.1 * rng.random(UPDATES) for name in METRICS}


def control(size: float = 1e-6) -> Control:
    """A control whose runs drift apart by up to ``size``."""
    plain = series()
    drift = np.linspace(0, size, UPDATES)
    return Control(plain, {name: each + drift for name, each in plain.items()})


def moved(name: str, by: Callable[[Any], Any]) -> dict[str, Any]:
    found = series()
    found[name] = by(found[name].copy())
    return found


def from_update(first: int, by: float) -> Callable[[Any], Any]:
    def move(values: Any) -> Any:
        values[first - 1 :] += by
        return values

    return move


def first_departures(left: Series, right: Series, control: Control) -> list[Departure]:
    return departures(compare_all(left, right, control))


def test_equal_runs_do_not_depart() -> None:
    assert first_departures(series(), series(), control()) == []


@pytest.mark.parametrize("update", [1, 17, UPDATES])
def test_the_first_update_beyond_tolerance_is_named(update: int) -> None:
    for metric in METRICS:
        found = first_departures(series(), moved(metric, from_update(update, 0.5)), control())
        assert [(each.metric, each.update) for each in found] == [(metric, update)]
        assert found[0].excess > 1
        assert f"{metric} at update {update} (" in found[0].text


def test_the_floor_is_relative_to_the_familys_scale() -> None:
    left = series()
    left["val/mean"] = np.zeros(UPDATES)
    left["val/max"] = np.full(UPDATES, 5.0)
    for share, departs in ((0.5, False), (2.0, True)):
        right = {**left, "val/mean": np.full(UPDATES, share * FLOOR_OF_PREDICTIONS * 5.0)}
        assert bool(first_departures(left, right, control(0.0))) is departs


def test_an_extreme_may_differ_by_one_sample() -> None:
    for share, departs in ((0.5, False), (2.0, True)):
        by = share * FLOOR_OF_EXTREMES * 1.1
        found = first_departures(series(), moved("ret/max", from_update(1, by)), control())
        assert bool(found) is departs


def test_the_controls_largest_difference_so_far_is_allowed_for() -> None:
    wide = control()
    wide.shaken["opt_loss"][4] += 0.01  # type: ignore[index]  # an array
    allowed = tolerance("opt_loss", series(), series(), wide)
    assert allowed[3] == pytest.approx(FLOOR * 1.1, rel=0.1)
    assert (allowed[4:] >= FACTOR * 0.01 * 0.999).all()


def test_one_sided_nan_is_a_departure_and_common_nan_is_none() -> None:
    broken = moved("cont_loss", from_update(9, np.nan))
    assert first_departures(broken, broken, control()) == []
    (found,) = first_departures(series(), broken, control())
    assert (found.metric, found.update, found.excess) == ("cont_loss", 9, np.inf)


def test_a_control_that_overflows_does_not_hide_what_follows() -> None:
    wild = control()
    wild.shaken["opt_loss"][2] = np.inf  # type: ignore[index]  # an array
    (found,) = first_departures(series(), moved("opt_loss", from_update(9, 1.0)), wild)
    assert (found.metric, found.update) == ("opt_loss", 9)


def test_of_one_update_the_furthest_comes_first() -> None:
    right = moved("opt_loss", from_update(5, 0.01))
    right["opt_grad_norm"][4:] += 0.5
    right["dyn_loss"][1:] += 0.01
    found = first_departures(series(), right, control())
    assert [each.metric for each in found] == ["dyn_loss", "opt_grad_norm", "opt_loss"]


def test_shares_of_samples_are_held_to_one() -> None:
    left = {**series(), "ret_rate": np.zeros(UPDATES)}
    for share, departs in ((0.5, False), (2.0, True)):
        right: Series = {**left, "ret_rate": np.full(UPDATES, share * FLOOR_OF_SHARES)}
        assert bool(first_departures(left, right, control(0.0))) is departs


def test_families_are_distributions() -> None:
    assert family("val/mean") == family("val/max") == "val"
    assert family("ent/action/std") == "ent/action"
    assert family("retnorm/low") == family("retnorm/high")
    assert family("opt_loss") == "opt_loss"


def test_floors_are_by_kind_of_metric() -> None:
    kinds = {"opt_loss": FLOOR, "val/mean": FLOOR_OF_PREDICTIONS, "val/max": FLOOR_OF_EXTREMES}
    kinds |= {"retnorm/low": FLOOR_OF_PREDICTIONS, "critic_loss_std": FLOOR_OF_PREDICTIONS}
    kinds |= {"opt_update_norm": FLOOR_OF_NORMS, "opt_grad_norm": FLOOR}
    kinds |= {"replay_ret/std": FLOOR_OF_REPLAY, "ret_rate": FLOOR_OF_SHARES}
    for metric, wanted in kinds.items():
        assert floor(metric) == wanted


def test_how_near_a_metric_comes_is_told() -> None:
    by = 0.25 * FLOOR * 1.1
    right = moved("opt_loss", lambda values: np.where(np.arange(UPDATES) == 6, values + by, values))
    found = compare("opt_loss", series(), right, control(0.0))
    assert (found.departure, found.nearest, found.lost) == (None, 7, None)
    assert found.of_tolerance == pytest.approx(0.25, rel=0.1)
    assert found.of_scale == pytest.approx(0.25 * FLOOR, rel=0.1)


def test_a_metric_that_is_zero_in_both_runs_is_near_nothing() -> None:
    zero = {name: np.zeros(UPDATES) for name in METRICS}
    found = compare("opt_loss", zero, zero, Control(zero, zero))
    assert (found.departure, found.of_tolerance, found.of_scale) == (None, 0.0, 0.0)


def test_a_metric_is_lost_once_the_control_is_far_apart() -> None:
    wide = control(0.0)
    wide.shaken["opt_loss"][11:] += 0.2  # type: ignore[index]  # an array
    assert compare("opt_loss", series(), series(), wide).lost == 12
    assert compare("opt_grad_norm", series(), series(), wide).lost is None


def test_a_metric_that_grows_from_near_zero_is_judged_again() -> None:
    growing = {name: np.linspace(1e-9, 1, UPDATES) for name in METRICS}
    drift = {name: each + 1e-6 for name, each in growing.items()}
    assert compare("opt_loss", growing, growing, Control(growing, drift)).lost is None
    wild = {name: each + 1.0 for name, each in growing.items()}
    assert compare("opt_loss", growing, growing, Control(growing, wild)).lost == 1

"""Window means: joined by sample counts, per seed and over seeds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.data import SeedData, SideData
from analysis.windows import (
    metric_at,
    seed_value,
    seed_windows,
    side_windows,
    window_table,
    window_width,
)
from shared.metrics import DERIVED_SCALE, EXACT_SCALE
from shared.protocol import updates
from shared.records.rows import Record
from tests.made_sides import record

means = st.none() | st.floats(-1e3, 1e3)
names = ("val/std", "ent/action/mean", "rec_loss")


@pytest.mark.parametrize(
    ("every", "width"), [(2_000, 2_000), (400, 2_000), (1_000, 2_000), (600, 600), (5_000, 5_000)]
)
def test_windows_are_2000_rows_where_checkpoints_divide_them(every: int, width: int) -> None:
    assert window_width(every) == width


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    every = draw(st.sampled_from([400, 1_000, 2_000]))
    counted = draw(st.booleans())
    return [
        record(
            every * (index + 1),
            draw(st.dictionaries(st.sampled_from(names), means)),
            window_samples=draw(st.integers(0, 300)) if counted else None,
        )
        for index in range(draw(st.integers(1, 12)))
    ]


def naive_windows(records: list[Record], width: int) -> dict[int, dict[str, float]]:
    """The mean over every single sample, each standing at its record's mean."""
    found = {}
    for end in range(width, records[-1].rows + 1, width):
        inside = [each for each in records if end - width < each.rows <= end]
        found[end] = {}
        for name in names:
            samples: list[float] = []
            for each in inside:
                earlier = [before.updates for before in records if before.rows < each.rows]
                count = each.updates - max(earlier, default=0)
                if each.window_samples is not None:
                    count = each.window_samples
                value = each.train.get(name)
                samples += [] if value is None else [value] * count
            if samples:
                found[end][name] = math.fsum(samples) / len(samples)
    return found


@given(histories())
def test_windows_agree_with_averaging_every_sample(records: list[Record]) -> None:
    found, naive = seed_windows(records, 2_000), naive_windows(records, 2_000)
    assert list(found) == list(naive)
    for end, values in naive.items():
        assert found[end] == pytest.approx(values, rel=1e-9, abs=1e-9)


def test_a_window_of_one_record_is_exactly_as_recorded() -> None:
    values = dict(zip(("a", "b", "c"), (0.1, 1 / 3, 2 / 7), strict=True))
    assert seed_windows([record(2_000, values)], 2_000) == {2_000: values}
    for unsampled in (5.0, math.nan, None):
        empty = record(400, {"a": unsampled}, window_samples=0)
        assert seed_windows([empty, record(2_000, values)], 2_000) == {2_000: values}


def test_a_window_without_updates_has_no_means() -> None:
    # The first update comes at row 1040.
    assert seed_windows([record(400, {"a": 1.0}), record(800, {"a": 2.0})], 400) == {
        400: {},
        800: {},
    }


def test_a_window_that_the_records_do_not_fill_is_left_out() -> None:
    records = [record(rows, {"a": 1.0}) for rows in (2_000, 2_400, 3_600)]
    assert list(seed_windows(records, 2_000)) == [2_000]
    assert seed_windows([], 2_000) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_mean_that_is_no_number_takes_its_metric_out_of_the_window(value: float) -> None:
    records = [record(1_600, {"a": value, "b": 1.0}), record(2_000, {"a": 1.0, "b": 1.0})]
    assert seed_windows(records, 2_000) == {2_000: {"b": 1.0}}
    assert seed_windows([record(2_000, {"a": value, "b": 2.0})], 2_000) == {2_000: {"b": 2.0}}


def test_scales_are_derived_from_joined_means_and_taken_from_the_last_record() -> None:
    first = record(
        1_000,
        {"ret/std": 2.0, "ret_normed/std": 1.0},
        window_samples=1,
        retnorm={"low": 0.0, "high": 9.0, "scale": 9.0},
    )
    last = record(
        2_000,
        {"ret/std": 4.0, "ret_normed/std": 0.5},
        window_samples=3,
        retnorm={"low": 0.0, "high": 3.0, "scale": 3.0},
    )
    found = seed_windows([first, last], 2_000)[2_000]
    assert found[DERIVED_SCALE] == pytest.approx(3.5 / 0.625)
    assert found[EXACT_SCALE] == 3.0


def test_an_exact_scale_that_is_no_number_is_left_out() -> None:
    for scale in (None, math.nan):
        row = record(2_000, {}, retnorm={"low": None, "high": None, "scale": scale})
        assert seed_windows([row], 2_000) == {2_000: {}}


def side_of(*seeds: list[Record] | None) -> SideData:
    data = tuple(
        SeedData(number, (), None if each is None else tuple(each))
        for number, each in enumerate(seeds)
    )
    return SideData("ajax", "made", data)


def test_the_table_has_mean_and_range_over_seeds_of_what_every_seed_has() -> None:
    windows = side_windows(
        side_of(
            [record(2_000, {"a": 1.0, "b": 1.0}), record(4_000, {"a": 7.0})],
            [record(2_000, {"a": 2.0})],
            [record(2_000, {"a": 6.0, "b": 3.0})],
        ),
        2_000,
    )
    assert windows is not None
    assert window_table(windows) == {2_000: {"a": (3.0, 1.0, 6.0)}}
    assert metric_at(windows, 2_000, "a") == [1.0, 2.0, 6.0]
    assert metric_at(windows, 2_000, "b") is None
    assert metric_at(windows, 4_000, "a") is None


def test_a_seed_without_records_leaves_the_side_without_windows() -> None:
    rows = [record(2_000, {"a": 1.0})]
    assert side_windows(side_of(rows, None), 2_000) is None
    assert side_windows(side_of(None), 2_000) is None
    assert side_windows(side_of(), 2_000) is None


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=6), st.randoms())
def test_the_table_does_not_see_the_order_of_seeds(values: list[float], random) -> None:
    def table(order: list[float]) -> tuple[float, float, float]:
        windows = side_windows(side_of(*([record(2_000, {"a": each})] for each in order)), 2_000)
        return window_table(windows)[2_000]["a"]

    shuffled = list(values)
    random.shuffle(shuffled)
    assert table(shuffled) == pytest.approx(table(values), rel=1e-9, abs=1e-9)
    assert table(values) == (pytest.approx(np.mean(values)), min(values), max(values))


def test_updates_stand_for_a_sample_count_that_was_not_recorded() -> None:
    # 181 updates up to row 1400, 300 more up to 2000.
    assert (updates(1_400), updates(2_000)) == (181, 481)
    rows = [record(1_400, {"a": 1.0}), record(2_000, {"a": 2.0})]
    assert seed_windows(rows, 2_000)[2_000]["a"] == pytest.approx((181 + 600) / 481)


# --- one value ------------------------------------------------------------------------------


@given(histories(), st.sampled_from(names))
def test_a_seeds_value_is_its_windows_unless_a_sample_is_lost(
    records: list[Record], name: str
) -> None:
    naive = naive_windows(records, 2_000)
    for end in (2_000, 4_000):
        inside = [each for each in records if end - 2_000 < each.rows <= end]
        earlier = {
            each.rows: max((b.updates for b in records if b.rows < each.rows), default=0)
            for each in inside
        }
        lost = any(
            each.train.get(name) is None
            and (
                each.updates - earlier[each.rows]
                if each.window_samples is None
                else each.window_samples
            )
            for each in inside
        )
        found = seed_value(records, 2_000, end, name)
        expected = naive.get(end, {}).get(name)
        if lost or expected is None:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_lost_sample_is_not_averaged_away(value: float | None) -> None:
    records = [record(1_600, {"a": value}), record(2_000, {"a": 1.0})]
    assert math.isnan(seed_value(records, 2_000, 2_000, "a"))
    unsampled = [record(400, {"a": value}, window_samples=0), record(2_000, {"a": 1.0})]
    assert seed_value(unsampled, 2_000, 2_000, "a") == 1.0
    assert math.isnan(seed_value(unsampled, 2_000, 4_000, "a")), "there is no such window"

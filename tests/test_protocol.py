"""The protocol's tables against its text, restated here by hand (protocol sections 1 to 9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import protocol
from shared.protocol import (
    ARMS,
    KNOWN_DIFFERENCES,
    ROUNDS,
    SERIES,
    SIDES,
    arm,
    arm_names,
    checkpoints,
    s1_rows,
    updates,
)

# --- updates --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (0, 0),
        (1_039, 0),
        (1_040, 1),
        (1_041, 1),
        (1_042, 2),
        (1_600, 281),
        (2_000, 481),
        (4_000, 1_481),
        (20_000, 9_481),
        (24_000, 11_481),
    ],
)
def test_updates_are_those_of_the_protocol(rows: int, expected: int) -> None:
    assert updates(rows) == expected


@given(st.integers(0, 30_000))
def test_updates_agree_with_counting_row_by_row(rows: int) -> None:
    count, due = 0, 1_040
    while due <= rows:
        count, due = count + 1, due + 2
    assert updates(rows) == count


# --- rounds and arms ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arms", "seeds", "rows", "every"),
    [
        ("1", ("stock", "stock"), (0, 1, 2), 20_000, 2_000),
        ("2", ("exact", "literal"), (0, 1, 2), 20_000, 2_000),
        ("3", ("exact-seeded", "stock"), (0, 1, 2, 3, 4), 24_000, 400),
        ("4-literal", ("stock", "literal"), (10, 11, 12), 4_000, 400),
        ("4-exact", ("exact", "stock"), (10, 11, 12), 4_000, 400),
    ],
)
def test_rounds_are_those_of_the_protocol(name, arms, seeds, rows, every) -> None:
    found = ROUNDS[name]
    assert (found.name, found.seeds, found.rows, found.every) == (name, seeds, rows, every)
    assert found.number == int(name[0])
    assert tuple(found.arm(side).name for side in SIDES) == arms
    assert tuple(found.arm(side).side for side in SIDES) == SIDES
    assert (found.episodes, found.tiny) == (10, False)
    assert found.checkpoints == tuple(range(every, rows + every, every))
    smoke = found.smoke()
    assert (smoke.seeds, smoke.rows, smoke.every, smoke.episodes, smoke.tiny) == (
        (0, 1),
        1_600,
        400,
        2,
        True,
    )
    assert tuple(smoke.arm(side).name for side in SIDES) == arms


def test_there_are_rounds_of_one_part_of_two_and_of_eight_and_five_arms() -> None:
    names, blocks = [*ROUNDS][:5], [*ROUNDS][5:]
    assert names == ["1", "2", "3", "4-literal", "4-exact"]
    assert {"4": ("4-literal", "4-exact"), "5": tuple(blocks)} == SERIES
    assert [each.directory for each in ROUNDS.values()][2:5] == [
        "round3",
        "round4/literal",
        "round4/exact",
    ]
    for side in SIDES:
        forms = {each.arm(side).expectation: name for name, each in list(ROUNDS.items())[3:5]}
        assert forms == {"literal": "4-literal", "exact": "4-exact"}
    assert arm_names("reference") == ("stock", "exact", "exact-seeded")
    assert arm_names("ajax") == ("stock", "literal")
    assert len(ARMS) == len({(each.side, each.name) for each in ARMS})
    assert [each.name for each in ARMS if not each.patched] == ["stock", "stock"]


def test_an_unknown_arm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="ajax has no arm 'exact'; known: stock, literal"):
        arm("ajax", "exact")


@given(st.integers(1, 30_000), st.integers(1, 30_000))
def test_checkpoints_are_every_multiple_up_to_the_last_row(rows: int, every: int) -> None:
    assert list(checkpoints(rows, every)) == [at for at in range(1, rows + 1) if at % every == 0]


# --- statistics -----------------------------------------------------------------------------


def test_windows_and_thresholds_are_those_of_the_protocol() -> None:
    assert protocol.S1_ROWS == (16_000, 18_000, 20_000)
    assert len(protocol.LATE_ROWS) == 31
    assert (protocol.LATE_ROWS[0], protocol.LATE_ROWS[-1]) == (12_000, 24_000)
    assert set(protocol.LATE_ROWS) <= set(ROUNDS["3"].checkpoints)
    assert set(protocol.S1_ROWS) <= set(ROUNDS["1"].checkpoints) & set(ROUNDS["3"].checkpoints)
    assert (protocol.CAP_RETURN, protocol.CAP_ROWS) == (400, (20_000, 24_000))
    assert protocol.CAP_RATE_WINDOW == (16_000, 24_000)
    assert (protocol.H1_RUNS, protocol.H1_LATE_RATE) == (4, 0.4)
    assert (protocol.SIGNIFICANCE, protocol.S2_EPISODES) == (0.05, 10)
    assert protocol.S2_AUDIT_TOLERANCE == 1e-4


def test_s1_of_a_smoke_run_takes_the_last_three_checkpoints() -> None:
    grid = ROUNDS["1"].smoke().checkpoints
    assert s1_rows(grid, smoke=True) == (800, 1_200, 1_600)
    assert s1_rows(grid, smoke=False) == protocol.S1_ROWS
    assert s1_rows((400,), smoke=True) == (400,)


# --- identities, environment, random streams ------------------------------------------------


def test_identities_are_those_of_the_protocol() -> None:
    assert protocol.REFERENCE_COMMIT == "29eb964e2918a3f4db04086f7f51b60388e97f3d"
    assert protocol.AJAX_PUBLISHED_COMMIT == "5cb0738f3a2e127a3f8d64994eac3be1bc8c926e"
    assert (protocol.AJAX_DISTRIBUTION, protocol.AJAX_RELEASE) == ("ajax-rl", "0.4.0")
    assert protocol.REFERENCE_REMOTE == "https://github.com/danijar/dreamerv3"


def test_sizes_and_streams_are_those_of_the_protocol() -> None:
    assert (protocol.N_ENVS, protocol.MAX_EPISODE_STEPS) == (16, 500)
    assert protocol.FIRST_UPDATE_ROW == 16 * 65
    assert (protocol.EVALUATION_TAG, protocol.POLICY_TAG) == (7_000_001, 1_000_000)
    assert protocol.SAMPLER_TAG == 0x5EED


def test_known_differences_have_names_of_their_own() -> None:
    names = [each.name for each in KNOWN_DIFFERENCES]
    assert {"D1", "D2", "D3", "D22", "D23"} <= set(names)
    assert len(names) == len(set(names))
    assert all(each.text for each in KNOWN_DIFFERENCES)

"""Training that is held between ticks: what is timed, and what is told."""

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.probes import pace
from shared.probes.pace import FIRST_TICK, Pace, peak_bytes
from shared.protocol import N_ENVS, updates


def drive(commands: list[dict[str, Any]], ticks: int, skip: int) -> list[dict[str, Any]]:
    """Replies of a training of ``ticks`` ticks, tick n of which ends at second n."""
    now, replies, left = 0.0, io.StringIO(), []
    text = "".join(json.dumps(command) + "\n" for command in commands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace.time, "monotonic", lambda: now)
        held = Pace(
            replies,
            commands=io.StringIO(text),
            skip=skip,
            leave=lambda: left.append(now),
        )
        for tick in range(1, ticks + 1):
            now = float(tick)
            held.tick(tick)
            if left:
                break
    return [json.loads(line) for line in replies.getvalue().splitlines()]


def test_the_first_tick_with_an_update_ends_the_start_up() -> None:
    assert updates(FIRST_TICK * N_ENVS) == 1
    assert updates((FIRST_TICK - 1) * N_ENVS) == 0
    (ready,) = drive([], FIRST_TICK + 5, 0)
    assert ready["marks"] == [FIRST_TICK]


@given(st.lists(st.integers(1, 5), max_size=5), st.integers(0, 2))
def test_each_reply_times_the_ticks_that_were_asked_for(asked: list[int], skip: int) -> None:
    replies = drive([{"ticks": ticks} for ticks in asked], 200, skip)
    assert len(replies) == 1 + len(asked)
    end = float(FIRST_TICK)
    for ticks, reply in zip(asked, replies[1:], strict=True):
        marks = reply["marks"]
        assert marks == [end + skip + number for number in range(ticks + 1)]
        end = marks[-1]


def test_the_side_is_told_and_asked() -> None:
    told: list[Mapping[str, Any]] = []
    settled: list[int] = []
    replies = io.StringIO()
    held = Pace(
        replies,
        commands=io.StringIO('{"ticks": 2, "observed": true}\n'),
        settle=lambda: settled.append(len(told)),
        prepare=told.append,
        report=lambda: {"observer_s": 1.5},
        leave=lambda: None,
    )
    for tick in range(FIRST_TICK + 3):
        held.tick(tick)
    assert told == [{"ticks": 2, "observed": True}]
    assert settled == [0, 1], "once before each reply"
    lines = [json.loads(line) for line in replies.getvalue().splitlines()]
    assert [line["observer_s"] for line in lines] == [1.5, 1.5]
    assert all(line["peak_bytes"] > 2**20 for line in lines)


def test_peak_memory_is_in_bytes_and_never_falls() -> None:
    before = peak_bytes()
    block = bytearray(64 * 2**20)
    after = peak_bytes()
    del block
    assert 5 * 2**20 < before <= after == peak_bytes() < 2**36

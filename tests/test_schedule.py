"""Schedules that are simulated: by hand where it is easy, by their bounds everywhere."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.schedule import Mix, Work, best_limit, wall_time
from shared.protocol import Side


@dataclass(frozen=True)
class Constant:
    """Seconds per update, whatever else runs; with ``crowd`` they grow with the processes."""

    seconds: float = 1.0
    crowd: float = 0.0

    def update_s(self, side: Side, seeds: int, mix: Mix) -> float:  # noqa: ARG002
        return self.seconds * seeds * (1 + self.crowd * (sum(mix.values()) - 1))


works = st.lists(
    st.builds(
        Work,
        name=st.just("w"),
        side=st.sampled_from(["reference", "ajax"]),
        start_s=st.floats(0, 50),
        updates=st.integers(0, 100),
    ),
    max_size=7,
)


def alone(work: Work) -> float:
    return work.start_s + work.updates


@given(works)
def test_one_at_a_time_takes_the_sum(given_works: list[Work]) -> None:
    assert wall_time(given_works, 1, Constant()) == pytest.approx(sum(map(alone, given_works)))


@given(works, st.integers(1, 8))
def test_no_schedule_beats_its_bounds(given_works: list[Work], limit: int) -> None:
    wall = wall_time(given_works, limit, Constant())
    total = sum(map(alone, given_works))
    longest = max(map(alone, given_works), default=0.0)
    assert wall >= max(total / limit, longest) * (1 - 1e-9)
    # Graham's bound of every schedule that leaves no place empty while something waits.
    assert wall <= (total / limit + longest * (1 - 1 / limit)) * (1 + 1e-9)


@given(works, st.integers(1, 8), st.floats(0, 1))
def test_a_crowd_can_only_slow_down(given_works: list[Work], limit: int, crowd: float) -> None:
    slowed = wall_time(given_works, limit, Constant(crowd=crowd))
    assert slowed >= wall_time(given_works, limit, Constant()) * (1 - 1e-9)
    # Fully serial machines gain nothing from side by side, and lose nothing.
    if all(work.start_s == 0 for work in given_works):
        serial = wall_time(given_works, limit, Constant(crowd=1.0))
        assert serial == pytest.approx(sum(work.updates for work in given_works))


def test_speed_changes_when_a_neighbour_ends() -> None:
    pair = [Work("a", "reference", 0.0, 10), Work("b", "reference", 0.0, 20)]
    # Side by side each update takes 1.5 s: a ends at 15, b has 10 of its updates left, 1 s each.
    assert wall_time(pair, 2, Constant(crowd=0.5)) == pytest.approx(25.0)


def test_longest_first_is_kept_and_places_are_filled() -> None:
    three = [Work(name, "reference", 0.0, n) for name, n in (("a", 30), ("b", 20), ("c", 10))]
    assert wall_time(three, 2, Constant()) == pytest.approx(30.0)
    assert wall_time(list(reversed(three)), 2, Constant()) == pytest.approx(40.0)


def test_siblings_wait_for_the_one_that_compiles() -> None:
    cold = Work("a", "reference", start_s=100.0, updates=10, program="p", warm_s=5.0)
    others = [replace(cold, name=name) for name in "bc"]
    # a compiles until 100; the others start then, in 5 s each.
    assert wall_time([cold, *others], 3, Constant()) == pytest.approx(100 + 5 + 10)
    stranger = Work("d", "ajax", start_s=0.0, updates=150)
    assert wall_time([cold, *others, stranger], 2, Constant()) == pytest.approx(150.0)
    each = [replace(cold, program=None), *(replace(other, program=None) for other in others)]
    assert wall_time(each, 3, Constant()) == pytest.approx(110.0)


def test_the_best_number_of_jobs() -> None:
    four = [Work(str(n), "reference", 0.0, 10) for n in range(4)]
    assert best_limit(four, 4, Constant()) == (4, pytest.approx(10.0))
    # Where side by side gains nothing, the smallest number is the best.
    assert best_limit(four, 4, Constant(crowd=1.0))[0] == 1
    assert best_limit([], 1, Constant()) == (1, 0.0)

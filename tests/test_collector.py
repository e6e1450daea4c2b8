"""What is made while an agent is built is neither collected then nor looked through later."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from ref_side.collector import uncollected


class Node:
    """An object that only the collector can free: it holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def test_nothing_is_collected_meanwhile_and_later_things_are() -> None:
    with uncollected():
        assert not gc.isenabled()
        early = weakref.ref(Node())
        kept = [Node() for _ in range(10_000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(kept)
    assert not {id(each) for each in kept} & {id(each) for each in gc.get_objects()}
    late = weakref.ref(Node())
    gc.collect()
    assert early() is not None
    assert late() is None


def test_a_collector_that_was_off_stays_off_and_an_error_turns_it_on_again() -> None:
    with pytest.raises(RuntimeError), uncollected():
        raise RuntimeError
    assert gc.isenabled()
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()

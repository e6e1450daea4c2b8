"""The mapping by names and shapes; what it computes is tested inside the Ajax environment."""

import numpy as np
import pytest

from shared.errors import UserError
from shared.probes.parameter_map import BINS, PAIRS, is_network, to_ajax

Tensors = dict[str, np.ndarray]
OPTIMISER = "opt/state"


@pytest.fixture
def reference() -> Tensors:
    """One small tensor for each pair, each of its own value, and an entry that is no network's."""
    made = {
        pair.reference: np.full(2 if pair.kept is None else BINS + 1, index, np.float32)
        for index, pair in enumerate(PAIRS)
    }
    return made | {OPTIMISER: np.zeros(1)}


@pytest.fixture
def shapes() -> dict[str, tuple[int, ...]]:
    return {pair.ajax: (2,) if pair.kept is None else (BINS,) for pair in PAIRS}


def test_every_tensor_goes_to_a_place_of_its_own() -> None:
    assert len({pair.reference for pair in PAIRS}) == len({pair.ajax for pair in PAIRS}) == 90
    assert sum(pair.kept is not None for pair in PAIRS) == 6


def test_tensors_are_filled_and_the_unused_column_is_dropped(
    reference: Tensors, shapes: dict[str, tuple[int, ...]]
) -> None:
    reference["agent/rew/dist/out/bias"][-1] = np.nan
    filled = to_ajax(reference, shapes)
    assert filled.keys() == shapes.keys()
    for index, pair in enumerate(PAIRS):
        np.testing.assert_array_equal(filled[pair.ajax], np.full(shapes[pair.ajax], index))


def test_a_tensor_that_is_missing_or_unknown_is_named(
    reference: Tensors, shapes: dict[str, tuple[int, ...]]
) -> None:
    more = reference | {"agent/enc/mlp3/kernel": np.zeros(2)}
    with pytest.raises(UserError, match=r"reference.*unknown \['agent/enc/mlp3/kernel'\]"):
        to_ajax(more, shapes)
    del reference["agent/dyn/img1/bias"]
    with pytest.raises(UserError, match=r"reference.*missing \['agent/dyn/img1/bias'\]"):
        to_ajax(reference, shapes)


def test_a_tensor_of_ajax_that_nothing_fills_is_named(
    reference: Tensors, shapes: dict[str, tuple[int, ...]]
) -> None:
    shapes["world_model/rssm/new/bias"] = (2,)
    with pytest.raises(UserError, match=r"Ajax.*unknown \['world_model/rssm/new/bias'\]"):
        to_ajax(reference, shapes)


def test_a_shape_that_does_not_fit_is_named(
    reference: Tensors, shapes: dict[str, tuple[int, ...]]
) -> None:
    shapes["actor/logits/bias"] = (3,)
    with pytest.raises(UserError, match=r"agent/actor/action/out/bias \(2,\) does not fit"):
        to_ajax(reference, shapes)


def test_what_is_a_network() -> None:
    assert is_network("agent/slowcritic/h0/bias")
    assert not is_network("agent/retnorm/low/value")
    assert not is_network("opt/state")

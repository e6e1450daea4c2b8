import numpy as np

from shared.probes.encoder_case import OUTPUTS, STATES, shake, states
from shared.probes.probing import HEAD_FEATURES, apply_forms


def test_every_form_and_mode_answers_every_case() -> None:
    logits = {"zero/2": np.zeros((2, 5)), "zero/1x2": np.zeros((1, 2, 5)), "other": np.ones((3, 5))}
    total = {"sum": lambda each: each.sum(-1)}
    found = apply_forms(
        logits, eager=total, jit={"sum": lambda x: 2 * x.sum(-1)}, head=total, bins=range(5)
    )
    assert found.keys() == {
        *("bins", "sum/eager/zero/2", "sum/jit/zero/2", "sum/head/zero/2"),
        *("sum/eager/zero/1x2", "sum/jit/zero/1x2", "sum/eager/other", "sum/jit/other"),
    }
    np.testing.assert_array_equal(found["sum/eager/other"], [5, 5, 5])
    np.testing.assert_array_equal(found["sum/jit/other"], [10, 10, 10])


def test_the_head_is_fed_features_not_logits() -> None:
    shapes = []
    head = {"form": lambda features: shapes.append(features.shape)}
    apply_forms({"zero/7": np.zeros((7, 5))}, eager={}, jit={}, head=head, bins=[])
    assert shapes == [(7, HEAD_FEATURES)]


def test_states_are_states() -> None:
    given = states(deter=6, stoch=3, classes=4, actions=2)
    assert {name: each.shape for name, each in given.items()} == {
        "deter": (STATES, 6),
        "stoch": (STATES, 3, 4),
        "action": (STATES, 2),
        "is_first": (STATES,),
    }
    for name in ("stoch", "action"):
        np.testing.assert_array_equal(given[name].sum(-1), 1)
        assert set(np.unique(given[name])) == {0, 1}
    assert given["is_first"].any()
    assert not given["is_first"].all()


def test_shaking_moves_every_tensor_and_gives_the_same_each_time() -> None:
    tensors = {"zero": np.zeros((3, 2), np.float32), "one": np.ones(2, np.float32)}
    shaken, again = shake(tensors), shake(dict(reversed(tensors.items())))
    for name, each in tensors.items():
        assert (shaken[name] != each).all()
        assert shaken[name].dtype == np.float32
        np.testing.assert_array_equal(shaken[name], again[name])


def test_outputs_are_named_once() -> None:
    assert len(OUTPUTS) == 11

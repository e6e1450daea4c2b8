"""Differences between recorded and recomputed documents: what counts, and where it is."""

import copy
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.difference import RELATIVE, Difference, equal, json_differences, unified

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
documents = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def places(recorded: object, recomputed: object, **options: bool) -> list[str]:
    return [each.where for each in json_differences(recorded, recomputed, **options)]


@given(documents)
def test_a_document_does_not_differ_from_itself(document: object) -> None:
    assert places(document, copy.deepcopy(document)) == []
    assert places(document, json.loads(json.dumps(document))) == []


@given(documents, documents)
def test_differences_are_the_same_places_from_either_side(first: object, second: object) -> None:
    assert sorted(places(first, second)) == sorted(places(second, first))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.data())
def test_one_edited_number_is_found_at_its_place(values: list[int], data) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    edited = list(values)
    edited[index] += 1
    found = list(json_differences({"a": {"b": values}}, {"a": {"b": edited}}))
    assert found == [Difference(f"a.b[{index}]", values[index], edited[index])]


@pytest.mark.parametrize(
    ("recorded", "recomputed", "same"),
    [
        (1.0, 1.0 + 1e-13, True),
        (1.0, 1.0 + 1e-11, False),
        (312.7, 312.70000001, False),
        (0.0, 1e-300, False),
        (1, 1.0, True),
        (10**15, 10**15 + 1, False),
        (20_000, 20_001, False),
        pytest.param(10**400, 10**400 + 1, False, id="beyond a float"),
        (True, 1, False),
        (False, 0, False),
        (True, True, True),
        (None, None, True),
        (None, 0, False),
        ("1", 1, False),
        ("PASS", "FAIL", False),
        ([], {}, False),
        (math.inf, math.inf, True),
    ],
)
def test_equality_of_leaves(recorded: object, recomputed: object, same: bool) -> None:
    assert equal(recorded, recomputed) is same
    assert equal(recomputed, recorded) is same
    assert RELATIVE == 1e-12


def test_absent_values_are_differences_unless_only_shared_keys_count() -> None:
    recorded, recomputed = {"a": 1, "b": [1, 2], "c": 5}, {"a": 1, "b": [1], "d": None}
    found = {each.where: each for each in json_differences(recorded, recomputed)}
    assert list(found) == ["b[1]", "c", "d"]
    assert (found["b[1]"].recorded, repr(found["b[1]"].recomputed)) == (2, "absent")
    assert (repr(found["d"].recorded), found["d"].recomputed) == ("absent", None)
    # An entry of a list is never passed over.
    assert places(recorded, recomputed, shared_only=True) == ["b[1]"]
    assert places({"x": {"a": 1, "b": 2}}, {"x": {"b": 3}}, shared_only=True) == ["x.b"]


def test_the_whole_document_may_differ() -> None:
    assert list(json_differences(1, 2)) == [Difference("", 1, 2)]
    assert places({"a": {"b": 1}}, {"a": [1]}) == ["a"]


def test_a_unified_diff_names_both_texts_and_shows_the_changed_line() -> None:
    lines = unified("a\nb\nc\n", "a\nB\nc\n", "compare.md")
    assert lines[:2] == ["--- recorded/compare.md", "+++ recomputed/compare.md"]
    assert {"-b", "+B"} <= set(lines)
    assert unified("same\n", "same\n", "x") == []

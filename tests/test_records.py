"""Typed rows: written and read back, lifted from format 0, and refused with file and line."""

import gzip
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import RecordError
from shared.records.jsonl import JsonlWriter, dump_line
from shared.records.rows import (
    FORMAT,
    MIGRATIONS,
    Episode,
    Evaluation,
    Place,
    Progress,
    Record,
    Row,
    check_episode,
    read_checkpoints,
    read_rows,
)

Json = dict[str, Any]

# --- round trip -----------------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
counts = st.integers(0, 2**53)
metrics = st.dictionaries(st.text(max_size=8), st.none() | numbers, max_size=4)
ROWS: dict[type[Row], st.SearchStrategy[Any]] = {
    Evaluation: st.builds(
        Evaluation,
        seed=counts,
        rows=counts,
        updates=counts,
        returns=st.none() | st.lists(numbers, max_size=4).map(tuple),
        lengths=st.none() | st.lists(counts, max_size=4).map(tuple),
        mean=numbers,
        len_mean=st.none() | numbers,
        wall_s=st.none() | numbers,
    ),
    Record: st.builds(
        Record,
        seed=counts,
        rows=counts,
        updates=counts,
        side=st.sampled_from(["ref", "ajax"]),
        eval_mean=numbers,
        eval_len_mean=st.none() | numbers,
        eval_returns=st.none() | st.lists(numbers, max_size=4).map(tuple),
        s2_logged=st.none() | numbers,
        train=metrics,
        train_raw=st.none() | metrics,
        retnorm=st.none() | metrics,
        wall_s=st.none() | numbers,
        window_samples=st.none() | counts,
    ),
    Episode: st.builds(
        Episode,
        seed=counts,
        worker=counts,
        row_last=counts,
        length=counts,
        score=numbers,
        terminal=st.booleans(),
    ),
    Progress: st.builds(Progress, rows=counts, updates=counts, wall_s=numbers),
}


@pytest.mark.parametrize("kind", ROWS)
@given(data=st.data(), packed=st.booleans())
def test_rows_read_back_as_written_plain_or_gzipped(
    tmp_path_factory: pytest.TempPathFactory, kind: type[Row], data: st.DataObject, packed: bool
) -> None:
    rows = data.draw(st.lists(ROWS[kind], max_size=4))
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    with JsonlWriter(path) as writer:
        for row in rows:
            writer.write(row.to_json())
    if packed:
        path.with_name("rows.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read_rows(path, kind) == rows


@pytest.mark.parametrize("kind", ROWS)
@given(data=st.data())
def test_every_row_carries_its_format_and_every_field(kind: type[Row], data: st.DataObject) -> None:
    written = data.draw(ROWS[kind]).to_json()
    assert written["format"] == FORMAT == 1
    assert set(written) == {"format", *(field.name for field in fields(kind))}


# --- rows as files of protocol section 7 hold them ------------------------------------------

EVALUATION: Json = {
    "format": 1,
    "seed": 0,
    "rows": 2_000,
    "updates": 481,
    "returns": [100.0, 50.0],
    "lengths": [100, 50],
    "mean": 75.0,
    "len_mean": 75.0,
    "wall_s": 12.5,
}
RECORD: Json = {
    "format": 1,
    "side": "ref",
    "seed": 0,
    "rows": 2_000,
    "updates": 481,
    "eval_mean": 75.0,
    "eval_len_mean": 75.0,
    "eval_returns": [100.0, 50.0],
    "s2_logged": None,
    "train": {"val/std": 0.1, "rec_loss": None},
    "train_raw": {"val/std": 0.1, "vector_loss": None},
    "retnorm": {"low": 0.0, "high": 2.0, "scale": 2.0},
    "wall_s": 12.5,
    "window_samples": 480,
}
EPISODE: Json = {
    "format": 1,
    "seed": 0,
    "worker": 3,
    "row_last": 20,
    "length": 20,
    "score": 20.0,
    "terminal": True,
}
#: By kind of row, what may be null.
NULLABLE: dict[type[Row], set[str]] = {
    Evaluation: {"returns", "lengths", "len_mean", "wall_s"},
    Record: {
        *("eval_len_mean", "eval_returns", "s2_logged", "train_raw", "retnorm", "wall_s"),
        "window_samples",
    },
    Episode: set(),
}
GOOD: dict[type[Row], Json] = {Evaluation: EVALUATION, Record: RECORD, Episode: EPISODE}


def write(path: Path, *rows: Json) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refusal(read: Callable[[], object], path: Path) -> str:
    with pytest.raises(RecordError) as caught:
        read()
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(str(path), path.name)


@pytest.mark.parametrize("kind", GOOD)
def test_keys_that_this_version_does_not_know_are_passed_over(tmp_path: Path, kind) -> None:
    path = write(tmp_path / "rows.jsonl", GOOD[kind], GOOD[kind] | {"later": [1]})
    first, second = read_rows(path, kind)
    assert first == second


def test_rows_of_the_published_rounds_are_lifted_from_format_0(tmp_path: Path) -> None:
    old = {key: value for key, value in RECORD.items() if key not in ("format", "window_samples")}
    (row,) = read_rows(write(tmp_path / "records.jsonl", old), Record)
    assert row.window_samples is None
    assert (row.side, row.train) == ("ref", RECORD["train"])
    for kind in (Evaluation, Episode):
        plain = {key: value for key, value in GOOD[kind].items() if key != "format"}
        path = write(tmp_path / "rows.jsonl", plain, plain | {"format": 0}, GOOD[kind])
        assert len({str(each) for each in read_rows(path, kind)}) == 1


def test_every_older_format_has_one_step_to_the_next() -> None:
    assert sorted(MIGRATIONS) == list(range(FORMAT))
    row = {"train": {}, "window_samples": 7, "updates": 9}
    assert MIGRATIONS[0](row) == row
    assert MIGRATIONS[0]({"mean": float("nan")}) == {"mean": None, "updates": 0}
    assert MIGRATIONS[0]({"mean": 1.0, "updates": 3}) == {"mean": 1.0, "updates": 3}


def test_a_window_of_the_published_rounds_keeps_its_count_of_samples(tmp_path: Path) -> None:
    old = {key: value for key, value in RECORD.items() if key not in ("format", "window_samples")}
    old |= {"n_metric_samples": 480, "retnorm": {"lo": 0.5, "hi": 2.0, "scale": 1.5}}
    (row,) = read_rows(write(tmp_path / "records.jsonl", old), Record)
    assert row.window_samples == 480
    assert row.retnorm == {"low": 0.5, "high": 2.0, "scale": 1.5}


def test_whole_numbers_may_be_written_with_a_decimal_point(tmp_path: Path) -> None:
    path = write(tmp_path / "evals.jsonl", EVALUATION | {"rows": 2_000.0, "lengths": [100.0, 50]})
    (row,) = read_rows(path, Evaluation)
    assert (row.rows, row.lengths) == (2_000, (100, 50))
    assert type(row.rows) is int


@pytest.mark.parametrize("kind", GOOD)
def test_what_may_be_null_may_be_absent_and_every_other_key_is_missed_by_name(
    tmp_path: Path, kind: type[Row]
) -> None:
    optional = NULLABLE[kind] | {"format"}
    for key in GOOD[kind]:
        rest = {name: value for name, value in GOOD[kind].items() if name != key}
        path = write(tmp_path / "rows.jsonl", GOOD[kind], rest)
        if key in optional:
            null = write(
                tmp_path / "null.jsonl", GOOD[kind] | ({key: None} if key != "format" else {})
            )
            assert read_rows(path, kind)[1:] == read_rows(null, kind)
        else:
            text = refusal(lambda path=path: read_rows(path, kind), path)
            assert text == f"rows.jsonl:2: '{key}' is missing; restore the line"


@pytest.mark.parametrize(
    ("kind", "change", "expected"),
    [
        (Evaluation, {"seed": "0"}, "'seed' is '0', expected an integer"),
        (Evaluation, {"rows": 2_000.5}, "'rows' is 2000.5, expected an integer"),
        (Evaluation, {"rows": True}, "'rows' is True, expected an integer"),
        (Evaluation, {"updates": None}, "'updates' is None, expected an integer"),
        (Evaluation, {"mean": "75"}, "'mean' is '75', expected a number"),
        (Evaluation, {"mean": None}, "'mean' is None, expected a number"),
        (Evaluation, {"mean": True}, "'mean' is True, expected a number"),
        (Evaluation, {"mean": float("nan")}, "'mean' is nan, expected a number"),
        (Evaluation, {"mean": float("-inf")}, "'mean' is -inf, expected a number"),
        (Evaluation, {"len_mean": float("nan")}, "'len_mean' is nan, expected "),
        (Evaluation, {"rows": float("inf")}, "'rows' is inf, expected an integer"),
        (Evaluation, {"mean": 10**39}, "'mean' is 1000000"),
        (Evaluation, {"mean": 1e308}, "'mean' is 1e+308, larger than any number of a run"),
        (Evaluation, {"rows": 2**53 + 1}, f"'rows' is {2**53 + 1}, larger than any number"),
        (Evaluation, {"returns": [1.0, float("nan")]}, "'returns' is [1.0, nan], expected "),
        (Record, {"train": {"a": -1e300}}, "'train' is {'a': -1e+300}, larger than any number"),
        (Episode, {"row_last": 10**39}, "'row_last' is 1000000"),
        (Evaluation, {"returns": ["x" * 10**5]}, "'returns' is ['xxx"),
        (Evaluation, {"returns": 5}, "'returns' is 5, expected "),
        (Evaluation, {"returns": ["a"]}, "'returns' is ['a'], expected "),
        (Evaluation, {"lengths": [1.5]}, "'lengths' is [1.5], expected "),
        (Record, {"train": [1.0]}, "'train' is [1.0], expected "),
        (Record, {"train": {"a": "b"}}, "'train' is {'a': 'b'}, expected "),
        (Record, {"train": None}, "'train' is None, expected "),
        (Record, {"side": 1}, "'side' is 1, expected text"),
        (Record, {"eval_mean": float("nan")}, "'eval_mean' is nan, expected a number"),
        (Record, {"window_samples": -0.5}, "'window_samples' is -0.5, expected "),
        (Episode, {"terminal": 1}, "'terminal' is 1, expected true or false"),
        (Episode, {"score": float("nan")}, "'score' is nan, expected a number"),
        (Episode, {"length": [20]}, "'length' is [20], expected an integer"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_wrong_value_is_named_with_its_line(tmp_path, kind, change, expected, packed) -> None:
    path = write(tmp_path / "rows.jsonl", GOOD[kind], GOOD[kind], GOOD[kind] | change)
    if packed:
        path.with_name("rows.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    text = refusal(lambda: read_rows(path, kind), path)
    assert text.startswith(f"rows.jsonl:3: {expected}")
    assert len(text) < 400


@pytest.mark.parametrize("version", [2, -1, "1", 1.5, None, True, [1]])
def test_an_unknown_format_is_refused(tmp_path: Path, version: object) -> None:
    path = write(tmp_path / "rows.jsonl", EPISODE, EPISODE | {"format": version})
    text = refusal(lambda: read_rows(path, Episode), path)
    assert text == (
        f"rows.jsonl:2: format {version!r} is unknown (this version reads 0 to 1); "
        "update this project"
    )


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("truncated", "rows.jsonl:2: the last line is cut short"),
        ("no JSON", "rows.jsonl:2: not valid JSON"),
        ("no object", "rows.jsonl:2: expected an object"),
    ],
)
def test_damaged_lines_are_refused_with_their_number(tmp_path: Path, damage, expected) -> None:
    second = {"truncated": dump_line(EPISODE)[:-9], "no JSON": "]\n", "no object": "7\n"}[damage]
    path = tmp_path / "rows.jsonl"
    path.write_text(dump_line(EPISODE) + second)
    assert refusal(lambda: read_rows(path, Episode), path).startswith(expected)


# --- whose a row is ---------------------------------------------------------------------------

PLACE = Place("reference", 0)
FULL = Place("reference", 0, arm="stock", round="1")


@pytest.mark.parametrize(
    ("place", "says", "expected"),
    [
        (FULL, {}, None),
        (FULL, {"side": "ref", "arm": "stock", "round": "1"}, None),
        (FULL, {"side": "reference", "seed": 0.0}, None),
        (PLACE, {"arm": "exact", "round": "3"}, None),  # not on record: nothing to hold it against
        (FULL, {"side": "ajax"}, "its side is 'ajax'"),
        (FULL, {"side": 3}, "its side is 3"),
        (FULL, {"seed": 1}, "its seed is 1"),
        (FULL, {"arm": "exact"}, "its arm is 'exact'"),
        (FULL, {"round": "3"}, "its round is '3'"),
        (Place("ajax", 0), {"side": "ref"}, "its side is 'ref'"),
        (Place("ajax", 0), {"returns": [1.0]}, "it lists returns"),
        (Place("ajax", 0), {"returns": [1.0], "side": "ajax"}, None),
        (Place("ajax", 0), {"returns": [1.0], "format": 0}, None),  # of another project
        (Place("ajax", 0), {"returns": None}, None),
    ],
)
def test_a_row_is_held_against_its_place(tmp_path: Path, place, says, expected) -> None:
    row = EVALUATION | {"returns": None} | says
    path = write(tmp_path / "evals.jsonl", EVALUATION | {"returns": None}, row)
    if expected is None:
        assert len(read_rows(path, Evaluation, place)) == 2
        return
    text = refusal(lambda: read_rows(path, Evaluation, place), path)
    assert text.startswith(f"evals.jsonl:2: not a row of {place}: {expected}")


# --- checkpoints ----------------------------------------------------------------------------


def at(rows: int, seed: int = 0) -> Json:
    return EVALUATION | {"rows": rows, "seed": seed}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([at(400), at(800), at(800)], "evals.jsonl:3: checkpoint 800 is there twice"),
        ([at(400), at(800), at(400)], "evals.jsonl:3: checkpoint 400 follows 800"),
        ([at(400), at(800, seed=1)], "evals.jsonl:2: not a row of Reference seed 0: its seed is 1"),
        ([at(0), at(400)], "evals.jsonl:1: rows is 0, expected a positive number"),
        ([at(-400)], "evals.jsonl:1: rows is -400, expected a positive number"),
        ([], "evals.jsonl: holds no checkpoint"),
    ],
)
def test_checkpoints_that_do_not_follow_are_refused(tmp_path: Path, rows, expected) -> None:
    path = write(tmp_path / "evals.jsonl", *rows)
    text = refusal(lambda: read_checkpoints(path, Evaluation, PLACE), path)
    assert text.startswith(expected)


def test_any_ascending_checkpoints_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", *(RECORD | {"rows": rows} for rows in (7, 30, 31)))
    read = read_checkpoints(path, Record, PLACE)
    assert [row.rows for row in read] == [7, 30, 31]


# --- episodes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, None),
        ({"length": 1, "score": 1.0}, None),
        ({"length": 500, "score": 500.0}, None),
        ({"length": 500, "score": 500.0, "terminal": False}, None),
        ({"score": 19.0}, "score 19 is not its length 20"),
        ({"length": 0, "score": 0.0}, "length 0 is outside 1..500"),
        ({"length": 501, "score": 501.0}, "length 501 is outside 1..500"),
        ({"terminal": False}, "ended at 20 steps without being terminal"),
        ({"length": 499, "score": 499.0, "terminal": False}, "ended at 499 steps without being"),
    ],
)
def test_a_finished_episode_is_checked(change: Json, expected: str | None) -> None:
    values = {key: value for key, value in EPISODE.items() if key != "format"} | change
    found = check_episode(Episode(**values))
    assert found is None if expected is None else found.startswith(expected)

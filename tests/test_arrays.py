from pathlib import Path

import numpy as np
import pytest

from shared.errors import UserError
from shared.records.arrays import above, below, read_arrays, write_arrays


def test_what_is_written_is_read_and_nothing_else(tmp_path: Path) -> None:
    given = {"a/b": np.arange(3, dtype=np.float32), "flag": np.asarray(True)}
    write_arrays(tmp_path / "sub" / "x.npz", given)
    read = read_arrays(tmp_path / "sub" / "x.npz")
    assert list(read) == list(given)
    for name, each in given.items():
        assert read[name].dtype == each.dtype
        np.testing.assert_array_equal(read[name], each)


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="arrays of objects: b"):
        write_arrays(tmp_path / "x.npz", {"a": np.zeros(1), "b": np.array([{}])})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"text"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"x\.npz: is no readable \.npz file"):
        read_arrays(path)


def test_arrays_larger_than_a_file_may_have_are_refused(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(10**6))
    assert path.stat().st_size < 10**4
    assert read_arrays(path)["a"].shape == (10**6,)
    monkeypatch.setattr("shared.records.arrays.MAX_BYTES", 10**6)
    with pytest.raises(UserError, match=r"x\.npz: is no readable \.npz file"):
        read_arrays(path)


def test_only_the_arrays_that_are_asked_for_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.ones(2), b=np.array([{}], dtype=object))
    assert list(read_arrays(path, ("a", "c"))) == ["a"]
    with pytest.raises(UserError, match=r"x\.npz: is no readable \.npz file"):
        read_arrays(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.npz"):
        read_arrays(tmp_path / "x.npz")


def test_below_takes_away_what_above_adds() -> None:
    arrays = {"x": np.zeros(1), "y/z": np.ones(2)}
    both = {**above(arrays, "set"), "settle/x": np.zeros(3)}
    assert below(both, "set").keys() == arrays.keys()

"""Named numpy arrays in a file: how programs that cannot share a process exchange numbers."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from shared.errors import UserError
from shared.files import read_bytes, write_atomic

#: Name -> array; names may hold slashes.
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def write_arrays(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write ``arrays`` as one ``.npz`` file in one step. Objects are refused (``ValueError``)."""
    content = io.BytesIO()
    plain: Any = {name: np.asarray(value) for name, value in arrays.items()}
    # numpy 1 would take an option allow_pickle for one more array.
    if objects := [name for name, each in plain.items() if each.dtype.hasobject]:
        raise ValueError(f"arrays of objects: {', '.join(objects)}")
    np.savez(content, **plain)
    write_atomic(path, content.getvalue())


def read_arrays(path: Path) -> Arrays:
    """All arrays of a ``.npz`` file. Raises ``UserError`` where it is none, or not whole."""
    try:
        with np.load(io.BytesIO(read_bytes(path)), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        raise UserError(f"{path}: is no readable .npz file; make it again") from None


def below(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Arrays:
    """Those arrays whose name starts with ``prefix/``, without it."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)
    }


def above(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Arrays:
    """All arrays, with ``prefix/`` before each name."""
    return {f"{prefix}/{name}": each for name, each in arrays.items()}

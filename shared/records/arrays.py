"""Named numpy arrays in a file: how programs that cannot share a process exchange numbers."""

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from shared.errors import RecordError
from shared.records.files import open_regular, write_atomic

#: Name -> array; names may hold slashes.
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
#: Bytes of all arrays of a file. A recording of 1500 updates, the longest that is asked for, has
#: a tenth of it.
MAX_BYTES = 2**30


def write_arrays(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write ``arrays`` as one ``.npz`` file in one step; parents are created.

    Objects are refused (``ValueError``).
    """
    content = io.BytesIO()
    plain: Any = {name: np.asarray(value) for name, value in arrays.items()}
    # numpy 1 would take an option allow_pickle for one more array.
    if objects := [name for name, each in plain.items() if each.dtype.hasobject]:
        raise ValueError(f"arrays of objects: {', '.join(objects)}")
    np.savez(content, **plain)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content.getvalue())


def read_arrays(path: Path, names: Sequence[str] | None = None) -> Arrays:
    """The arrays of a ``.npz`` file, of numbers or text: all, or those of ``names`` that it has.

    Raises :class:`RecordError` where it is none, not whole, or larger than :data:`MAX_BYTES`.
    """
    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
                if sum(member.file_size for member in members.values()) > MAX_BYTES:
                    raise ValueError
                wanted = [name for name in members if names is None or name in names]
                return {name: _array(archive, members[name]) for name in wanted}
        # zipfile, zlib, numpy and Python's parser, which reads headers, have a dozen kinds of
        # error for what is damaged; numpy's words advise to load what is not to be trusted.
        except Exception:
            raise RecordError(f"{path}: is no readable .npz file; make it again") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """One array. Raises ``ValueError`` where its header promises other data than there is.

    numpy makes room for what the header says before it looks for the data.
    """
    npy: Any = np.lib.format
    with archive.open(member) as stream:
        first = npy.read_magic(stream) == (1, 0)
        header = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
        shape, _, dtype = header(stream)
        left = member.file_size - stream.tell()
    if dtype.kind not in "biufSU" or dtype.itemsize * math.prod(shape) != left:
        raise ValueError
    with archive.open(member) as stream:
        array: npt.NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array


def below(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Arrays:
    """Those arrays whose name starts with ``prefix/``, without it."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)
    }


def above(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Arrays:
    """All arrays, with ``prefix/`` before each name."""
    return {f"{prefix}/{name}": each for name, each in arrays.items()}

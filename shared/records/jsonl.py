"""Files of rows: JSON lines, plain or gzipped, that are appended to while a process runs."""

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shared.errors import RecordError
from shared.records.files import decode_text, parse_json, plain, read_bytes, require_same

#: Bytes of a file of rows, unpacked. A checkpoint takes 6 kB, so that this is 10,000 of them.
MAX_ROWS_BYTES = 64 * 2**20
#: Rows of a file. A training episode has 20 rows and more, so that this is a run of 2 million.
MAX_ROWS = 100_000
#: Bytes of one line of rows, which is parsed whole.
MAX_LINE_BYTES = 2**20


def dump_line(value: Mapping[str, Any]) -> str:
    """``value`` as one line of strict JSON, newline included."""
    return json.dumps(plain(value), allow_nan=False) + "\n"


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` of a JSON-lines file, plain or gzipped.

    Blank lines are passed over. A last line without its newline is a line if it is whole. Raises
    :class:`RecordError` at a line that is no JSON object, and at a last line that is cut short, as
    a killed writer leaves it. ``NaN`` and ``Infinity``, as Python writes them, are floats.
    """
    before = 0
    for number, line in enumerate(io.BytesIO(read_bytes(path, MAX_ROWS_BYTES)), start=1):
        if number > MAX_ROWS:
            raise RecordError(f"{path}:{number}: more than {MAX_ROWS} rows; restore the file")
        if len(line) > MAX_LINE_BYTES:
            raise RecordError(
                f"{path}:{number}: has {len(line)} characters, more than any row; restore the file"
            )
        text = decode_text(line, path, before)
        before += len(line)
        if not text.strip():
            continue
        if not line.endswith(b"\n") and not _is_whole(text):
            raise RecordError(
                f"{path}:{number}: the last line is cut short; remove it or rerun this process"
            )
        value = parse_json(text.removesuffix("\n"), path, number, constant=float)
        if not isinstance(value, dict):
            raise RecordError(f"{path}:{number}: expected an object; restore the file")
        yield number, value


def _is_whole(text: str) -> bool:
    """Whether a line goes to its end, whatever else is wrong with it: no part of an object does."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return not isinstance(error, json.JSONDecodeError)
    return True


class JsonlWriter:
    """Appends objects to a JSON-lines file; each line is on disk when :meth:`write` returns.

    Its directory must exist: a process makes its own once, and never again. A last line that
    lacks only its newline is given it. Raises :class:`RecordError` for a file whose last line is
    cut short: nothing is appended to it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Unbuffered: what the system refused must not be tried again by close().
        self._file = path.open("a+b", buffering=0)
        size = os.fstat(self._file.fileno()).st_size
        start = max(0, size - MAX_LINE_BYTES)
        last = os.pread(self._file.fileno(), size - start, start).rpartition(b"\n")[2]
        if last and _is_whole(last.decode(errors="replace")):
            self._file.write(b"\n")
        elif last:
            self.close()
            raise RecordError(f"{path}: the last line is cut short; remove it, or move the file")

    def write(self, value: Mapping[str, Any]) -> None:
        """Append one line. Non-finite numbers are written as null.

        Raises ``OSError``, with the file's name, where the system takes no more; what it took of
        this line is removed again. Raises ``UserError`` as :meth:`check`.
        """
        self.check()
        line = memoryview(dump_line(value).encode())
        whole = os.fstat(self._file.fileno()).st_size
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # a device has no length
                self._file.truncate(whole)
            error.filename = str(self._path)
            raise

    def check(self) -> None:
        """Raise ``UserError`` where the path names another file by now, or none."""
        require_same(self._path, self._file.fileno())

    def close(self) -> None:
        """Close the file; writing afterwards is an error."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

"""Reading and writing files safely: atomic replacement, JSON, and JSON lines (plain or gzipped).

A safe save writes beside the target, syncs, then replaces it; a reader sees the old file or the
new one. Readers take regular files only, and no more of them than a bound: they never wait, and
fail with one line that names the file and the line number.
"""

import errno
import gzip
import io
import json
import math
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from shared.errors import RecordError, UserError

#: Bytes of a file of rows, unpacked. A checkpoint takes 6 kB, so that this is 10,000 of them.
MAX_ROWS_BYTES = 64 * 2**20
#: Rows of a file. A training episode has 20 rows and more, so that this is a run of 2 million.
MAX_ROWS = 100_000
#: Bytes of any other file that is read whole. The largest of a round's has 50 kB.
MAX_DOCUMENT_BYTES = 4 * 2**20
#: Objects and lists of a document in one another: figures.json has 6.
MAX_NESTING = 50
#: Digits of a whole number.
MAX_DIGITS = 40
#: Bytes of one line of rows, which is parsed whole.
MAX_LINE_BYTES = 2**20


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace ``path`` by ``content`` in one step; parents are created. Text is UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as temporary:
            temporary.write(data)
            temporary.flush()
            os.fsync(temporary.fileno())
        # mkstemp makes the file private; records are as readable as any other new file.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def plain(value: Any) -> Any:
    """``value`` as strict JSON data: numpy scalars and arrays unpacked, non-finite numbers null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dump_json(value: Any) -> str:
    """``value`` as indented strict JSON with a final newline."""
    return json.dumps(plain(value), indent=1, allow_nan=False) + "\n"


def dump_line(value: Mapping[str, Any]) -> str:
    """``value`` as one line of strict JSON, newline included."""
    return json.dumps(plain(value), allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` atomically as strict JSON."""
    write_atomic(path, dump_json(value))


def open_regular(path: Path) -> BinaryIO:
    """Open the regular file ``path`` for reading, without waiting for a writer to come.

    Raises :class:`RecordError` for a directory, a pipe, a socket or a device, and for a file that
    is not there or out of reach.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file; is this the directory of a run?") from None
    except OSError as error:
        raise RecordError(f"{path}: unreadable ({error.strerror}); restore the file") from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
    raise RecordError(f"{path}: is {kind}; restore the file that was there")


def read_bytes(path: Path, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Content of ``path``, or of ``path`` + ``.gz`` unpacked where only that exists.

    Raises :class:`RecordError` for more than ``limit`` bytes, and where it cannot be read.
    """
    source = find(path) or path
    packed = source.suffix == ".gz"
    try:
        with open_regular(source) as stream:
            # One byte more than it may have says that it has more.
            reader = gzip.GzipFile(fileobj=stream) if packed else stream
            data = reader.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error  # without the path once more
        raise RecordError(f"{source}: unreadable ({reason}); restore the file") from None
    if len(data) > limit:
        more = f"more than {limit} bytes{' unpacked' if packed else ''}"
        raise RecordError(f"{source}: has {more}, which no file of its kind has; restore the file")
    return data


def read_tail(path: Path, size: int) -> bytes:
    """The last ``size`` bytes of a file, which may be of any length and is not unpacked."""
    with open_regular(path) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - size))
        return stream.read(size)


def read_text(path: Path, limit: int = MAX_DOCUMENT_BYTES) -> str:
    """Text of ``path`` or its gzipped sibling. Raises :class:`RecordError`."""
    return _decoded(read_bytes(path, limit), path)


def _decoded(data: bytes, path: Path, before: int = 0) -> str:
    """``data`` as text; ``before`` is how many bytes of the file come before it."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: is not UTF-8 text (byte {before + error.start}); restore the file"
        ) from None


def require_inside(root: Path, paths: Iterable[Path]) -> None:
    """Raise :class:`RecordError` where a link leads one of ``paths`` out of ``root``.

    Their gzipped siblings are looked at too.
    A link of ``root`` itself is followed, and so is one that stays below it.
    """
    inside = os.path.realpath(root)
    for path in paths:
        for name in (path, path.with_name(path.name + ".gz")):
            if os.path.commonpath([inside, os.path.realpath(name)]) != inside:
                raise RecordError(
                    f"{name}: a link leads out of {root}, and only what lies in it is read; put "
                    "the file itself there"
                )


def write_exit_code(path: Path, code: int) -> None:
    """Write the file of a process that holds its exit code."""
    write_atomic(path, f"{code}\n")


def read_exit_code(path: Path) -> int | None:
    """The exit code that the file of a process holds; ``None`` where there is no file."""
    if not path.exists():
        return None
    text = read_text(path).strip()
    try:
        return int(text)
    except ValueError:
        raise RecordError(f"{path}:1: {text[:40]!r} is not an exit code; restore it") from None


def find(path: Path) -> Path | None:
    """``path`` if it is there, else its gzipped sibling if that is.

    A link that leads nowhere is there too: who reads it says what is wrong with it.
    """
    packed = path.with_name(path.name + ".gz")
    return next((place for place in (path, packed) if os.path.lexists(place)), None)


def exists(path: Path) -> bool:
    """Whether ``path`` or its gzipped sibling exists."""
    return find(path) is not None


def _whole(digits: str) -> int:
    """A whole number that float64 has room for: arithmetic with it cannot overflow."""
    if len(digits) > MAX_DIGITS:
        raise ValueError
    return int(digits)


def _parse(text: str, path: Path, first_line: int) -> Any:
    """JSON that begins at ``first_line`` of ``path``."""
    try:
        return json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        line, reason = first_line + error.lineno - 1, error.msg
    except (ValueError, RecursionError):  # Python refuses a thousand nested brackets
        line, reason = first_line, "a number too long or brackets too deep"
    raise RecordError(f"{path}:{line}: not valid JSON ({reason}); restore the file")


_PLAIN = (str, int, float, bool, type(None))


def read_json(path: Path) -> Any:
    """Parsed content of a JSON file. Raises :class:`RecordError` with the line number."""
    value = _parse(read_text(path), path, 1)
    level = [value]
    for _ in range(MAX_NESTING):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for each in inner if not isinstance(each, _PLAIN) for item in each]
    if level:
        raise RecordError(f"{path}:1: has {MAX_NESTING} values in one another; restore the file")
    return value


def read_json_object(path: Path) -> dict[str, Any]:
    """As :func:`read_json`, for a file that must hold an object."""
    value = read_json(path)
    if not isinstance(value, dict):
        found = type(value).__name__
        raise RecordError(f"{path}: expected a JSON object, found {found}; restore the file")
    return value


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` of a JSON-lines file, plain or gzipped.

    A last line without its newline is a line if it is whole. Raises :class:`RecordError` at a line
    that is no JSON object, and at a last line that is cut short, as a killed writer leaves it.
    """
    before = 0
    for number, line in enumerate(io.BytesIO(read_bytes(path, MAX_ROWS_BYTES)), start=1):
        if number > MAX_ROWS:
            raise RecordError(f"{path}:{number}: more than {MAX_ROWS} rows; restore the file")
        if len(line) > MAX_LINE_BYTES:
            raise RecordError(
                f"{path}:{number}: has {len(line)} characters, more than any row; restore the file"
            )
        text = _decoded(line, path, before)
        before += len(line)
        if not line.endswith(b"\n") and not _is_whole(text):
            raise RecordError(
                f"{path}:{number}: the last line is cut short; remove it or rerun this process"
            )
        value = _parse(text.removesuffix("\n"), path, number)
        if not isinstance(value, dict):
            raise RecordError(f"{path}:{number}: expected an object; restore the file")
        yield number, value


def _is_whole(text: str) -> bool:
    """Whether a line is JSON to its end: no part of an object is."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def require_same(path: Path, handle: int) -> None:
    """Raise ``UserError`` unless ``path`` still names what was opened as ``handle``.

    It may have been removed or moved, and something else may be in its place. What is open keeps
    its inode number: nothing that is made later can be taken for it.
    """
    try:
        if os.path.samestat(os.fstat(handle), os.stat(path)):
            return
    except OSError as error:
        # Of a network file system, what was removed by another machine is stale.
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            raise
    raise UserError(
        f"{path}: was removed, moved or replaced while this process worked with it; nothing more "
        "is written, start again"
    )


class JsonlWriter:
    """Appends objects to a JSON-lines file; each line is on disk when :meth:`write` returns.

    A last line that lacks only its newline is given it. Raises :class:`RecordError` for a file
    whose last line is cut short: nothing is appended to it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
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

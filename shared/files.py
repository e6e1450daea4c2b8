"""Reading and writing files safely: atomic replacement, JSON, and JSON lines (plain or gzipped).

A safe save writes beside the target, syncs, then replaces it; a reader sees the old file or the
new one. Readers fail with one line that names the file and the line number.
"""

import gzip
import io
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shared.errors import RecordError, UserError


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


def read_bytes(path: Path) -> bytes:
    """Content of ``path``, or of ``path`` + ``.gz`` unpacked where only that exists."""
    source = path
    try:
        if path.suffix != ".gz":
            if path.exists():
                return path.read_bytes()
            source = path.with_name(path.name + ".gz")
        with gzip.open(source) as stream:
            return stream.read()
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file; is this the directory of a run?") from None
    except IsADirectoryError:
        raise RecordError(f"{source}: is a directory; restore the file that was there") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error  # without the path once more
        raise RecordError(f"{source}: unreadable ({reason}); restore the file") from None


def read_text(path: Path) -> str:
    """Text of ``path`` or its gzipped sibling. Raises :class:`RecordError`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: is not UTF-8 text (byte {error.start}); restore the file"
        ) from None


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
    """``path`` if it exists, else its gzipped sibling if that does."""
    packed = path.with_name(path.name + ".gz")
    return path if path.exists() else packed if packed.exists() else None


def exists(path: Path) -> bool:
    """Whether ``path`` or its gzipped sibling exists."""
    return find(path) is not None


def _parse(text: str, path: Path, first_line: int) -> Any:
    """JSON that begins at ``first_line`` of ``path``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line, reason = first_line + error.lineno - 1, error.msg
    except (ValueError, RecursionError):
        # Python refuses numbers of thousands of digits and a thousand nested brackets.
        line, reason = first_line, "a number too long or brackets too deep"
    raise RecordError(f"{path}:{line}: not valid JSON ({reason}); restore the file")


def read_json(path: Path) -> Any:
    """Parsed content of a JSON file. Raises :class:`RecordError` with the line number."""
    return _parse(read_text(path), path, 1)


def read_json_object(path: Path) -> dict[str, Any]:
    """As :func:`read_json`, for a file that must hold an object."""
    value = read_json(path)
    if not isinstance(value, dict):
        found = type(value).__name__
        raise RecordError(f"{path}: expected a JSON object, found {found}; restore the file")
    return value


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` of a JSON-lines file, plain or gzipped.

    Raises :class:`RecordError` at a line that is no JSON object, and at a last line without its
    newline, which is what a killed writer leaves.
    """
    text = read_text(path)
    for number, line in enumerate(io.StringIO(text), start=1):
        if not line.endswith("\n"):
            raise RecordError(
                f"{path}:{number}: the last line is cut short; remove it or rerun this process"
            )
        value = _parse(line.removesuffix("\n"), path, number)
        if not isinstance(value, dict):
            raise RecordError(f"{path}:{number}: expected an object; restore the file")
        yield number, value


def require_same(path: Path, handle: int) -> None:
    """Raise ``UserError`` unless ``path`` still names what was opened as ``handle``.

    It may have been removed or moved, and something else may be in its place. What is open keeps
    its inode number: nothing that is made later can be taken for it.
    """
    try:
        if os.path.samestat(os.fstat(handle), os.stat(path)):
            return
    except (FileNotFoundError, NotADirectoryError):
        pass
    raise UserError(
        f"{path}: was removed, moved or replaced while this process worked with it; nothing more "
        "is written, start again"
    )


class JsonlWriter:
    """Appends objects to a JSON-lines file; each line is on disk when :meth:`write` returns.

    Raises :class:`RecordError` for a file whose last line is cut short: nothing is appended to it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        # Unbuffered: what the system refused must not be tried again by close().
        self._file = path.open("a+b", buffering=0)
        size = os.fstat(self._file.fileno()).st_size
        if size and os.pread(self._file.fileno(), 1, size - 1) != b"\n":
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

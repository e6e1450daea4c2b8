"""Reading and writing files safely: atomic replacement, text and JSON (plain or gzipped).

A safe save writes beside the target, syncs, then replaces it; a reader sees the old file or the
new one. Readers take regular files only, and no more of them than a bound: they never wait, and
fail with one line that names the file and the line number.
"""

import errno
import gzip
import json
import math
import os
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from shared.errors import RecordError, UserError, shown

#: Bytes of any other file that is read whole. The largest of a round's has 50 kB.
MAX_DOCUMENT_BYTES = 4 * 2**20
#: Objects and lists of a document in one another: figures.json has 6.
MAX_NESTING = 50
#: Digits of a whole number.
MAX_DIGITS = 40


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace ``path`` by ``content`` in one step; its directory must exist. Text is UTF-8."""
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
    return decode_text(read_bytes(path, limit), path)


def decode_text(data: bytes, path: Path, before: int = 0) -> str:
    """``data`` as text; ``before`` is how many bytes of the file come before it.

    A byte-order mark, with which some editors begin a file, is no part of the text.
    """
    try:
        text = data.decode()
        return text if before else text.removeprefix("\ufeff")
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

    A link that leads nowhere is there too, and so is a file in a directory that nobody may look
    into: who reads it says what is wrong with it.
    """
    for place in (path, path.with_name(path.name + ".gz")):
        try:
            os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            pass
        return place
    return None


def exists(path: Path) -> bool:
    """Whether ``path`` or its gzipped sibling exists."""
    return find(path) is not None


def _whole(digits: str) -> int:
    """A whole number that float64 has room for: arithmetic with it cannot overflow."""
    if len(digits) > MAX_DIGITS:
        raise ValueError("a number too long")
    return int(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {shown(twice)} is there twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def parse_json(
    text: str, path: Path, first_line: int, constant: Callable[[str], float] = _no_constant
) -> Any:
    """JSON that begins at ``first_line`` of ``path``. Raises :class:`RecordError`.

    An object has every key once. ``constant`` takes what Python writes for no finite number.
    """
    try:
        value = json.loads(
            text, parse_int=_whole, parse_constant=constant, object_pairs_hook=_object
        )
        if text.count("{") + text.count("[") >= MAX_NESTING:
            _require_flat(value)
        return value
    except json.JSONDecodeError as error:
        line, reason = first_line + error.lineno - 1, error.msg
    except RecursionError:  # Python refuses a thousand nested brackets
        line, reason = first_line, "brackets too deep"
    except ValueError as error:
        line, reason = first_line, str(error)
    raise RecordError(f"{path}:{line}: not valid JSON ({reason}); restore the file")


_PLAIN = (str, int, float, bool, type(None))


def _require_flat(value: Any) -> None:
    level = [value]
    for _ in range(MAX_NESTING):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for each in inner if not isinstance(each, _PLAIN) for item in each]
    if level:
        raise ValueError("brackets too deep")


def read_json(path: Path) -> Any:
    """Parsed content of a JSON file. Raises :class:`RecordError` with the line number."""
    return parse_json(read_text(path), path, 1)


def read_json_object(path: Path) -> dict[str, Any]:
    """As :func:`read_json`, for a file that must hold an object."""
    value = read_json(path)
    if not isinstance(value, dict):
        found = type(value).__name__
        raise RecordError(f"{path}: expected a JSON object, found {found}; restore the file")
    return value


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

"""Files are replaced in one step, lines are on disk when written, and damage is one line."""

import errno
import gzip
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import RecordError
from shared.provenance.roots import REPO
from shared.records.files import (
    dump_json,
    exists,
    plain,
    read_bytes,
    read_json,
    read_json_object,
    read_text,
    write_atomic,
    write_json,
)
from shared.records.jsonl import JsonlWriter, dump_line, read_jsonl

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=4)


def message(path: Path, *, json_lines: bool = True) -> str:
    """The one line that reading ``path`` ends in."""
    with pytest.raises(RecordError) as caught:
        list(read_jsonl(path)) if json_lines else read_json(path)
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(str(path.parent) + os.sep, "")


# --- writing --------------------------------------------------------------------------------


def test_no_folder_is_made_for_a_file(tmp_path: Path) -> None:
    """A process whose directory was removed must not make it again."""
    for write in (write_json, lambda path, value: JsonlWriter(path).write(value)):
        with pytest.raises(FileNotFoundError):
            write(tmp_path / "gone" / "file", {})
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomic(path, "first ä\n")
    assert path.read_bytes() == "first ä\n".encode()
    write_atomic(path, b"\x00second")
    assert path.read_bytes() == b"\x00second"
    assert list(path.parent.iterdir()) == [path]


def test_a_written_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", "text")
        assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
        assert os.umask(0o022) == 0o022, "the umask is as it was"
    finally:
        os.umask(mask)


def out_of_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "os.chmod"])
def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch, step) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"old": 1})
    before = path.read_bytes()
    monkeypatch.setattr(step, out_of_space)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, {"new": 2})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [{"a": object()}, {"a": {1, 2}}, {"a": b"bytes"}, {"a": 1j}])
def test_a_value_that_json_lacks_leaves_the_old_file(tmp_path: Path, value: object) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"old": 1})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_json(path, value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def as_another_user(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``program`` as a user whom permissions bind; the superuser may write anywhere."""
    drop = "import os\nif os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
    return subprocess.run(
        [sys.executable, "-B", "-c", PRELUDE + drop + program, *map(str, arguments)],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Imported before the user is dropped, who may not be able to read this checkout.
PRELUDE = (
    "import sys\nfrom pathlib import Path\n"
    "from shared.records.files import read_bytes, write_atomic\n"
    "from shared.records.jsonl import JsonlWriter\n"
    "from shared.errors import RecordError\n"
)


def test_a_folder_that_cannot_be_written_keeps_the_old_file(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    path = folder / "file"
    path.write_text("old")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    folder.chmod(0o555)
    try:
        done = as_another_user("write_atomic(Path(sys.argv[1]), 'new')", path)
    finally:
        folder.chmod(0o755)
    assert "PermissionError" in done.stderr
    assert path.read_text() == "old"
    assert list(folder.iterdir()) == [path]


def test_a_file_out_of_reach_of_the_user_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("secret")
    path.chmod(0)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    program = (
        "try: read_bytes(Path(sys.argv[1]))\nexcept RecordError as error: print(error)\n"
        "else: print('read')"
    )
    done = as_another_user(program, path)
    assert done.stdout == f"{path}: unreadable (Permission denied); restore the file\n", done.stderr


# --- values ---------------------------------------------------------------------------------


def naive_plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: naive_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [naive_plain(item) for item in value]
    return None if value in (math.inf, -math.inf) or value != value else value


@given(json_values)
def test_what_is_written_reads_back_with_null_for_what_is_no_number(value: object) -> None:
    assert json.loads(dump_json(value), parse_constant=pytest.fail) == naive_plain(value)
    line = dump_line({"value": value})
    assert line.count("\n") == 1 and line.endswith("\n")
    assert json.loads(line, parse_constant=pytest.fail) == {"value": naive_plain(value)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), [[1.0, None], [2.0, 3.0]]),
        ((1, (2.0, -math.inf)), [1, [2.0, None]]),
        ({1: np.arange(2)}, {"1": [0, 1]}),
    ],
)
def test_numpys_values_are_written_as_plain_ones(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


# --- JSON lines -----------------------------------------------------------------------------


@given(rows=st.lists(objects, max_size=5), packed=st.booleans())
def test_lines_read_back_with_their_numbers_plain_or_gzipped(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], packed: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    with JsonlWriter(path) as writer:
        for row in rows:
            writer.write(row)
    if packed:
        path.with_name("rows.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    expected = [naive_plain(row) for row in rows]
    assert list(read_jsonl(path)) == list(enumerate(expected, start=1))


def test_every_line_is_on_disk_when_write_returns(tmp_path: Path, monkeypatch) -> None:
    path, synced = tmp_path / "rows.jsonl", []
    monkeypatch.setattr("os.fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    with JsonlWriter(path) as writer:
        for number in range(3):
            writer.write({"n": number})
            assert [row["n"] for _, row in read_jsonl(path)] == list(range(number + 1))
            assert synced[-1] == path.stat().st_size
    assert len(synced) == 3
    with JsonlWriter(path) as writer:
        writer.write({"n": 3})
    assert [row["n"] for _, row in read_jsonl(path)] == [0, 1, 2, 3]


def test_a_value_that_json_lacks_leaves_the_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with JsonlWriter(path) as writer:
        writer.write({"n": 1})
        with pytest.raises(TypeError):
            writer.write({"n": object()})
        writer.write({"n": 2})
    assert [row["n"] for _, row in read_jsonl(path)] == [1, 2]


def test_lines_before_a_full_disk_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "writer = JsonlWriter(Path(sys.argv[1]))\n"
        "for number in range(1000): writer.write({'number': number, 'text': 'x' * 40})\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", PRELUDE + program, str(path)],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert str(path) in done.stderr
    found = list(read_jsonl(path))
    assert found == [(n + 1, {"number": n, "text": "x" * 40}) for n in range(len(found))]
    size = len(dump_line(found[0][1]))
    # Nothing of what fitted is lost; numbers from 10 on take a digit more.
    assert len(found) == (1000 + 10) // (size + 1)


def test_a_line_that_did_not_fit_leaves_room_for_the_next(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "rows.jsonl"
    with JsonlWriter(path) as writer:
        writer.write({"n": 0})
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", out_of_space)
            with pytest.raises(OSError, match="No space left") as caught:
                writer.write({"n": 1})
        assert caught.value.filename == str(path)
        writer.write({"n": 2})
    assert [row["n"] for _, row in read_jsonl(path)] == [0, 2]


@pytest.mark.parametrize("half", ['{"n": 1', '{"n": 1, "m": {}', "{"])
def test_nothing_is_appended_to_half_a_line(tmp_path: Path, half: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 0}\n' + half)
    with pytest.raises(RecordError, match=r"rows\.jsonl: the last line is cut short"):
        JsonlWriter(path)
    assert path.read_text() == '{"n": 0}\n' + half


def test_a_last_line_that_lacks_only_its_newline_is_a_line_and_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 0}\n{"n": 1}')
    assert [row["n"] for _, row in read_jsonl(path)] == [0, 1]
    for number in (2, 3):
        with JsonlWriter(path) as writer:
            writer.write({"n": number})
    assert path.read_text() == '{"n": 0}\n{"n": 1}\n{"n": 2}\n{"n": 3}\n'
    path.with_name("packed.jsonl.gz").write_bytes(gzip.compress(b'{"n": 0}'))
    assert [row["n"] for _, row in read_jsonl(tmp_path / "packed.jsonl")] == [0]


# --- damage ---------------------------------------------------------------------------------

GOOD = b'{"a": 1}\n'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD + b'{"a": 2', "rows.jsonl:2: the last line is cut short"),
        (GOOD + b'{"a": {}', "rows.jsonl:2: the last line is cut short"),
        (GOOD + b"2", "rows.jsonl:2: expected an object"),
        (GOOD + b"not json\n" + GOOD, "rows.jsonl:2: not valid JSON"),
        (GOOD + GOOD + b'{"a": }\n', "rows.jsonl:3: not valid JSON"),
        (GOOD + b"\n\n" + b"damage\n", "rows.jsonl:4: not valid JSON"),
        (GOOD + b"\xef\xbb\xbf" + GOOD, "rows.jsonl:2: not valid JSON"),
        (b"[1, 2]\n", "rows.jsonl:1: expected an object"),
        (GOOD + b"null\n", "rows.jsonl:2: expected an object"),
        (GOOD + b'{"a": ' + b"1" * 5_000 + b"}\n", "rows.jsonl:2: not valid JSON (a number too"),
        (GOOD + b'{"a": -' + b"1" * 41 + b"}\n", "rows.jsonl:2: not valid JSON (a number too"),
        (GOOD + b'{"a": ' + b"[" * 100_000 + b"\n", "rows.jsonl:2: not valid JSON (brackets too"),
        (
            GOOD + b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}\n",
            "rows.jsonl:2: not valid JSON (brackets",
        ),
        (GOOD + b'{"a": ' + b"1" * 5_000 + b"}", "rows.jsonl:2: not valid JSON (a number too"),
        (
            GOOD + b'{"a": 1, "b": 2, "a": 1}\n',
            "rows.jsonl:2: not valid JSON (the key 'a' is there",
        ),
        (b'{"a": {"b": 1, "b": 2}}', "rows.jsonl:1: not valid JSON (the key 'b' is there twice"),
        (GOOD + b'{"a": "\xff"}\n', "rows.jsonl: is not UTF-8 text (byte 16)"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_lines_are_named(tmp_path: Path, content, expected, packed) -> None:
    path = tmp_path / "rows.jsonl"
    if packed:
        path.with_name("rows.jsonl.gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)
    assert message(path).startswith(expected)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD * 2,
        GOOD + b"\n \r\n\t\n" + GOOD,
        b"\n" + GOOD + GOOD + b"\n\n",
        GOOD + GOOD + b"  ",
        b"\xef\xbb\xbf\n" + GOOD.replace(b"\n", b"\r\n") * 2,
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_and_blank_lines_say_nothing(
    tmp_path: Path, content: bytes, packed: bool
) -> None:
    path = tmp_path / "rows.jsonl"
    if packed:
        path.with_name("rows.jsonl.gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)
    assert [row for _, row in read_jsonl(path)] == [{"a": 1}, {"a": 1}]


def test_a_document_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD)
    assert read_json(path) == {"a": 1}


def test_lines_before_the_damage_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD * 3 + b"damage\n")
    rows = read_jsonl(path)
    assert [next(rows)[0] for _ in range(3)] == [1, 2, 3]
    with pytest.raises(RecordError):
        next(rows)


def archives() -> dict[str, bytes]:
    whole = gzip.compress(b"".join(b'{"a": %d}\n' % number for number in range(3_000)))
    return {
        "cut short": whole[: len(whole) // 2],
        "no archive": b"this is not gzip\n",
        "damaged header": b"\x1f\x8b\xff" + whole[3:],
        "damaged stream": whole[:20] + bytes([whole[20] ^ 0xFF]) + whole[21:],
        "damaged inside": whole[:4_000] + b"\xff" * 50 + whole[4_050:],
        "wrong checksum": whole[:-6] + b"\x00\x01" + whole[-4:],
        "trailing rubbish": whole + b"rubbish",
        "empty": b"",
    }


@pytest.mark.parametrize("kind", archives())
def test_damaged_archives_are_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.jsonl"
    content = archives()[kind]
    path.with_name("rows.jsonl.gz").write_bytes(content)
    if kind == "empty":
        assert list(read_jsonl(path)) == []  # as an empty plain file: no lines
    else:
        assert message(path).startswith("rows.jsonl.gz: unreadable (")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert message(tmp_path / "rows.jsonl").startswith("rows.jsonl: no such file")
    (tmp_path / "rows.jsonl.gz").mkdir()
    assert message(tmp_path / "rows.jsonl").startswith("rows.jsonl.gz: is a directory")
    (tmp_path / "rows.jsonl").mkdir()
    assert message(tmp_path / "rows.jsonl").startswith("rows.jsonl: is a directory")
    (tmp_path / "file").write_text("")
    assert message(tmp_path / "file" / "rows.jsonl").startswith("rows.jsonl: unreadable (Not a")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"a": 1,\n "b": }\n', "x.json:2: not valid JSON"),
        ("", "x.json:1: not valid JSON"),
        ("[" * 100_000, "x.json:1: not valid JSON (brackets too deep)"),
        ("[" * 60 + "]" * 60, "x.json:1: not valid JSON (brackets too deep)"),
        ('{"a": ' * 60 + "1" + "}" * 60, "x.json:1: not valid JSON (brackets too deep)"),
        ('{\n"a": ' + "1" * 41 + "}", "x.json:1: not valid JSON (a number too long)"),
        ('{"a": [{"b": 1, "b": 1}]}', "x.json:1: not valid JSON (the key 'b' is there twice)"),
        ('{"a": NaN}', "x.json:1: not valid JSON (NaN is no number"),
        ('{"a": [1, -Infinity]}', "x.json:1: not valid JSON (-Infinity is no number"),
    ],
)
def test_a_damaged_document_is_named_with_its_line(tmp_path: Path, content, expected) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert message(path, json_lines=False).startswith(expected)


def test_a_document_that_must_be_an_object(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": [1]})
    assert read_json_object(path) == {"a": [1]}
    write_json(path, [1])
    with pytest.raises(RecordError, match=r"x\.json: expected a JSON object, found list"):
        read_json_object(path)


# --- plain and gzipped siblings -------------------------------------------------------------


def test_the_plain_file_comes_before_its_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    assert not exists(path)
    path.with_name("x.txt.gz").write_bytes(gzip.compress(b"packed"))
    assert exists(path)
    assert (read_text(path), read_text(path.with_name("x.txt.gz"))) == ("packed", "packed")
    path.write_text("plain")
    assert (read_bytes(path), read_text(path.with_name("x.txt.gz"))) == (b"plain", "packed")


@pytest.mark.parametrize("number", [errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO])
def test_a_file_that_nobody_may_look_at_is_there(tmp_path: Path, monkeypatch, number: int) -> None:
    """Its reader says that it cannot be read, not that there is none."""

    def refuse(path: object, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("os.lstat", refuse)
    assert exists(tmp_path / "x.txt")
    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(RecordError, match=re.escape(f"x.txt: unreadable ({os.strerror(number)})")):
        read_text(tmp_path / "x.txt")


def test_nothing_lies_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not exists(tmp_path / "file" / "x.txt")

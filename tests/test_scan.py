"""The scan finds planted paths and names of every kind, and nothing in what is harmless."""

import getpass
import gzip
import io
import json
import os
import platform
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import RecordError
from shared.metrics import AJAX_TO_REFERENCE
from shared.records.rows import Record
from shared.scan import files_below, local_names, main, scan_text, scan_tree

# Spelled in two parts, so that the scan finds nothing in this file.
HOME = "/home" + "/jane"
NAMES = {"loki": "host name", "loki.lab.example": "host name", "jane": "user name"}


def texts(text: str, names: dict[str, str] | None = None) -> list[str]:
    return [finding.text for finding in scan_text(text, Path("x"), names or {})]


# --- paths ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"{HOME}/runs/1", f"{HOME}/runs/1"),
        (f'"logdir": "{HOME}/runs"', f"{HOME}/runs"),
        (f"PYTHONPATH={HOME}", HOME),
        (f"rsync loki:{HOME}/runs .", f"{HOME}/runs"),
        (f"({HOME}/a.txt)", f"{HOME}/a.txt"),
        ("see /tmp" + "/x1", "/tmp" + "/x1"),
        ("/root" + "/.cache/jax", "/root" + "/.cache/jax"),
        ("/Users" + "/jane/runs", "/Users" + "/jane/runs"),
        ("/us" + "r/lib/python3.11/json.py", "/us" + "r/lib/python3.11/json.py"),
        ("/var" + "/folders/zz", "/var" + "/folders/zz"),
        ("/mnt" + "/data", "/mnt" + "/data"),
        ("C:" + "\\Users\\jane", "C:" + "\\Users\\jane"),
        ("d:" + "\\runs", "d:" + "\\runs"),
        ('"C:' + '\\\\Users\\\\jane"', "C:" + "\\\\Users\\\\jane"),
        ("C:/" + "Users/jane/runs", "/Users" + "/jane/runs"),
        ("file:" + "///srv/x", "file:" + "///srv"),
        ("~jane" + "/runs", "~jane" + "/runs"),
        ("cd ~" + "/runs", "~" + "/runs"),
        ("x=~" + "/.netrc", "~" + "/.netrc"),
    ],
)
def test_paths_of_a_machine_are_found(line: str, found: str) -> None:
    # A Windows path may be found to its second or to its last part.
    assert [text[: len(found)] for text in texts(f"before\n{line}\nafter")] == [found]
    (finding,) = scan_text(f"before\n{line}\n", Path("kept.md"), {})
    assert str(finding).startswith("kept.md:2: absolute path: ")


@pytest.mark.parametrize(
    "line",
    [
        "https://github.com/danijar/dreamerv3",
        "https://example.org/home/jane/x and http://a.b:8080/tmp/y",
        "https://example.org/~jane/page.html",
        "git@github.com:danijar/dreamerv3.git",
        "<out>/ref_s0/config.yaml <repo>/results <ajax-src>/ajax/agents",
        "<out>/tmp/x <elsewhere>/run",
        "results/published/round1.jsonl ../shared/tmp/x ./tmp/y",
        "ent/action/mean rand/action/std data_rew/mean opt/grad/norm",
        "2/5 runs, 4/5, 1/252, and/or, s/update, N / 16",
        "about ~5 seconds, ~ 3/4 of it, a~b/c",
        "#!/usr/bin/env python and #!/bin/sh and #!/bin/bash",
        "> /dev/null 2>/dev/stderr </dev/stdout",
        "/api/v1/items and /24 and 10.0.0.0/8",
        'a regular expression: "\\\\d+" and \\w',
        "drive C: is full",
    ],
)
def test_what_names_no_machine_is_passed_over(line: str) -> None:
    assert texts(line, {"loki": "host name"}) == []


@given(st.text(st.characters(codec="ascii", exclude_characters="/~\\"), max_size=60))
def test_text_without_separators_holds_no_path(text: str) -> None:
    assert texts(text) == []


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ran on loki", ["loki"]),
        ("ran on loki.lab.example today", ["loki.lab.example"]),
        ("user: jane", ["jane"]),
        ("jane@loki", ["jane", "loki"]),
        ("lokis janet prejane loki_2", []),
    ],
)
def test_names_are_found_as_whole_words(line: str, found: list[str]) -> None:
    names = dict(sorted(NAMES.items(), key=lambda item: -len(item[0])))
    assert texts(line, names) == found


def test_the_kind_of_a_name_is_said() -> None:
    found = list(scan_text("x\njane on loki\n", Path("a.md"), NAMES))
    assert list(map(str, found)) == ["a.md:2: user name: jane", "a.md:2: host name: loki"]


def test_names_of_this_machine_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "loki.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "jane")
    monkeypatch.setattr(Path, "home", lambda: Path("elsewhere") / "janehome")
    assert local_names() == NAMES | {"janehome": "user name"}


def test_common_words_and_short_names_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "localhost")
    monkeypatch.setattr(getpass, "getuser", lambda: "Root")
    monkeypatch.setattr(Path, "home", lambda: Path("elsewhere") / "jo")
    assert local_names() == {}


def test_a_user_called_like_a_metric_is_not_found_in_every_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "loki")
    for name in ("max", "mean", "std", "ref", "ajax", "worker", "literal", "evals", "jane"):
        monkeypatch.setattr(getpass, "getuser", lambda name=name: name)
        monkeypatch.setattr(Path, "home", lambda: Path("elsewhere") / "root")
        wanted = {"loki": "host name"} | ({"jane": "user name"} if name == "jane" else {})
        assert local_names() == wanted, name
    raw = {name: 0.0 for pair in AJAX_TO_REFERENCE.items() for name in pair}
    row = Record(0, 400, 0, "ref", 9.5, 9.5, None, None, raw, raw, {"low": 0.0, "scale": 1.0})
    for word in re.findall(r"\w\w\w+", json.dumps(row.train)):
        monkeypatch.setattr(getpass, "getuser", lambda name=word: name)
        assert texts(json.dumps(row.to_json()), local_names()) == []


def test_a_user_without_an_entry_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(platform, "node", lambda: "loki")
    monkeypatch.setattr(getpass, "getuser", unknown)
    monkeypatch.setattr(Path, "home", lambda: Path("elsewhere") / "jane")
    assert local_names() == {"loki": "host name", "jane": "user name"}


# --- kinds of files -------------------------------------------------------------------------


def archive(compressed: bool, **arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


CONTENTS = {
    "plain.json": f'{{"logdir": "{HOME}/runs"}}\n'.encode(),
    "latin.txt": b"caf\xe9 " + HOME.encode() + b"/runs\n",
    "packed.jsonl.gz": gzip.compress(f'{{"logdir": "{HOME}/runs"}}\n'.encode()),
    "bytes.npz": archive(False, numbers=np.arange(50), where=np.array(HOME.encode() + b"/runs")),
    "text.npz": archive(False, numbers=np.arange(50), where=np.array(HOME + "/runs")),
    "compressed.npz": archive(True, numbers=np.arange(50), where=np.array(HOME + "/runs")),
    "packed.npz.gz": gzip.compress(archive(True, where=np.array([HOME + "/runs"]))),
    "binary.bin": bytes(range(256)) + HOME.encode() + b"/runs" + bytes(20),
    "utf16.txt": (HOME + "/runs").encode("utf-16"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_path_is_found_in_every_kind_of_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "deep" / "er" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENTS[name])
    found = scan_tree(tmp_path, names={})
    assert {finding.path for finding in found} == {path}
    assert {finding.text for finding in found} == {f"{HOME}/runs"}
    assert scan_tree(path, names={}) == found


@pytest.mark.parametrize("name", ["host.npz", "host.txt.gz"])
def test_a_name_is_found_in_archives(tmp_path: Path, name: str) -> None:
    text = "made by jane on loki"
    content = (
        archive(True, a=np.array(text)) if name == "host.npz" else gzip.compress(text.encode())
    )
    (tmp_path / name).write_bytes(content)
    assert {finding.text for finding in scan_tree(tmp_path, names=NAMES)} == {"jane", "loki"}


def test_noise_in_a_binary_file_is_no_path(tmp_path: Path) -> None:
    noise = np.random.default_rng(3).integers(0, 256, 2_000_000, dtype=np.uint8)
    (tmp_path / "noise.bin").write_bytes(b"\0" + noise.tobytes())
    (tmp_path / "noise.npz").write_bytes(archive(False, a=noise.view(np.float32)))
    assert scan_tree(tmp_path, names={}) == []


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"content" * 100)[:-9])
    with pytest.raises(RecordError, match=r"x\.gz: unreadable"):
        scan_tree(tmp_path, names={})
    (tmp_path / "x.gz").unlink()
    (tmp_path / "x.npz").write_bytes(archive(True, a=np.zeros(1_000))[:-9])
    assert scan_tree(tmp_path, names={}) == []


def test_left_out_suffixes_links_and_pipes(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(HOME + "/runs\n")
    (tmp_path / "b.md").write_text("fine\n")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "device").symlink_to("/dev" + "/zero")
    os.mkfifo(tmp_path / "pipe")
    assert [path.name for path in files_below(tmp_path)] == ["a.log", "b.md"]
    assert scan_tree(tmp_path, names={}, skip_suffixes=[".log"]) == []
    assert len(scan_tree(tmp_path, names={})) == 1


def test_files_come_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a/9", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path)]
    assert found == ["c", "a/9", "b/1", "b/2"]


# --- the command ----------------------------------------------------------------------------


def test_the_command_prints_findings_and_says_no(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "a.md").write_text(f"one\ntwo {HOME}/x\n")
    (tmp_path / "a.log").write_text(f"{HOME}/x\n")
    monkeypatch.setattr("sys.argv", ["scan", str(tmp_path), "--skip", ".log"])
    assert main() == 1
    assert capsys.readouterr().out == f"{tmp_path / 'a.md'}:2: absolute path: {HOME}/x\n"
    (tmp_path / "a.md").write_text("nothing\n")
    assert main() == 0
    assert capsys.readouterr().out == ""


def test_the_command_names_a_missing_path(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["scan", str(tmp_path / "absent")])
    with pytest.raises(Exception, match=re.escape("absent: no such file or directory")):
        main()

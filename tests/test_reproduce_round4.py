"""``reproduce`` and round 4's raw records: equal to the last digit, and every edit is found."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import compare, reproduce
from analysis.manifest import write_manifest
from tests.conftest import Command, tree
from tests.synthetic_round4 import write_round4

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def recorded(own: Path, command: Command) -> Path:
    """``results/`` with a made-up round 4, its tables and its digests."""
    shutil.rmtree(own / "round4", ignore_errors=True)
    write_round4(own / "round4", packed=True)
    for log in (own / "round4").rglob("*.log"):
        log.unlink()
    write_manifest(own)
    done = command(reproduce.main, "--update")
    assert (done.status, done.err) == (0, "")
    assert "round4/literal, round4/exact" in done.out
    return own


def test_raw_records_are_recomputed_to_the_last_digit(recorded: Path, command: Command) -> None:
    before = tree(recorded)
    done = command(reproduce.main)
    assert (done.status, done.err) == (0, "")
    lines = {
        cells[0]: cells[1:]
        for line in done.out.splitlines()
        if line.startswith("round4 ") and (cells := re.split(r"\s{2,}", line))
    }
    assert len(lines) == 5 + 5 + 4 + 3 + 1
    for name, (first, second, equal) in lines.items():
        assert (first, equal) == (second, "yes"), name
    assert lines["round4 reading"][0] == "confirmed"
    assert lines["round4 ret/std 2000"][0].endswith(": follows the form")
    assert re.search(r"59 statistics equal, 0 different.* 24 documents equal; 0 files", done.out)
    assert tree(recorded) == before


# --- an edited record -----------------------------------------------------------------------


def edit(path: Path, number: int, change: Callable[[str], str]) -> int:
    """Change line ``number`` (from 1), of a gzipped file too."""
    packed = path.suffix == ".gz"
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    lines = data.decode().splitlines(keepends=True)
    changed = change(lines[number - 1])
    assert changed != lines[number - 1]
    lines[number - 1] = changed
    new = "".join(lines).encode()
    path.write_bytes(gzip.compress(new) if packed else new)
    return number


def of_row(change: Callable[[dict[str, Any]], object]) -> Callable[[str], str]:
    def edited(line: str) -> str:
        row = json.loads(line)
        change(row)
        return json.dumps(row) + "\n"

    return edited


def higher(by: float, *keys: str) -> Callable[[str], str]:

    def change(row: dict[str, Any]) -> None:
        for key in keys[:-1]:
            row = row[key]
        row[keys[-1]] += by

    return of_row(change)


EDITS: dict[str, tuple[str, int, Callable[[str], str], set[str]]] = {
    "an evaluation": (
        "literal/ref_s10/evals.jsonl", 3, higher(0.5, "mean"),
        {"literal/compare.md", "literal/summary.json", "literal/figures.json", "reading.json"},
    ),
    "an evaluation of Ajax": (
        "exact/ajax/s12/evals.jsonl", 10, higher(0.5, "mean"),
        {"exact/compare.md", "exact/summary.json", "exact/figures.json", "reading.json"},
    ),
    "a training metric": (
        "literal/ref_s12/records.jsonl.gz", 5, higher(1e-6, "train", "ret/std"),
        {"reading.json", "figures.json"},
    ),
    "a training metric of Ajax": (
        "exact/ajax/s10/records.jsonl.gz", 9, higher(1e-6, "train", "ent/action/mean"),
        {"exact/figures.json", "reading.json", "figures.json"},
    ),
    "a number of samples": (
        "exact/ref_s10/records.jsonl.gz", 4, of_row(lambda row: row.update(window_samples=7)),
        {"exact/compare.md", "reading.md", "reading.json"},
    ),
    "S2 as Ajax logged it": (
        "literal/ajax/s11/records.jsonl.gz", 10, of_row(lambda row: row.update(s2_logged=99.5)),
        {"literal/compare.md", "literal/summary.json", "reading.md", "reading.json"},
    ),
    "an episode": (
        "literal/ref_s11/episodes.jsonl.gz", 40,
        of_row(lambda row: row.update(score=row["score"] + 1)),
        {"literal/compare.md", "literal/summary.json", "reading.md", "reading.json"},
    ),
    "the launch": (
        "exact/launch_info.txt", 14, lambda line: line.replace("rows: 4000", "rows: 4400"),
        set(),
    ),
    "the document": (
        "exact/launch_info.txt", 19, lambda line: line.replace("sha256: 57e8", "sha256: 57e9"),
        {"exact/compare.md", "exact/summary.json", "reading.md", "reading.json"},
    ),
    "an exit code": (
        "literal/ajax.DONE",
        1,
        lambda _: "1\n",
        {"literal/compare.md", "literal/summary.json", "reading.md", "reading.json"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_record_is_found_with_table_line_and_file(
    name: str, recorded: Path, command: Command
) -> None:
    where, number, change, tables = EDITS[name]
    path = recorded / "round4" / where
    line = edit(path, number, change)
    done = command(reproduce.main)
    assert (done.status, done.err) == (1, "")
    assert f"error: {path}:{line}: changed since the manifest was written; restore it" in done.out
    for table in tables:
        assert f"--- recorded/{recorded / 'round4' / table}" in done.out, table
    (named,) = re.findall("^documents that differ: (.*)$", done.out, re.M) or [""]
    assert {f"round4/{table}" for table in tables} <= set(named.split(", "))
    assert done.out.splitlines()[-1].endswith("; 1 files changed")
    # Digests made to fit do not hide it, unless no table depends on it.
    write_manifest(recorded)
    assert command(reproduce.main).status == (1 if tables else 0)


def test_an_edited_final_state_is_found(recorded: Path, command: Command) -> None:
    path = recorded / "round4" / "exact" / "ajax" / "ajax_final.npz"
    arrays = dict(np.load(path))
    arrays["return_sum"][1, 3] += 2
    np.savez(path, **arrays)
    done = command(reproduce.main)
    assert (done.status, done.err) == (1, "")
    assert f"error: {path}: changed since the manifest was written; restore it" in done.out
    for table in ("exact/compare.md", "exact/summary.json", "reading.md", "reading.json"):
        assert f"--- recorded/{recorded / 'round4' / table}" in done.out, table
    assert re.search(r"^round4 reading +confirmed +undecided +NO$", done.out, re.M)


def test_an_edited_statistic_is_named_in_the_table(recorded: Path, command: Command) -> None:
    path = recorded / "round4" / "reading.json"
    document = json.loads(path.read_text())
    document["statistics"]["adv/std 2000"]["seeds"]["ajax exact"]["12"] += 1e-9
    path.write_text(json.dumps(document, indent=1) + "\n")
    done = command(reproduce.main)
    assert done.status == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("round4 adv/std 2000")]
    assert line.endswith("NO")
    assert f"{path}: statistics.adv/std 2000.seeds.ajax exact.12: recorded " in done.out


@pytest.mark.parametrize("text", ["{}", '{"statistics": [], "reading": {"a": 1}}'])
def test_a_recorded_reading_of_another_shape_is_a_difference(
    text: str, recorded: Path, command: Command
) -> None:
    (recorded / "round4" / "reading.json").write_text(text)
    done = command(reproduce.main)
    assert (done.status, done.err) == (1, "")
    assert re.search(r"^round4 ret/std 2000 +- +0\.\d{4} .*NO$", done.out, re.M)


def test_a_lost_record_is_one_line(recorded: Path, command: Command) -> None:
    path = recorded / "round4" / "literal" / "ref_s10" / "records.jsonl.gz"
    path.unlink()
    done = command(reproduce.main)
    assert (done.status, done.err) == (1, "")
    assert f"error: {path}: is missing; restore it" in done.out
    assert "+Reading: undecided: failed check: literal: FAIL ref s10 records: " in done.out


def test_a_damaged_record_is_one_line(recorded: Path, command: Command) -> None:
    path = recorded / "round4" / "literal" / "ref_s10" / "evals.jsonl"
    path.write_text(path.read_text()[:-20])
    done = command(reproduce.main)
    assert done.status == 2
    assert f"error: {path}:10: changed since the manifest was written" in done.out
    assert done.err == (
        f"error: {path}:10: the last line is cut short; remove it or rerun this process\n"
    )


# --- without both parts ---------------------------------------------------------------------


def test_without_round_4_everything_is_as_before(recorded: Path, command: Command) -> None:
    shutil.rmtree(recorded / "round4")
    write_manifest(recorded)
    done = command(reproduce.main)
    assert (done.status, done.err) == (0, "")
    assert "round4" not in done.out
    assert "41 statistics equal, 0 different, 9 carried; 15 documents equal" in done.out


def test_one_part_alone_is_not_computed(recorded: Path, command: Command) -> None:
    for name in ("exact", "literal/compare.md", "literal/summary.json", "literal/figures.json"):
        path = recorded / "round4" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (recorded / "round4").glob("*.*"):
        path.unlink()
    write_manifest(recorded)
    done = command(reproduce.main)
    assert (done.status, done.err) == (0, "")
    start = f"not recomputed: {recorded / 'round4' / 'literal'}: "
    (line,) = (line for line in done.out.splitlines() if line.startswith(start))
    assert "0 failed" in line
    assert "nothing of a series is" in line
    assert "15 documents equal" in done.out


def test_a_tree_of_the_users_own(tmp_path: Path, command: Command) -> None:
    root = write_round4(tmp_path / "theirs" / "round4")
    assert command(compare.main, "--round", "4", "--root", root).status == 0
    done = command(reproduce.main, "--results", tmp_path / "theirs")
    assert (done.status, done.err) == (0, "")
    for name in ("round4/literal", "round4/exact", "round4 "):
        assert re.search(rf"^{name} +2 +yes$", done.out, re.M), name
    path = root / "reading.json"
    document = json.loads(path.read_text())
    document["statistics"]["rew/min 4000"]["effects"]["ajax"] += 1e-6
    path.write_text(json.dumps(document))
    done = command(reproduce.main, "--results", tmp_path / "theirs")
    assert done.status == 1
    assert f"{path}: statistics.rew/min 4000.effects.ajax: recorded" in done.out


@pytest.mark.usefixtures("undrawn")
def test_a_part_without_its_table_is_named(tmp_path: Path, command: Command) -> None:
    theirs = tmp_path / "theirs"
    root = write_round4(theirs / "round4")
    assert command(compare.main, "--round", "4", "--root", root).status == 0
    (root / "exact" / "summary.json").unlink()
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, done.err) == (0, "")
    lost, reading = f"{root / 'exact'}: holds no summary.json", root / "reading.json"
    assert f"not recomputed: {lost}" in done.out
    assert f"not recomputed: {reading}: cannot be read without round4/exact" in done.out
    (root / "literal" / "summary.json").unlink()
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "literal: holds no summary.json" in done.err


@pytest.mark.usefixtures("undrawn")
def test_parts_in_each_others_place_are_one_line(tmp_path: Path, command: Command) -> None:
    theirs = tmp_path / "theirs"
    root = write_round4(theirs / "round4")
    assert command(compare.main, "--round", "4", "--root", root).status == 0
    (root / "literal").rename(root / "other")
    (root / "exact").rename(root / "literal")
    (root / "other").rename(root / "exact")
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"{root / 'literal'}: holds round 4-exact, not round 4-literal" in done.err

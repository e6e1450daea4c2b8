"""The command ``reproduce``: the committed study is equal, and every edited number is found."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analysis import compare, reproduce
from analysis.difference import json_differences
from analysis.manifest import is_derived, write_manifest
from shared.provenance.roots import REPO
from tests.conftest import Command, Done, tree
from tests.synthetic import write_run
from tests.synthetic_published import write_published, write_results

RESULTS = REPO / "results"


def test_the_committed_study_as_a_command() -> None:
    before = tree(RESULTS)
    done = subprocess.run(
        [sys.executable, "-m", "analysis.reproduce"],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPO,
    )
    assert (done.returncode, done.stderr) == (0, "")
    words = done.stdout.splitlines()[-1]
    assert re.fullmatch(
        r"\d+ statistics equal, 0 different, \d+ carried; .* 0 files changed", words
    )
    # Protocol section 11, to the printed digit.
    for figure in (
        "204.1", "241.4-386.1", "265.2-307.0", "233.2", "1.795", "0.1216", "0.457 0.324",
        "2000 4000 6000 8000 12000", "H2 or noise",
        # The mean and the rule of LATE and of round 3's S1, each difference with its interval.
        "312.7", "265.4", "270.3-346.7", "47.2 [-16.8, 111.3]", "305.8", "-23.8 [-104.5, 57.0]",
        "H2: correlated seeds, D2",
        # Whose figures: which Ajax ran in the published rounds, and which one here.
        "commit 5cb0738", "ajax-rl 0.4.0",
    ):  # fmt: skip
        assert figure in done.stdout, figure
    assert tree(RESULTS) == before


# --- an own tree with an edited number ------------------------------------------------------


def edit(path: Path, change: Callable[[str], str], *, near: int) -> int:
    """Change one number at or after the line ``near``; the line's number."""
    lines = path.read_text().splitlines(keepends=True)
    for number in range(near, len(lines)):
        if (changed := change(lines[number])) != lines[number]:
            lines[number] = changed
            path.write_text("".join(lines))
            return number + 1
    raise AssertionError(f"{path} has no number to edit")


def first_decimal(line: str) -> str:
    """Another first digit after the point of the line's last number."""
    found = list(re.finditer(r"\d\.(\d)(?=\d*[\s,\]|}])", line))
    if not found:
        return line
    at = found[-1].start(1)
    return line[:at] + str((int(line[at]) + 1) % 10) + line[at + 1 :]


def last_digit(line: str) -> str:
    """Another last digit in the last number of several digits."""
    found = list(re.finditer(r"\d\.\d*\d(?![\d\"\w])", line))
    if not found:
        return line
    at = found[-1].end() - 1
    return line[:at] + str((int(line[at]) + 1) % 10) + line[at + 1 :]


#: Tables, numbers of figures, published figures. Of raw records: tests/test_reproduce_round4.py.
TEXTS = sorted(
    path.relative_to(RESULTS).as_posix()
    for path in RESULTS.rglob("*")
    if path.suffix in {".md", ".json", ".jsonl"}
    and path.name not in {"MANIFEST.jsonl", "README.md"}
    and (is_derived(path.name) or path.parent.name == "published")
)


@pytest.mark.usefixtures("undrawn")
def test_every_edited_number_is_found_with_its_line(own: Path, command: Command) -> None:
    edited = {
        own / name: edit(
            own / name, last_digit, near=len((own / name).read_text().splitlines()) // 3
        )
        for name in TEXTS
    }
    done = command(reproduce.main)
    assert (done.status, done.err) == (1, "")
    for path, line in edited.items():
        assert f"error: {path}:{line}: changed since the manifest was written" in done.out
    assert done.out.splitlines()[-1].endswith(f"; {len(TEXTS)} files changed")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", TEXTS)
def test_a_manifest_made_to_fit_does_not_hide_an_edit(
    name: str, own: Path, command: Command
) -> None:
    """Even then the tables and what they are made from disagree."""
    published_round = re.fullmatch(r"published/round\d.jsonl", name)
    # A round's file begins with the times of its processes, which no table shows.
    edit(own / name, first_decimal, near=12 if published_round else 2)
    write_manifest(own)
    done = command(reproduce.main)
    assert (done.status, done.err) == (1, "")
    assert "0 files changed" in done.out
    assert "NO" in done.out or "--- recorded/" in done.out


@pytest.mark.usefixtures("undrawn")
def test_a_difference_is_a_unified_diff_and_a_place(own: Path, command: Command) -> None:
    path = own / "round1" / "summary.json"
    summary = json.loads(path.read_text())
    summary["A"] += 0.25
    path.write_text(json.dumps(summary, indent=1) + "\n")
    done = command(reproduce.main)
    assert f"{path}: A: recorded {summary['A']!r}, recomputed {summary['A'] - 0.25!r}" in done.out
    assert f"--- recorded/{path}" in done.out
    assert f'-  "A": {summary["A"]}'.replace("  ", " ") in done.out


@pytest.mark.usefixtures("undrawn")
def test_missing_and_extra_files(own: Path, command: Command) -> None:
    (own / "round3" / "late.png").unlink()
    (own / "round1" / "compare.md").unlink()
    (own / "round1" / "notes.md").write_text("mine\n")
    done = command(reproduce.main)
    assert done.status == 1
    for name, fault in (
        ("round3/late.png", "is missing; restore it"),
        ("round1/compare.md", "is missing; restore it"),
        ("round1/notes.md", "is not in the manifest"),
    ):
        assert f"error: {own / name}: {fault}" in done.out
    assert "2 files changed, 1 not listed" in done.out
    (own / "MANIFEST.jsonl").unlink()
    done = command(reproduce.main)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "MANIFEST.jsonl: no such file; restore it with git restore results/MANIF" in done.err


@pytest.mark.usefixtures("undrawn")
def test_a_changed_picture_is_found(own: Path, command: Command) -> None:
    path = own / "round1" / "curves.png"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    done = command(reproduce.main)
    assert (done.status, f"error: {path}: changed" in done.out) == (1, True)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("published/round1.jsonl", '{"format": 2}\n', 2),
        ("published/statistics.jsonl", "not JSON\n", 2),
        ("published/windows.jsonl", '{"format": 1, "reference": [1]}\n', 2),
        ("published/round3.jsonl", '{"format": 1, "kind": "evaluation"}\n', 2),
        ("MANIFEST.jsonl", '{"format": 9}\n', 2),
        ("MANIFEST.jsonl", '{"format": 1}\n{"sha256": "x"}\n', 2),
        ("round1/summary.json", "{\n", 2),
    ],
)
def test_files_that_cannot_be_read(
    name: str, text: str, status: int, own: Path, command: Command
) -> None:
    (own / name).write_text(text)
    done = command(reproduce.main)
    assert done.status == status
    assert done.err.startswith(f"error: {own / name}:")
    assert done.err.count("\n") == 1


@pytest.mark.usefixtures("undrawn")
def test_update_makes_the_tree_equal_again(own: Path, command: Command) -> None:
    good = tree(own)
    edit(own / "round3" / "analysis3.md", last_digit, near=5)
    (own / "round1" / "figures.json").unlink()
    assert command(reproduce.main).status == 1
    assert command(reproduce.main, "--update").status == 0
    assert tree(own) == good
    assert command(reproduce.main).status == 0


def test_kept_tables_are_the_committed_ones(tmp_path: Path, command: Command) -> None:
    done = command(reproduce.main, "--keep", tmp_path)
    assert done.status == 0
    kept, committed = tree(tmp_path), tree(RESULTS)
    for name, content in kept.items():
        if name.endswith(".md"):
            assert content == committed[name], name
        if name.endswith(".json"):  # another processor's last digits may differ
            recorded, recomputed = json.loads(committed[name]), json.loads(content)
            assert not list(json_differences(recorded, recomputed)), name
    made = {name for name in committed if is_derived(name)}
    assert set(kept) == made


# --- a tree of the user's -------------------------------------------------------------------


@pytest.fixture(scope="session")
def tree_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(tmp_path_factory.mktemp("published") / "results")


@pytest.fixture
def theirs(tree_source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tree_source, tmp_path / "theirs"))


def table(done: Done) -> dict[str, list[str]]:
    """Directory -> the other cells of its line."""
    lines = done.out.splitlines()[2:]
    cells = [re.split(r"\s{2,}", line) for line in lines if re.match(r"\S+ {2,}\d", line)]
    return {first: rest for first, *rest in cells}


@pytest.mark.usefixtures("undrawn")
def test_a_published_tree_is_equal_number_by_number(theirs: Path, command: Command) -> None:
    before = tree(theirs)
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, done.err) == (0, "")
    assert table(done) == {
        "round1": ["1", "yes"],
        "round2/pairE": ["1", "yes"],
        "round2/pairR": ["1", "yes"],
        "round3": ["1", "yes"],
        "round2": ["0", "-"],
    }
    # The final arrays' names are not known: said, not guessed and not counted as equal.
    assert "round1: summary.json: ajax_s2_audit.0.audited: its raw files do not give it" in done.out
    assert tree(theirs) == before


@pytest.mark.usefixtures("undrawn")
def test_the_published_figures_in_the_published_shape_are_equal(
    tmp_path: Path, command: Command
) -> None:
    tree_of_it = write_published(tmp_path / "results")
    done = command(reproduce.main, "--results", tree_of_it)
    assert (done.status, done.err) == (0, "")
    compared = ("round1", "round2/pairE", "round2/pairR", "round3")
    assert [table(done)[name] for name in compared] == [["1", "yes"]] * len(compared)
    path = tree_of_it / "round1" / "ref_s2" / "evals.jsonl"
    path.write_text(path.read_text().replace('"mean": 33.4', '"mean": 33.5'))
    done = command(reproduce.main, "--results", tree_of_it)
    assert (done.status, "per_seed.ref.2.eval[0]: recorded 33.4" in done.out) == (1, True)


def places(value: object, where: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON document with its dotted place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, f"{where}[{index}]")
    elif isinstance(value, int | float):
        yield where, value


def set_place(document: object, where: str, value: object) -> None:
    *path, last = re.findall(r"[^.\[\]]+", where)
    for step in path:
        document = document[int(step) if isinstance(document, list) else step]  # type: ignore[index]
    document[int(last) if isinstance(document, list) else last] = value  # type: ignore[index]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", ["round1/summary.json", "round3/analysis3.json"])
def test_every_changed_number_of_a_summary_is_named(
    name: str, theirs: Path, command: Command
) -> None:
    path = theirs / name
    document = json.loads(path.read_text())
    changed = []
    for where, value in places(document):
        if where.startswith(("checks", "ajax_s2_audit.")) and not where.endswith("logged"):
            continue
        new = (
            not value
            if isinstance(value, bool)
            else value + (1 if isinstance(value, int) else 1e-6)
        )
        set_place(document, where, new)
        changed.append((where, new))
    path.write_text(json.dumps(document))
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, table(done)[path.parent.name][1]) == (1, "no")
    for where, new in changed:
        assert f"{path}: {where}: recorded {new!r}, recomputed" in done.out, where
    assert len(changed) > 25


def repack(path: Path, change: Callable[[str], str]) -> None:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    lines[-1] = change(lines[-1])
    path.write_bytes(gzip.compress("".join(lines).encode()))


@pytest.mark.usefixtures("undrawn")
def test_a_changed_raw_record_is_named(theirs: Path, command: Command) -> None:
    path = theirs / "round1" / "ref_s1" / "evals.jsonl"
    lines = path.read_text().splitlines()
    row = json.loads(lines[7])
    row["mean"] += 1
    lines[7] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n")
    repack(
        theirs / "round3" / "ref_s0" / "episodes.jsonl.gz",
        lambda line: line,  # nothing published depends on round 3's episodes
    )
    repack(
        theirs / "round2" / "ajax" / "s2" / "records.jsonl.gz",
        lambda line: re.sub(r'"s2_logged": (\d)', r'"s2_logged": 1\1', line),
    )
    done = command(reproduce.main, "--results", theirs)
    assert done.status == 1
    found = {name: cells[1] for name, cells in table(done).items()}
    assert found == {
        "round1": "no", "round2/pairE": "yes", "round2/pairR": "no", "round3": "yes", "round2": "-",
    }  # fmt: skip
    assert f"{theirs}/round1/summary.json: per_seed.ref.1.eval[7]: recorded" in done.out
    assert f"{theirs}/round1/summary.json: per_seed.ref.1.S1: recorded" in done.out
    assert f"{theirs}/round2/pairR/summary.json: per_seed.ajax.2.S2: recorded" in done.out


@pytest.mark.usefixtures("undrawn")
def test_a_raw_file_cut_at_the_end_is_a_difference(theirs: Path, command: Command) -> None:
    for seed in range(3):
        path = theirs / "round1" / f"ref_s{seed}" / "evals.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    done = command(reproduce.main, "--results", theirs)
    assert done.status == 1
    assert "per_seed.ref.0.eval[9]: recorded" in done.out


@pytest.mark.usefixtures("undrawn")
def test_what_raw_files_do_not_allow_is_named(theirs: Path, command: Command) -> None:
    for seed in range(3):
        (theirs / "round1" / f"ref_s{seed}" / "episodes.jsonl.gz").unlink()
    done = command(reproduce.main, "--results", theirs)
    assert done.status == 0
    assert (
        "not recomputed in round1: S2 of the reference (seed 0): needs ref_s0/episodes.jsonl"
        in done.out
    )
    assert "summary.json: per_seed.ref.0.S2: its raw files do not give it" in done.out


@pytest.mark.usefixtures("undrawn")
def test_a_damaged_raw_file_is_named(theirs: Path, command: Command) -> None:
    path = theirs / "round2" / "ref_s0" / "evals.jsonl"
    path.write_text(path.read_text()[:-30])
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {path}:10: the last line is cut short")


def without_raw_files(root: Path) -> None:
    for name in ("round1", "round2", "round3"):
        for path in (root / name).iterdir():
            if path.is_dir() and not path.name.startswith("pair"):
                shutil.rmtree(path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_raw_files, "round1: needs the raw records (ref_s<S>/, ajax/s<S>/) of round1/"),
        (lambda root: [shutil.rmtree(root / n) for n in ("round1", "round2", "round3")],
         "holds no summary.json or analysis3.json"),
        (lambda root: (root / "round1" / "summary.json").write_text("[]"), "a JSON object"),
        (lambda root: (root / "round1" / "summary.json").write_text('{\n"A" 1}'), "summary.json:2"),
        (shutil.rmtree, "no such directory"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("undrawn")
def test_trees_that_cannot_be_recomputed(
    spoil: Callable[[Path], object], message: str, theirs: Path, command: Command
) -> None:
    spoil(theirs)
    done = command(reproduce.main, "--results", theirs)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.usefixtures("undrawn")
def test_a_users_own_run_is_recomputed_from_its_tables(tmp_path: Path, command: Command) -> None:
    run = write_run(tmp_path / "mine" / "smoke")
    assert command(compare.main, "--smoke", "--root", run).status == 0
    done = command(reproduce.main, "--results", tmp_path / "mine")
    assert (done.status, table(done)) == (0, {"smoke": ["2", "yes"]})
    path = run / "figures.json"
    figures = json.loads(path.read_text())
    figures["curves"]["sides"]["ajax"]["1"][2][1] += 0.5
    path.write_text(json.dumps(figures))
    done = command(reproduce.main, "--results", tmp_path / "mine")
    assert done.status == 1
    assert f"{path}: curves.sides.ajax.1[2][1]: recorded" in done.out


def test_kept_files_repeat_byte_by_byte(theirs: Path, tmp_path: Path, command: Command) -> None:
    for name in ("round2", "round3"):
        shutil.rmtree(theirs / name)
    for keep in ("first", "second"):
        options = ("--results", theirs, "--keep", tmp_path / keep)
        assert command(reproduce.main, *options).status == 0
    first, second = tree(tmp_path / "first"), tree(tmp_path / "second")
    assert first == second
    assert {"round1/compare.md", "round1/curves.svg", "round1/figures.json"} <= set(first)


def test_update_is_for_the_own_results(theirs: Path, command: Command) -> None:
    done = command(reproduce.main, "--results", theirs, "--update")
    assert (done.status, "--update writes this project's own" in done.err) == (2, True)


def test_update_does_not_bless_an_edited_figure(own: Path, command: Command) -> None:
    path = own / "published" / "round1.jsonl"
    path.write_text(path.read_text().replace('"mean": 17.4', '"mean": 17.5', 1))
    before = tree(own)
    done = command(reproduce.main, "--update")
    assert done.status == 2
    assert "published/round1.jsonl:6: changed since the manifest was written" in done.out
    assert done.err.startswith("error: nothing was updated: 1 recorded files changed")
    assert tree(own) == before


def test_a_round_without_raw_files_does_not_stop_the_others(theirs: Path, command: Command) -> None:
    for path in (theirs / "round3").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    done = command(reproduce.main, "--results", theirs)
    assert done.status == 0
    assert "not recomputed: " in done.out
    assert "round3: needs the raw records (ref_s<S>/, ajax/s<S>/) of round3/" in done.out
    assert "not in this tree: round4/literal, round4/exact, round5\n" in done.out
    assert "round1 " in done.out


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("place", ["round1", "round2/pairE", "round3"])
def test_a_round_without_its_table_is_named(place: str, theirs: Path, command: Command) -> None:
    name = "analysis3.json" if place == "round3" else "summary.json"
    (theirs / place / name).unlink()
    done = command(reproduce.main, "--results", theirs)
    assert done.status == 0
    assert f"not recomputed: {theirs / place}: holds no {name}" in done.out
    assert place not in table(done)

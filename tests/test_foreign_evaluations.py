"""Evaluations from anywhere: any seeds, any checkpoints, nothing recorded beside them."""

import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from analysis import compare
from analysis.windows import common_width, seed_windows
from shared.protocol import SIDES
from tests.conftest import Command, tree
from tests.made_sides import record, side_of_means
from tests.planted import edit_json
from tests.synthetic import OLD_AJAX_SHA, ROUND1, ROUND2, SMOKE, Plan, write_run
from tests.test_compare import checkout

pytestmark = pytest.mark.usefixtures("undrawn")

S1_ROWS = (16_000, 18_000, 20_000)
GRID = range(2_000, 20_001, 2_000)
#: S1 of the published reference of round 1, seed by seed, and of its Ajax.
REFERENCE, AJAX = (386.1, 246.4, 241.4), (180.6, 143.5, 288.3)


def level(seed: int, rows: int) -> float:
    return 100.0 + 7 * seed + rows / 200


def write_side(
    root: Path, side: str, seeds: Mapping[int, Any], updates: int = 0, **more: Any
) -> Path:
    """``evals.jsonl`` of each seed at the rows that ``seeds`` has for it, and nothing else."""
    for seed, grid in seeds.items():
        directory = root / (f"ref_s{seed}" if side == "reference" else f"ajax/s{seed}")
        directory.mkdir(parents=True)
        lines = [
            {"seed": seed, "rows": at, "updates": updates, "returns": None, "mean": level(seed, at),
             "lengths": None, **more}
            for at in grid
        ]  # fmt: skip
        (directory / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    return root


def against_published(command: Command, root: Path, *options: object) -> Any:
    """Ajax in ``root`` against the published reference; what was printed and ``summary.json``."""
    sides = ("--ref-root", "published", "--ajax-root", root)
    number = () if "--round" in options else ("--round", 1)
    done = command(compare.main, *number, *sides, "--out", root, *options)
    assert done.err == "", done.err
    name = "analysis3.json" if options[1:2] == (3,) else "summary.json"
    return done, json.loads((root / name).read_text())


def s1(seed: int) -> float:
    return fmean(level(seed, rows) for rows in S1_ROWS)


# --- any seeds ------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [(0, 1, 2, 3, 4), (10, 11, 12), (7,), (0, 1), range(12)])
def test_all_seeds_are_used(seeds: tuple[int, ...], tmp_path: Path, command: Command) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys(seeds, GRID))
    done, found = against_published(command, root)
    assert done.status == 1  # they are not the round's
    assert found["A"] == pytest.approx(fmean(map(s1, seeds)))
    assert {key: each["S1"] for key, each in found["per_seed"]["ajax"].items()} == {
        str(seed): pytest.approx(s1(seed)) for seed in seeds
    }
    assert [each["S1"] for each in found["per_seed"]["ref"].values()] == pytest.approx(
        REFERENCE, abs=0.05
    )
    assert (found["seeds_ref"], found["seeds_ajax"]) == ([0, 1, 2], list(seeds))
    assert found["seeds"] == sorted({0, 1, 2, *seeds})
    listed = " ".join(map(str, seeds))
    said = f"seeds: Reference 0 1 2, Ajax {listed}; all are used, and no statistic here is paired"
    assert f"  {said}\n" in done.out
    assert f"S{said[1:]}." in (root / "compare.md").read_text()


def test_a_reference_of_five_seeds_against_the_published_ajax(
    tmp_path: Path, command: Command
) -> None:
    root = write_side(tmp_path / "run", "reference", dict.fromkeys(range(3, 8), GRID))
    sides = ("--ref-root", root, "--ajax-root", "published")
    done = command(compare.main, "--round", 1, *sides, "--out", root)
    found = json.loads((root / "summary.json").read_text())
    assert (found["ref_S1_min"], found["ref_S1_max"]) == (s1(3), s1(7))
    assert found["A"] == pytest.approx(fmean(AJAX), abs=0.05)
    assert "Round 1: Reference (arm not recorded) and Ajax (stock)" in done.out


def test_named_seeds_are_those_that_a_side_has(tmp_path: Path, command: Command) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys((1, 10, 11, 12), GRID))
    done, found = against_published(command, root, "--seeds", 0, 1, 10)
    assert (found["seeds_ref"], found["seeds_ajax"]) == ([0, 1], [1, 10])
    assert "seeds: Reference 0 1, Ajax 1 10; all are used" in done.out
    before = tree(root)
    for wrong in ((0, 99), (0, 2)):  # nowhere, and on one side alone
        sides = ("--ref-root", "published", "--ajax-root", root)
        refused = command(compare.main, "--round", 1, *sides, "--seeds", *wrong)
        assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert tree(root) == before


def test_a_seed_without_an_evaluation_is_named(tmp_path: Path, command: Command) -> None:
    root = write_side(tmp_path / "ajax", "ajax", {0: GRID, 1: GRID, 2: ()})
    done, found = against_published(command, root)
    assert found["A"] == pytest.approx(fmean((s1(0), s1(1))))
    assert "Ajax seed 2: needs an evaluation in ajax/s2/evals.jsonl" in done.out


# --- any checkpoints ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "lacking", "common"),
    [
        (range(10_000, 20_001, 10_000), "16000 18000", "2 common checkpoints: 10000 20000"),
        (range(3_000, 21_001, 3_000), "16000 20000", "3 common checkpoints: 6000 12000 18000"),
        (range(2_000, 14_001, 2_000), "16000 18000 20000", "7 common checkpoints"),
        (range(400, 20_001, 400), "", "10 common checkpoints: 2000 4000 6000 (and 7 more)"),
        (range(8_000, 20_001, 2_000), "", "7 common checkpoints: 8000 10000 12000 (and 4 more)"),
        (range(2_000, 30_001, 2_000), "", "10 common checkpoints"),
        (tuple(rows for rows in GRID if rows != 6_000), "", "9 common checkpoints"),
        (tuple(rows for rows in GRID if rows != 18_000), "18000", "9 common checkpoints"),
        ((1_234,), "16000 18000 20000", "compared: none"),
    ],
)
def test_common_checkpoints_are_compared(
    grid: tuple[int, ...], lacking: str, common: str, tmp_path: Path, command: Command
) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys(range(3), grid))
    done, found = against_published(command, root)
    assert (done.status, "FAIL ajax s0 evaluations: " in done.out) == (1, True)
    if lacking:
        assert found["LEARNS"] is None
        assert f"S1: needs ajax evaluations at {lacking}" in done.out
    else:
        assert found["A"] == pytest.approx(fmean(map(s1, range(3))))
    assert common in done.out
    shared = sorted({*grid} & {*GRID})
    tests = found["companions"].get("common", {})
    assert list(map(int, tests)) == shared
    reference = found["per_seed"]["ref"].values()
    for at in shared:
        column = found["rows"].index(at)
        published = fmean(each["eval"][column] for each in reference)
        own = fmean(level(seed, at) for seed in range(3))
        assert tests[str(at)]["difference"] == pytest.approx(published - own)
    # Every evaluation stands at its row.
    for seed, each in found["per_seed"]["ajax"].items():
        assert each["eval"] == [
            level(int(seed), rows) if rows in grid else None for rows in found["rows"]
        ]


def test_one_seeds_gap_is_its_own(tmp_path: Path, command: Command) -> None:
    grid = {0: GRID, 1: tuple(rows for rows in GRID if rows not in (4_000, 16_000)), 2: GRID}
    root = write_side(tmp_path / "ajax", "ajax", grid)
    done, _ = against_published(command, root)
    assert "FAIL ajax s1 evaluations: 8 of 10 checkpoints" in done.out
    assert "missing: 4000 16000" in done.out
    assert "S1: needs ajax evaluations of seeds 1 at 16000" in done.out
    assert "ref s0 4000 16000, " in done.out


def test_late_and_its_rate_need_the_rounds_checkpoints(tmp_path: Path, command: Command) -> None:
    coarse = dict.fromkeys(range(5), range(2_000, 24_001, 2_000))
    root = write_side(tmp_path / "coarse", "ajax", coarse)
    done, found = against_published(command, root, "--round", 3)
    assert "LATE: needs ajax evaluations at 12400 12800 13200 (and 21 more)" in done.out
    assert (found["late_ajax"], found["p_late"], found["reading"]) == ([], None, None)
    assert found["concordance"]["ajax_rate_16_24k"] is None
    assert found["concordance"]["ajax_24000"] is not None
    assert found["s1_ajax"] == [pytest.approx(s1(seed)) for seed in range(5)]
    fine = dict.fromkeys(range(5), range(200, 24_001, 200))
    root = write_side(tmp_path / "fine", "ajax", fine)
    _, found = against_published(command, root, "--round", 3)
    assert found["late_ajax"] == [
        pytest.approx(fmean(level(seed, rows) for rows in range(12_000, 24_001, 400)))
        for seed in range(5)
    ]


def test_windows_are_of_rows_that_both_sides_records_divide(
    tmp_path: Path, command: Command
) -> None:
    coarse = write_run(tmp_path / "coarse", replace(ROUND1, every=10_000, sides=("ajax",)))
    fine = write_run(tmp_path / "fine", replace(ROUND1, every=400, sides=("reference",)))
    sides = ("--ref-root", fine, "--ajax-root", coarse, "--out", tmp_path / "out")
    done = command(compare.main, "--round", 1, *sides)
    assert done.err == ""
    panels = json.loads((tmp_path / "out/figures.json").read_text())["entropy"]["panels"]
    (panel,) = panels.values()
    assert [window["rows"] for window in panel["windows"]] == [10_000, 20_000]
    # The published ones are of 2000 rows.
    sides = ("--ref-root", "published", "--ajax-root", coarse, "--out", tmp_path / "other")
    done = command(compare.main, "--round", 1, *sides)
    assert "training-metric windows, entropy overlap: needs records at the same rows" in done.out
    assert "entropy" not in json.loads((tmp_path / "other/figures.json").read_text())


def test_a_record_is_not_taken_for_a_window_that_it_is_not() -> None:
    assert seed_windows([record(10_000, {"a": 1.0})], 2_000) == {}
    late = [record(rows, {"a": float(rows)}) for rows in (8_000, 10_000, 12_000, 16_000)]
    assert list(seed_windows(late, 2_000)) == [10_000, 12_000]
    assert common_width([], 400) == 2_000
    sides = [
        side_of_means(side, [[1.0] * 3], grid, entropy=[[0.5] * 3])
        for side, grid in zip(SIDES, ((3_000, 6_000, 9_000), (2_000, 4_000, 6_000)), strict=True)
    ]
    assert common_width(sides, 400) == 6_000


# --- nothing beside them --------------------------------------------------------------------


@pytest.mark.parametrize("counted", [(), ("evals",), ("records",), ("evals", "records")])
def test_rows_that_count_no_updates_are_read(
    counted: tuple[str, ...], tmp_path: Path, command: Command
) -> None:
    root = write_run(tmp_path / "ajax", replace(ROUND1, sides=("ajax",), old=True))
    for path in root.glob("ajax/s*/*.jsonl*"):
        packed = path.suffix == ".gz"
        text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        if path.name.split(".")[0] not in counted:
            rows = [{key: row[key] for key in row if key != "updates"} for row in rows]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    done, found = against_published(command, root, "--ajax-commit", OLD_AJAX_SHA)
    assert (done.status, done.failed_checks, found["A"] is not None) == (0, [], True)
    assert ("NOT CHECKED ajax s0 updates: none are counted" in found["checks"]) == (not counted)


def test_rows_of_the_least_keys_are_read(tmp_path: Path, command: Command) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys(range(3), GRID))
    for path in root.glob("ajax/s*/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        least = [{key: row[key] for key in ("seed", "rows", "mean")} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in least))
    done, found = against_published(command, root)
    assert (done.status, done.failed_checks) == (0, [])
    assert found["A"] == pytest.approx(fmean(map(s1, range(3))))


def test_an_arm_that_is_not_recorded_is_said_to_be(tmp_path: Path, command: Command) -> None:
    root = tmp_path / "run"
    for side in SIDES:
        write_side(root, side, dict.fromkeys(range(3), GRID))
    for path in root.glob("ref_s*/evals.jsonl"):  # one run on both sides would be a fault
        path.write_text(path.read_text().replace(".0,", ".5,"))
    done = command(compare.main, "--round", 1, "--root", root)
    assert (done.status, done.failed_checks) == (0, [])
    whole = b"".join(tree(root).values()).decode()
    assert "as they are" not in whole
    assert '"stock"' not in whole
    found = json.loads((root / "summary.json").read_text())
    assert found["arms"] == {"ref": None, "ajax": None}
    labels = json.loads((root / "figures.json").read_text())["curves"]["labels"]
    assert labels == {"reference": "Reference, arm not recorded", "ajax": "Ajax, arm not recorded"}
    for part in ("4-literal", "4-exact"):
        done = command(compare.main, "--round", part, "--root", root, "--out", tmp_path / part)
        assert "on both sides" not in done.out
    # What cannot be checked is counted, and none of it has passed.
    unchecked = {line.split(":")[0] for line in found["checks"] if line.startswith("NOT CHECKED")}
    names = ["ajax files", "ajax exit code", "ajax configuration", "ajax arguments",
             "ajax identity", "ajax final state", "ref sizes", "ajax sizes",
             "ref arm", "ajax arm"]  # fmt: skip
    for seed in range(3):
        own = "files|exit code|configuration|arguments|identity|episodes|finished|evaluation sizes"
        names += [f"ref s{seed} {each}" for each in own.split("|")]
        names += [f"{side} s{seed} {each}" for side in ("ref", "ajax") for each in ("records",
                  "updates")]  # fmt: skip
        names.append(f"ajax s{seed} S2 audit")
    assert unchecked == {f"NOT CHECKED {name}" for name in names}


@pytest.mark.parametrize("name", ["ref_s0/run_args.json", "ajax/ajax_final.npz", "ajax.DONE"])
def test_a_run_of_this_project_must_have_its_files(
    name: str, smoke: Path, command: Command
) -> None:
    (smoke / name).unlink()
    assert command(compare.main, "--root", smoke).failed_checks != []
    (smoke / "launch_info.txt").unlink()
    assert command(compare.main, "--smoke", "--root", smoke).failed_checks == []


# --- data that cannot be right --------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"mean": 807.0},
        {"mean": 0.0},
        {"mean": -3.0},
        {"mean": 100.0, "len_mean": 20.0},
        {"mean": 100.0, "returns": [90.0] * 10},
        {"mean": 90.0, "returns": [90.0] * 10, "lengths": [9] * 10},
        {"mean": 600.0, "returns": [600.0] * 10},
        {"updates": -1},
    ],
)
def test_no_rule_is_applied_to_what_cannot_be(
    more: dict[str, Any], tmp_path: Path, command: Command
) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys(range(3), GRID), **more)
    done, found = against_published(command, root, "--fail-on-difference")
    assert done.status == 1
    assert done.out.startswith("No verdict, the data cannot be right: Round 1: ")
    assert "Ajax lies" not in done.out
    assert (found["LEARNS"], found["WITHIN_RANGE"], found["A"]) == (None, None, None)
    assert found["impossible"]


def test_round_3_and_the_pairs_have_no_reading_of_what_cannot_be(
    tmp_path: Path, command: Command
) -> None:
    root = write_side(tmp_path / "run", "ajax", dict.fromkeys(range(5), range(400, 24_001, 400)),
                      mean=501.0)  # fmt: skip
    done, found = against_published(command, root, "--round", 3)
    assert [found[key] for key in ("reading", "reading_as_first_written", "p_late")] == [None] * 3
    assert {found[f"{each}_LEARNS"] for each in ("late", "s1")} == {None}
    assert "reading: H" not in done.out

    two = write_run(tmp_path / "round2", ROUND2)
    path = two / "ajax" / "s1" / "evals.jsonl"
    path.write_text(path.read_text().replace('"mean": ', '"mean": 1', 1))
    done = command(compare.main, "--round", 2, "--root", two, "--against", "published")
    assert (done.status, done.err) == (1, "")
    assert "Reading: none, No verdict, the data cannot be right: Pair R: " in done.out
    assert json.loads((two / "reading.json").read_text())["reading"] is None


@pytest.mark.filterwarnings("error")
def test_seeds_that_are_all_at_the_cap_are_compared_without_a_warning(
    tmp_path: Path, command: Command
) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys(range(3), GRID), mean=500.0)
    _, found = against_published(command, root)
    assert (found["A"], found["LEARNS"]) == (500.0, True)


# --- which Ajax is expected -----------------------------------------------------------------


def test_the_checkout_that_ajax_src_names_is_expected(
    smoke: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = checkout(tmp_path / "ajax")
    monkeypatch.setenv("AJAX_SRC", str(tmp_path / "ajax" / "src"))
    done = command(compare.main, "--root", smoke)
    assert done.failed_checks == ["ajax identity"]  # the release ran
    assert "; $AJAX_SRC names the expected one" in done.out
    for key, value in {"ajax_commit": commit, "ajax_dirty": False}.items():
        edit_json("ajax/config.json", "run", key, value=value)(smoke)
    done = command(compare.main, "--root", smoke)
    assert done.failed_checks == []
    assert f"Ajax that ran: commit {commit} (recorded by the process), clean; $AJAX_SRC" in done.out
    # An option says more than the environment.
    done = command(compare.main, "--root", smoke, "--ajax-version", "0.4.0")
    assert done.failed_checks == ["ajax identity"]
    monkeypatch.setenv("AJAX_SRC", str(tmp_path / "nowhere"))
    assert "$AJAX_SRC" in refused(command, "--root", smoke)


# --- whose tables are replaced --------------------------------------------------------------


def refused(command: Command, *options: object) -> str:
    done = command(compare.main, *options)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done
    return done.err


def test_tables_of_another_comparison_are_not_replaced(tmp_path: Path, command: Command) -> None:
    first, second = (write_run(tmp_path / name / "run", SMOKE) for name in ("one", "two"))
    for path in (second / "ajax").glob("s*/*.jsonl"):
        path.write_text(path.read_text().replace('mean": 1', 'mean": 2'))
    out = ("--out", tmp_path / "out")
    command(compare.main, "--root", first, *out)
    before = tree(tmp_path)
    assert "give --out" in refused(command, "--root", second, *out)
    assert "give --out" in refused(command, "--root", "published", "--round", 1, *out)
    roots = ("--ref-root", second, "--ajax-root", first)
    assert "give --out" in refused(command, "--round", 1, *roots, *out)
    # The first one's own may be replaced, also once the run has gone on.
    assert command(compare.main, "--root", first, *out).err == ""
    assert tree(tmp_path) == before


def test_a_run_replaces_its_own_tables_after_it_was_trained_again(
    smoke: Path, command: Command
) -> None:
    assert command(compare.main, "--root", smoke).status == 0
    path = smoke / "ref_s0" / "evals.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    assert command(compare.main, "--root", smoke).err == ""


def test_published_tables_in_a_directory_are_not_replaced(smoke: Path, command: Command) -> None:
    (smoke / "summary.json").write_text('{"A": 204.1}')
    before = tree(smoke)
    assert "summary.json" in refused(command, "--root", smoke)
    assert tree(smoke) == before


@pytest.mark.parametrize("where", ["round4/literal", "round1", "new"])
def test_a_studys_results_are_not_replaced(
    where: str, smoke: Path, tmp_path: Path, command: Command
) -> None:
    study = tmp_path / "clone" / "results"
    study.mkdir(parents=True)
    (study / "MANIFEST.jsonl").write_text("")
    out = study / where
    if where == "round1":
        command(compare.main, "--root", "published", "--round", 1, "--out", tmp_path / "made")
        (tmp_path / "made").rename(out)
    before = tree(study)
    assert "results of a study" in refused(command, "--root", smoke, "--out", out)
    if where == "round1":  # its own are the same again
        done = command(compare.main, "--root", "published", "--round", 1, "--out", out)
        assert (done.status, done.err) == (0, "")
    assert tree(study) == before


def test_a_reading_of_others_is_not_replaced(tmp_path: Path, command: Command) -> None:
    two = write_run(tmp_path / "round2", ROUND2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "reading.json").write_text('{"reading": "another"}')
    options = ("--round", 2, "--root", two, "--against", "published", "--out", tmp_path / "out")
    before = tree(tmp_path)
    assert "reading.json" in refused(command, *options)
    assert tree(tmp_path) == before
    (tmp_path / "out" / "reading.json").unlink()
    assert command(compare.main, *options).status == 0
    assert command(compare.main, *options).status == 0


def test_an_unfinished_run_may_be_compared_again(tmp_path: Path, command: Command) -> None:
    half = write_run(tmp_path / "half", Plan(3, (0, 1), 4_000, 400))
    whole = write_run(tmp_path / "whole", Plan(3, (0, 1), 4_000, 400))
    for path in half.rglob("*.jsonl"):
        if path.name != "episodes.jsonl":
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    out = ("--round", 3, "--out", tmp_path / "out")
    for root in (half, whole):
        assert command(compare.main, "--root", root, *out).err == ""


# --- what a tree holds besides --------------------------------------------------------------


def test_one_run_under_two_names_gives_no_verdict(tmp_path: Path, command: Command) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys((0, 1, 2), GRID))
    text = (root / "ajax/s0/evals.jsonl").read_text()
    (root / "ajax/s2/evals.jsonl").write_text(text.replace('"seed": 0', '"seed": 2'))
    done, found = against_published(command, root)
    assert (found["LEARNS"], done.status) == (None, 1)
    assert done.failed_checks == ["ajax s2 evaluations"]


def test_directories_that_bear_no_seeds_number_are_named(tmp_path: Path, command: Command) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys((0, 1, 2), GRID))
    for name in ("s03", "S4", "s-1"):
        (root / "ajax" / name).mkdir()
    os.mkfifo(root / "ajax/s5")
    done, _ = against_published(command, root)
    for name in ("s03", "S4", "s-1", "s5"):
        assert f"what ajax/{name} holds" in done.out


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path)])
def test_evaluations_that_are_no_file_are_refused(
    make: Callable[[Path], None], tmp_path: Path, command: Command
) -> None:
    root = write_side(tmp_path / "ajax", "ajax", dict.fromkeys((0, 1, 2), GRID))
    (root / "ajax/s1/evals.jsonl").unlink()
    make(root / "ajax/s1/evals.jsonl")
    sides = ("--ref-root", "published", "--ajax-root", root)
    done = command(compare.main, "--round", 1, *sides)
    assert done.status == 2
    assert "ajax/s1/evals.jsonl" in done.err


def test_tables_of_more_seeds_are_not_replaced(tmp_path: Path, command: Command) -> None:
    out = tmp_path / "out"
    for seeds, status in ((range(3), 0), (range(2), 2), (range(4), 1)):
        root = write_side(tmp_path / str(len(seeds)), "ajax", dict.fromkeys(seeds, GRID))
        sides = ("--ref-root", "published", "--ajax-root", root, "--out", out)
        assert command(compare.main, "--round", 1, *sides).status == status

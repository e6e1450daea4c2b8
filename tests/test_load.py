"""Damaged run directories: one line with file and line, exit status 2, nothing overwritten."""

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis import compare
from analysis.load import load_side, source_of
from shared.protocol import SIDES
from shared.provenance.roots import REPO
from tests.conftest import Command, tree
from tests.synthetic import SMOKE, Plan, write_run

Damage = Callable[[Path], object]


def relined(name: str, change: Callable[[list[str]], object]) -> Damage:
    """Change the lines (with their ends) of a file in place."""

    def damage(root: Path) -> None:
        lines = (root / name).read_text().splitlines(keepends=True)
        change(lines)
        (root / name).write_text("".join(lines))

    return damage


def field(name: str, line: int, key: str, value: object) -> Damage:
    """Set one field of one line (counted from 1); ``...`` removes it."""

    def change(lines: list[str]) -> None:
        row = json.loads(lines[line - 1])
        row[key] = value
        if value is ...:
            del row[key]
        lines[line - 1] = json.dumps(row) + "\n"

    return relined(name, change)


def written(name: str, content: str | bytes) -> Damage:
    def damage(root: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (root / name).write_bytes(data)

    return damage


def swap(lines: list[str]) -> None:
    lines[1], lines[2] = lines[2], lines[1]


def cut_short(lines: list[str]) -> None:
    lines[-1] = lines[-1][:-20]


def final_without_a_seed(root: Path) -> None:
    path = root / "ajax" / "ajax_final.npz"
    np.savez(path, **dict(np.load(path)) | {"rows": np.array([1600])})  # type: ignore[arg-type]


EVALS, RECORDS, EPISODES = (f"ref_s1/{name}.jsonl" for name in ("evals", "records", "episodes"))
AJAX_EVALS, AJAX_RECORDS = "ajax/s0/evals.jsonl", "ajax/s0/records.jsonl"

#: Damage -> (the plant, where the message points, what it says).
DAMAGED: dict[str, tuple[Damage, str, str]] = {
    **{
        f"truncated {name}": (relined(name, cut_short), f"{name}:{line}", "cut short")
        for name, line in ((EVALS, 4), (RECORDS, 4), (AJAX_EVALS, 4), (AJAX_RECORDS, 4))
    },
    "truncated episodes": (relined(EPISODES, cut_short), f"{EPISODES}:", "cut short"),
    "absurd evaluation": (
        field(AJAX_EVALS, 2, "mean", 1e308),
        f"{AJAX_EVALS}:2",
        "larger than any",
    ),
    "absurd score": (field(EPISODES, 2, "score", -1e300), f"{EPISODES}:2", "larger than any"),
    "absurd row": (field(EPISODES, 2, "row_last", 10**30), f"{EPISODES}:2", "larger than any"),
    "absurd metric": (field(RECORDS, 4, "train", {"a": 1e300}), f"{RECORDS}:4", "larger than any"),
    "NaN return": (field(EVALS, 2, "returns", [1.0, float("nan")]), f"{EVALS}:2", "'returns' is ["),
    "not JSON": (
        relined(EVALS, lambda lines: lines.__setitem__(1, "step 800: 31.5\n")),
        f"{EVALS}:2",
        "not valid JSON",
    ),
    "a key twice": (
        relined(EVALS, lambda lines: lines.__setitem__(1, '{"mean": 9.0, ' + lines[1][1:])),
        f"{EVALS}:2",
        "the key 'mean' is there twice",
    ),
    "out of order after an empty line": (
        relined(RECORDS, lambda lines: (swap(lines), lines.insert(0, "\n"))),
        f"{RECORDS}:4",
        "800 follows 1200",
    ),
    "a list": (
        relined(EVALS, lambda lines: lines.__setitem__(0, "[1, 2]\n")),
        f"{EVALS}:1",
        "expected an object",
    ),
    "no text": (written(EVALS, b"\xff\xfe\x00"), EVALS, "not UTF-8"),
    "no lines": (written(AJAX_EVALS, ""), AJAX_EVALS, "Ajax seed 0 has no evaluation"),
    "duplicated checkpoint": (
        relined(RECORDS, lambda lines: lines.insert(1, lines[1])),
        f"{RECORDS}:3",
        "checkpoint 800 is there twice",
    ),
    "rows out of order": (relined(AJAX_EVALS, swap), f"{AJAX_EVALS}:3", "800 follows 1200"),
    "rows going back": (
        relined(EVALS, lambda lines: lines.append(lines[0])),
        f"{EVALS}:5",
        "checkpoint 400 follows 1600",
    ),
    "another seed's line": (field(EVALS, 3, "seed", 0), f"{EVALS}:3", "its seed is 0"),
    "NaN evaluation": (field(EVALS, 2, "mean", float("nan")), f"{EVALS}:2", "'mean' is nan"),
    "NaN length": (field(EVALS, 2, "len_mean", float("nan")), f"{EVALS}:2", "'len_mean' is nan"),
    "infinite evaluation": (
        field(AJAX_EVALS, 4, "mean", float("inf")),
        f"{AJAX_EVALS}:4",
        "'mean' is inf",
    ),
    "NaN in records": (
        field(RECORDS, 1, "eval_mean", float("nan")),
        f"{RECORDS}:1",
        "'eval_mean' is nan",
    ),
    "NaN metric": (
        field(AJAX_RECORDS, 4, "train", {"a": float("nan")}),
        f"{AJAX_RECORDS}:4",
        "'train' is {'a': nan}",
    ),
    "infinite metric": (
        field(RECORDS, 4, "train", {"a": float("-inf")}),
        f"{RECORDS}:4",
        "'train' is {'a': -inf}",
    ),
    "infinite S2": (field(AJAX_RECORDS, 4, "s2_logged", 1e999), f"{AJAX_RECORDS}:4", "s2_logged"),
    "NaN score": (field(EPISODES, 7, "score", float("nan")), f"{EPISODES}:7", "'score' is nan"),
    "null evaluation": (field(EVALS, 2, "mean", None), f"{EVALS}:2", "expected a number"),
    "text for a number": (field(EVALS, 2, "rows", "800"), f"{EVALS}:2", "expected an integer"),
    "a lost field": (field(EPISODES, 1, "worker", ...), f"{EPISODES}:1", "'worker' is missing"),
    "unknown format": (field(EVALS, 3, "format", 99), f"{EVALS}:3", "format 99 is unknown"),
    "format of another kind": (
        field(AJAX_RECORDS, 1, "format", "new"),
        f"{AJAX_RECORDS}:1",
        "format 'new' is unknown",
    ),
    "unknown format of the launch": (
        relined("launch_info.txt", lambda lines: lines.__setitem__(0, "format: 7\n")),
        "launch_info.txt:1",
        "format 7 is unknown",
    ),
    "missing seed": (
        lambda root: (root / EVALS).unlink(),
        EVALS,
        "Reference seed 1 has no evaluation",
    ),
    "missing Ajax seed": (
        lambda root: (root / "ajax/s1/evals.jsonl").unlink(),
        "ajax/s1/evals.jsonl",
        "Ajax seed 1 has no evaluation",
    ),
    "exit code": (written("ref_s0.DONE", "killed\n"), "ref_s0.DONE:1", "'killed' is not an exit"),
    "configuration not YAML": (
        relined("ref_s0/config.yaml", lambda lines: lines.insert(2, "a: [1, 2\n")),
        "ref_s0/config.yaml:",
        "not valid YAML",
    ),
    "configuration not JSON": (
        relined("ajax/config.json", lambda lines: lines.insert(3, "oops\n")),
        "ajax/config.json:4",
        "not valid JSON",
    ),
    "arguments not an object": (
        written("ref_s0/run_args.json", "[]\n"),
        "ref_s0/run_args.json",
        "expected a JSON object",
    ),
    "configuration without objects": (
        written("ajax/config.json", '{"run": 3, "dreamer_config": [1]}\n'),
        "ajax/config.json",
        "expected",
    ),
    "sizes that are none": (
        written("ref_s0/run_args.json", '{"rows": 1600, "eval_every": 0}\n'),
        "ref_s0/run_args.json",
        "eval_every is 0, expected a positive whole number",
    ),
    "final state no archive": (
        written("ajax/ajax_final.npz", b"PK\x03\x04 nothing"),
        "ajax/ajax_final.npz",
        "no readable .npz",
    ),
    "final state of other seeds": (
        final_without_a_seed,
        "ajax/ajax_final.npz",
        "rows",
    ),
}


def copied(source: str, target: str) -> Damage:
    return lambda root: shutil.copyfile(root / source, root / target)


def in_every_line(name: str, **says: object) -> Damage:
    def change(lines: list[str]) -> None:
        lines[:] = [json.dumps({**json.loads(line), **says}) + "\n" for line in lines]

    return relined(name, change)


#: Rows of another side, seed, arm or round -> what happens, the place named, what gives it away.
FOREIGN: dict[str, tuple[Damage, str, str]] = {
    "the reference's evaluations": (
        copied("ref_s0/evals.jsonl", AJAX_EVALS),
        AJAX_EVALS,
        "returns",
    ),
    "the reference's records": (
        copied("ref_s0/records.jsonl", AJAX_RECORDS),
        AJAX_RECORDS,
        "'ref'",
    ),
    "Ajax's records": (copied("ajax/s1/records.jsonl", RECORDS), RECORDS, "its side is 'ajax'"),
    "episodes of another seed": (copied("ref_s0/episodes.jsonl", EPISODES), EPISODES, "seed is 0"),
    "records of another seed": (copied("ref_s0/records.jsonl", RECORDS), RECORDS, "its seed is 0"),
    "another arm": (in_every_line(EVALS, arm="exact"), EVALS, "its arm is 'exact'"),
    "another arm of Ajax": (in_every_line(AJAX_RECORDS, arm="literal"), AJAX_RECORDS, "'literal'"),
    "another round": (in_every_line(RECORDS, round="3"), RECORDS, "its round is '3'"),
    "episodes of another round": (in_every_line(EPISODES, round="4-exact"), EPISODES, "4-exact"),
    "another side that says so": (in_every_line(EVALS, side="ajax"), EVALS, "its side is 'ajax'"),
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_another_place_are_refused(
    what: str, packed: bool, smoke: Path, command: Command
) -> None:
    damage, name, message = FOREIGN[what]
    damage(smoke)
    if packed:
        path = smoke / name
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    done = command(compare.main, "--smoke", "--root", smoke)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"error: {smoke / name}{'.gz' if packed else ''}:1: not a row of ")
    assert message in done.err


def test_rows_that_say_where_they_belong_are_read(smoke: Path) -> None:
    before = [load_side(smoke, side, (0, 1)).means().tolist() for side in SIDES]
    for path in [*smoke.glob("ref_s*/*.jsonl"), *smoke.glob("ajax/s*/*.jsonl")]:
        side = "ref" if path.parent.name.startswith("ref_") else "ajax"
        says = {"side": side, "arm": "stock", "round": "1"}
        in_every_line(path.relative_to(smoke).as_posix(), **says)(smoke)
    after = [load_side(smoke, side, (0, 1)).means().tolist() for side in SIDES]
    assert after == before


def test_the_arm_and_round_of_the_last_start_count_where_a_process_recorded_none(
    smoke: Path, command: Command
) -> None:
    arguments = json.loads((smoke / "ref_s1/run_args.json").read_text())
    del arguments["arm"]
    (smoke / "ref_s1/run_args.json").write_text(json.dumps(arguments))
    in_every_line(EVALS, arm="exact")(smoke)
    done = command(compare.main, "--smoke", "--root", smoke)
    assert (done.status, "its arm is 'exact'" in done.err) == (2, True)


def test_a_whole_last_line_without_its_newline_is_a_line(smoke: Path) -> None:
    before = [load_side(smoke, side, (0, 1)) for side in ("reference", "ajax")]
    for name in (EVALS, RECORDS, EPISODES, AJAX_EVALS, AJAX_RECORDS):
        relined(name, lambda lines: lines.append(lines.pop()[:-1]))(smoke)
    assert [load_side(smoke, side, (0, 1)) for side in ("reference", "ajax")] == before


#: Files that an earlier, good comparison left in the run's directory.
EARLIER = ("compare.md", "summary.json", "figures.json", "curves.png", "curves.svg")


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_named_and_nothing_is_overwritten(
    what: str, smoke: Path, command: Command
) -> None:
    damage, where, message = DAMAGED[what]
    for name in EARLIER:
        (smoke / name).write_text(f"earlier {name}")
    damage(smoke)
    before = tree(smoke)
    done = command(compare.main, "--smoke", "--root", smoke)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {smoke / where}")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert tree(smoke) == before


def test_gzipped_damage_is_named(old_smoke: Path, command: Command) -> None:
    path = old_smoke / "ref_s0" / "records.jsonl.gz"
    good = path.read_bytes()
    damages = {
        "cut": good[: len(good) // 2],
        "empty": b"",
        "plain": b'{"seed": 0}\n',
        "flipped": good[:200] + bytes(200) + good[400:],
        "a line that is not JSON": gzip.compress(b"oops\n"),
        "without a line": gzip.compress(b""),
    }
    for what, data in damages.items():
        path.write_bytes(data)
        done = command(compare.main, "--smoke", "--root", old_smoke)
        assert done.status == 2, what
        assert done.err.startswith(f"error: {path}:"), what
        assert done.err.count("\n") == 1, what
    assert not (old_smoke / "compare.md").exists()


# --- directories that are no runs -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["missing", "empty", "file", "other files"])
def test_a_directory_that_is_not_a_run(kind: str, tmp_path: Path, command: Command) -> None:
    root = tmp_path / "there"
    if kind == "file":
        root.write_text("x")
    elif kind != "missing":
        root.mkdir()
    if kind == "other files":
        (root / "ref_notes").mkdir()
        (root / "ajax").mkdir()
        (root / "notes.txt").write_text("x")
    before = tree(tmp_path)
    done = command(compare.main, "--root", root)
    assert done.status == 2
    assert done.err.startswith(f"error: {root}: ")
    assert done.err.count("\n") == 1
    assert tree(tmp_path) == before


def test_a_missing_seed_names_the_seeds_that_are_there(smoke: Path, command: Command) -> None:
    (smoke / "ref_s0" / "evals.jsonl").unlink()
    done = command(compare.main, "--smoke", "--root", smoke)
    assert "--seeds" in done.err


# --- what a whole directory gives -----------------------------------------------------------


def test_both_sides_are_read(smoke: Path) -> None:
    reference = load_side(smoke, "reference", (0, 1))
    ajax = load_side(smoke, "ajax", (0, 1))
    assert (reference.arm, ajax.arm, reference.missing, ajax.missing) == ("stock", "stock", (), ())
    assert reference.grid == ajax.grid == (400, 800, 1200, 1600)
    assert reference.means().shape == (2, 4)
    assert all(each.episodes for each in reference.seeds)
    assert all(each.records is not None for each in ajax.seeds)


def test_old_rows_hold_the_same_figures(smoke: Path, old_smoke: Path) -> None:
    for side in ("reference", "ajax"):
        new, old = (load_side(root, side, (0, 1)) for root in (smoke, old_smoke))
        for first, second in zip(new.seeds, old.seeds, strict=True):
            assert [replace(row, wall_s=None) for row in first.evaluations] == [
                replace(row, wall_s=None) for row in second.evaluations
            ]
            assert first.episodes == second.episodes
            for row, older in zip(first.records or (), second.records or (), strict=True):
                assert older.window_samples == row.window_samples
                assert older.retnorm == (row.retnorm if side == "reference" else None)
                assert row.eval_mean == older.eval_mean
                trained = {k: v for k, v in row.train.items() if v is not None}
                assert trained.items() <= older.train.items()


@pytest.mark.parametrize(
    ("arms", "found"),
    [
        (("stock", "stock"), ("stock", "stock")),
        (("exact", "literal"), ("patched (PATCH.txt)",) * 2),
    ],
)
def test_the_arm_of_an_old_run_is_only_known_as_patched(
    arms: tuple[str, str], found: tuple[str, str], tmp_path: Path
) -> None:
    plan = Plan(2, (0,), 1600, 400, 2, True, *arms, old=True)
    run = write_run(tmp_path / "run", plan)
    assert (load_side(run, "reference", (0,)).arm, load_side(run, "ajax", (0,)).arm) == (found)


def test_a_source_is_never_an_absolute_path(smoke: Path) -> None:
    assert source_of(smoke) == "<elsewhere>/run"
    assert source_of(REPO / "results") == "<repo>/results"


def test_a_side_that_is_not_there_comes_back_empty(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Plan(**{**vars(SMOKE), "sides": ("ajax",)}))
    side = load_side(run, "reference", (0, 1))
    assert side.seeds == ()
    assert "everything that compares the sides" in str(side.missing[0])

"""The command ``compare``: what it reads, writes, prints and refuses."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis import compare
from shared.provenance.roots import REPO
from tests.conftest import Command, tree
from tests.synthetic import (
    OLD_AJAX_SHA,
    REFERENCE_SHA,
    ROUND1,
    ROUND2,
    ROUND3,
    SMOKE,
    Plan,
    write_run,
)

TABLES = {"compare.md", "summary.json", "figures.json"}


def evaluations(root: Path, side: str, seed: int) -> dict[int, float]:
    """Rows -> evaluation mean, read without this project's reader."""
    directory = root / (f"ref_s{seed}" if side == "reference" else f"ajax/s{seed}")
    lines = (directory / "evals.jsonl").read_text().splitlines()
    return {row["rows"]: row["mean"] for row in map(json.loads, lines)}


def only_evaluations(root: Path) -> Path:
    for path in root.rglob("*"):
        if path.is_file() and path.name != "evals.jsonl":
            path.unlink()
    return root


def written(root: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((root / name).read_text()))


# --- as users run it ------------------------------------------------------------------------


def test_as_a_command(smoke: Path) -> None:
    before = tree(smoke)
    done = subprocess.run(
        [sys.executable, "-m", "analysis.compare", "--smoke", "--root", smoke],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPO,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "S1: Ajax lies" in done.stdout
    assert "checks: " in done.stdout
    after = tree(smoke)
    figures = {f"{name}.{kind}" for name in ("curves", "entropy") for kind in ("png", "svg")}
    assert set(after) - set(before) == TABLES | figures
    assert {name: after[name] for name in before} == before
    # Nothing that is kept names a machine.
    assert str(smoke.parent).encode() not in b"".join(after[name] for name in TABLES)


def test_help_explains_itself(command: Command) -> None:
    done = command(compare.main, "--help")
    assert done.status == 0
    for words in ("--ref-root published", "--fail-on-difference", "--against", "exit status"):
        assert words in done.out


# --- statistics of a whole run --------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_round_3_to_the_digit(tmp_path: Path, command: Command) -> None:
    run = write_run(tmp_path / "run", ROUND3)
    done = command(compare.main, "--round", 3, "--root", run)
    assert (done.status, done.failed_checks) == (0, [])
    found = written(run, "analysis3.json")
    sides = {"ref": "reference", "ajax": "ajax"}
    means = {key: [evaluations(run, side, s) for s in range(5)] for key, side in sides.items()}
    for key, seeds in means.items():
        late = [fmean(m for rows, m in seed.items() if rows >= 12_000) for seed in seeds]
        assert found[f"late_{key}"] == pytest.approx(late, rel=1e-12)
        s1 = [fmean(seed[rows] for rows in (16_000, 18_000, 20_000)) for seed in seeds]
        assert found[f"s1_{key}"] == pytest.approx(s1, rel=1e-12)
        for rows in (20_000, 24_000):
            count = sum(seed[rows] >= 400 for seed in seeds)
            assert found["concordance"][f"{key}_{rows}"] == count
        late_means = [m for seed in seeds for rows, m in seed.items() if 16_000 <= rows <= 24_000]
        rate = sum(m >= 400 for m in late_means) / len(late_means)
        assert found["concordance"][f"{key}_rate_16_24k"] == pytest.approx(rate)
    oracle = stats.ttest_ind(found["late_ref"], found["late_ajax"], equal_var=False)
    assert found["p_late"] == pytest.approx(oracle.pvalue)
    assert found["t_late"] == pytest.approx(oracle.statistic)
    assert "| LATE |" in (run / "analysis3.md").read_text()


@pytest.mark.usefixtures("undrawn")
def test_s2_is_ajaxs_logged_value_and_the_references_episodes(
    smoke: Path, command: Command
) -> None:
    command(compare.main, "--smoke", "--root", smoke)
    per_seed = written(smoke, "summary.json")["per_seed"]
    logged = [
        json.loads(line)["s2_logged"]
        for line in (smoke / "ajax/s1/records.jsonl").read_text().splitlines()
    ]
    assert per_seed["ajax"]["1"]["S2_curve"] == logged
    lines = (smoke / "ref_s0/episodes.jsonl").read_text().splitlines()
    last: dict[int, list[float]] = {worker: [] for worker in range(16)}
    for row in map(json.loads, lines):
        if row["row_last"] <= 100:
            last[row["worker"]].append(row["score"])
    expected = fmean(fmean(scores[-10:]) for scores in last.values())
    assert per_seed["ref"]["0"]["S2"] == pytest.approx(expected)


# --- what is missing ------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_only_evaluations_still_give_what_they_can(tmp_path: Path, command: Command) -> None:
    whole = write_run(tmp_path / "whole", ROUND3)
    command(compare.main, "--round", 3, "--root", whole)
    run = only_evaluations(write_run(tmp_path / "run", ROUND3))
    done = command(compare.main, "--round", 3, "--root", run)
    # Nothing says that this project ran them: no identity and no exit code can be checked.
    assert (done.status, done.err, done.failed_checks) == (0, "", [])
    full, found = (written(root, "analysis3.json") for root in (whole, run))
    for key in ("late_ref", "late_ajax", "s1_ref", "s1_ajax", "p_late", "concordance", "reading"):
        assert found[key] == full[key]
        assert found[key] not in (None, [], {})
    figures = written(run, "figures.json")
    assert figures["curves"]["sides"] == written(whole, "figures.json")["curves"]["sides"]
    assert "late" in figures
    assert "entropy" not in figures
    lost = found["out_of_reach"]
    for seed in range(5):
        assert f"S2 of the reference (seed {seed}): needs ref_s{seed}/episodes.jsonl" in lost
        assert any(each.endswith(f": needs ajax/s{seed}/records.jsonl") for each in lost)
        assert any(each.endswith(f": needs ref_s{seed}/records.jsonl") for each in lost)
    assert all(f"  out of reach: {each}" in done.out for each in lost)
    assert "S2 of Ajax" in (run / "analysis3.md").read_text()
    unchecked = [line for line in found["checks"] if line.startswith("NOT CHECKED ")]
    assert f"0 failed, {len(unchecked)} not possible" in done.out
    # A process: its exit code, files, configuration, arguments, identity, and its side's own.
    assert len(unchecked) == 5 * len(("records", *"12345", "episodes", "finished")) + 2 + (
        5 * len(("records", "S2 audit")) + len(("sizes", "arm", *"12345", "final state"))
    )


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("side", ["reference", "ajax"])
def test_one_side_only(side: str, tmp_path: Path, command: Command) -> None:
    run = write_run(tmp_path / "run", replace(SMOKE, sides=(side,)))
    done = command(compare.main, "--smoke", "--root", run)
    other, key = ("ajax", "ref") if side == "reference" else ("reference", "ajax")
    assert done.status == 1
    assert done.failed_checks == ["ajax side" if other == "ajax" else "ref side"]
    assert f"out of reach: everything that compares the sides: needs the {other} side" in done.out
    per_seed = written(run, "summary.json")["per_seed"][key]
    assert per_seed["0"]["S1"] == pytest.approx(
        fmean(evaluations(run, side, 0)[rows] for rows in (800, 1200, 1600))
    )
    assert per_seed["0"]["S2"] is not None
    assert "The rule is out of reach" in (run / "compare.md").read_text()


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_stopped_early_says_what_its_last_row_puts_out_of_reach(
    tmp_path: Path, command: Command
) -> None:
    run = write_run(tmp_path / "run", ROUND1)
    for seed in range(3):
        for name in ("evals", "records"):
            path = run / f"ref_s{seed}" / f"{name}.jsonl"
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    done = command(compare.main, "--root", run)
    assert done.status == 1
    assert "S1: needs ref evaluations at 16000 18000 20000" in done.out
    assert "FAIL ref s0 evaluations: 6 of 10 checkpoints, the last at row 12000" in done.out
    assert "missing: 14000 16000 18000 (and 1 more)" in done.out


@pytest.mark.usefixtures("undrawn")
def test_some_of_the_seeds(tmp_path: Path, command: Command) -> None:
    run = write_run(tmp_path / "run", ROUND1)
    (run / "ref_s1" / "evals.jsonl").unlink()
    assert command(compare.main, "--root", run).status == 2
    done = command(compare.main, "--root", run, "--seeds", 2, 0)
    # Compared, and said to depart from the protocol: seeds and vmap layout.
    assert done.status == 1
    assert done.failed_checks == ["ref sizes", "ajax sizes", "ajax arguments"]
    summary = written(run, "summary.json")
    assert summary["seeds"] == [0, 2]
    assert set(summary["per_seed"]["ref"]) == set(summary["per_seed"]["ajax"]) == {"0", "2"}
    done = command(compare.main, "--root", run, "--seeds", 0, 7)
    assert (done.status, "seed 7" in done.err) == (2, True)


# --- the published figures as one side ------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_against_the_published_reference(tmp_path: Path, command: Command) -> None:
    run = write_run(tmp_path / "run", replace(ROUND3, sides=("ajax",)))
    options = ("--round", 3, "--ref-root", "published", "--ajax-root", run)
    done = command(compare.main, *options, "--out", tmp_path / "out")
    assert (done.status, done.failed_checks) == (0, [])
    found = written(tmp_path / "out", "analysis3.json")
    stated = json.loads((REPO / "results/round3/analysis3.json").read_text())
    assert found["late_ref"] == stated["late_ref"]
    own = evaluations(run, "ajax", 3)
    assert found["s1_ajax"][3] == pytest.approx(fmean(own[r] for r in (16_000, 18_000, 20_000)))
    assert found["sources"] == {"ref": "published round 3", "ajax": "<elsewhere>/run"}


@pytest.mark.usefixtures("undrawn")
def test_another_published_round_makes_a_cross_pair(tmp_path: Path, command: Command) -> None:
    sources = ("--ref-root", "published:2", "--ajax-root", "published:1")
    done = command(compare.main, *sources, "--out", tmp_path / "out")
    assert done.status == 0
    found = written(tmp_path / "out", "summary.json")
    stated = json.loads((REPO / "results/round2/pairE/summary.json").read_text())
    assert (found["A"], found["ref_S1_min"]) == (stated["A"], stated["ref_S1_min"])
    assert "Pair E" in done.out


# --- the rule as exit status ----------------------------------------------------------------


def level_of(reference: float, ajax: float) -> Any:
    return lambda side, seed, _: (reference if side == "reference" else ajax) + 3 * seed


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("ajax", "status", "verdict"),
    [
        (100.0, 1, "LEARNS fails, Ajax lies "),
        (203.0, 0, "Ajax lies within the reference's seed range"),
        (350.0, 0, "Ajax lies above the reference's seed range"),
    ],
)
def test_fail_on_difference(
    ajax: float, status: int, verdict: str, tmp_path: Path, command: Command
) -> None:
    # Enough episodes for the means to be where the level says.
    plan = replace(ROUND1, episodes=10, level=level_of(200.0, ajax))
    run = write_run(tmp_path / "run", plan)
    assert command(compare.main, "--root", run).status == 0
    done = command(compare.main, "--root", run, "--fail-on-difference")
    assert (done.status, done.failed_checks) == (status, [])
    assert verdict in done.out


@pytest.mark.usefixtures("undrawn")
def test_a_rule_out_of_reach_is_no_success(tmp_path: Path, command: Command) -> None:
    run = write_run(tmp_path / "run", replace(SMOKE, sides=("reference",)))
    options = ("--smoke", "--root", run, "--fail-on-difference")
    assert command(compare.main, *options).status == 1


# --- round 2's pairs ------------------------------------------------------------------------


@pytest.fixture
def rounds(tmp_path: Path) -> Path:
    write_run(tmp_path / "round1", ROUND1)
    write_run(tmp_path / "round2", ROUND2)
    return tmp_path


@pytest.mark.usefixtures("undrawn")
def test_both_pairs_and_their_reading(rounds: Path, command: Command) -> None:
    against = ("--against", rounds / "round1")
    done = command(compare.main, "--round", 2, "--root", rounds / "round2", *against)
    assert (done.status, done.failed_checks) == (0, [])
    assert "Reading: D22 is" in done.out
    first, second = rounds / "round1", rounds / "round2"
    for pair, (reference, ajax) in {"pairE": (second, first), "pairR": (first, second)}.items():
        summary = written(second / pair, "summary.json")
        assert summary["per_seed"]["ref"]["1"]["eval"] == list(
            evaluations(reference, "reference", 1).values()
        )
        assert summary["per_seed"]["ajax"]["1"]["eval"] == list(
            evaluations(ajax, "ajax", 1).values()
        )
        title = {"pairE": "# Pair E: ", "pairR": "# Pair R: "}[pair]
        assert (second / pair / "compare.md").read_text().startswith(title)
    reading = written(second, "reading.json")
    assert set(reading["pairs"]) == {"pairE", "pairR"}
    assert reading["pairs"]["pairE"]["gap"]["windows"] == 10
    assert not (first / "compare.md").exists()


@pytest.mark.usefixtures("undrawn")
def test_pairs_against_the_published_round(rounds: Path, command: Command) -> None:
    options = ("--round", 2, "--root", rounds / "round2", "--against", "published")
    done = command(compare.main, *options)
    # The published Ajax is a commit, the run's the release: each is held to its own.
    assert (done.status, done.failed_checks) == (0, [])
    reading = written(rounds / "round2", "reading.json")
    stated = json.loads((REPO / "results/round2/reading.json").read_text())
    assert reading["round1"] == stated["round1"]


@pytest.mark.parametrize(
    "options",
    [
        ("--round", 3, "--root", "published", "--smoke", "--out", "{tmp}/o"),
        ("--round", 1, "--ref-root", "published", "--ajax-root", "{smoke}", "--smoke"),
        ("--root", "{smoke}", "--ref-root", "published"),
        ("--round", 2, "--root", "{smoke}", "--against", "published", "--smoke"),
    ],
)
def test_no_published_run_is_a_smoke(
    options: tuple[object, ...], tmp_path: Path, smoke: Path, command: Command
) -> None:
    before = tree(tmp_path)
    done = command(compare.main, *(str(each).format(tmp=tmp_path, smoke=smoke) for each in options))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "is about a smoke, and the published runs are of full size" in done.err
    assert tree(tmp_path) == before


def test_against_needs_round_2(smoke: Path, command: Command) -> None:
    done = command(compare.main, "--root", smoke, "--against", smoke)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "--against goes with --round 2" in done.err


@pytest.mark.usefixtures("undrawn")
def test_bad_input_of_one_pair_writes_neither(rounds: Path, command: Command) -> None:
    with (rounds / "round1" / "ajax" / "s2" / "evals.jsonl").open("a") as stream:
        stream.write('{"seed": 2')
    before = tree(rounds)
    options = ("--round", 2, "--root", rounds / "round2", "--against", rounds / "round1")
    assert command(compare.main, *options).status == 2
    assert tree(rounds) == before


# --- options --------------------------------------------------------------------------------


def checkout(path: Path) -> str:
    """A git checkout with one commit; its id."""
    (path / "src").mkdir(parents=True)
    (path / "src" / "a.py").write_text("")
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", "-C", path, *words], check=True)
    found = subprocess.run(
        ["git", "-C", path, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


@pytest.mark.usefixtures("undrawn")
def test_ajax_src_expects_the_checkouts_head(tmp_path: Path, smoke: Path, command: Command) -> None:
    commit = checkout(tmp_path / "ajax")
    path = smoke / "ajax" / "config.json"
    config = json.loads(path.read_text())
    config["run"] |= {"ajax_commit": commit, "ajax_dirty": False, "ajax_distribution": None}
    path.write_text(json.dumps(config))
    options = ("--smoke", "--root", smoke, "--ajax-src", tmp_path / "ajax" / "src")
    assert command(compare.main, *options).status == 0
    config["run"]["ajax_commit"] = REFERENCE_SHA
    path.write_text(json.dumps(config))
    assert command(compare.main, *options).failed_checks == ["ajax identity"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no directory for the Reference side"),
        (("--ref-root", "published", "--out", "{tmp}"), "no directory for the Ajax side"),
        (("--ajax-root", "published", "--out", "{tmp}"), "no directory for the Reference side"),
        (("--root", "published:9", "--out", "{tmp}/o"), "with 1, 2 or 3"),
        (("--root", "published:0", "--out", "{tmp}/o"), "with 1, 2 or 3"),
        (("--root", "published:x", "--out", "{tmp}/o"), "published:N"),
        (("--root", "{tmp}/nowhere"), "no such directory"),
        (("--root", "published", "--out", "{tmp}/file"), "cannot write there"),
        (("--root", "published", "--out", "{tmp}/file/below"), "cannot write there"),
        (("--root", "published", "--out", "{tmp}/o", "--ajax-src", "{tmp}/no"), "no such dir"),
        (("--root", "published", "--out", "{tmp}/o", "--ajax-src", "{tmp}"), "git rev-parse"),
        (("--root", "published", "--out", "{tmp}/o", "--seeds", "3"), "has no seed 3"),
        (("--root", "{tmp}", "--seeds", "1", "1"), "--seeds 1 1: give different seeds"),
    ],
)
def test_options_that_cannot_be_met(
    options: tuple[str, ...], message: str, tmp_path: Path, command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "file").write_text("kept")
    before = tree(tmp_path)
    done = command(compare.main, *(each.format(tmp=tmp_path) for each in options))
    assert done.status == 2
    assert message in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert tree(tmp_path) == before
    assert not (tmp_path / "o").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path: Path, command: Command) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    done = command(compare.main, "--root", "published", "--out", tmp_path / "closed" / "below")
    assert (done.status, "cannot write there" in done.err) == (2, True)


@pytest.mark.usefixtures("undrawn")
def test_a_directory_whose_name_begins_like_the_published_figures(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "published-again")
    monkeypatch.chdir(tmp_path)
    assert command(compare.main, "--smoke", "--root", "published-again").status == 0
    assert (run / "compare.md").exists()


@pytest.mark.parametrize(
    "options", [("--round", 5), ("--ajax-commit", "a", "--ajax-version", "b"), ("--rounds", 1)]
)
def test_unknown_options_end_with_status_2(options: tuple[object, ...], command: Command) -> None:
    assert command(compare.main, *options).status == 2


# --- the same again -------------------------------------------------------------------------


def test_a_second_comparison_writes_the_same_bytes(smoke: Path, command: Command) -> None:
    assert command(compare.main, "--smoke", "--root", smoke).status == 0
    first = tree(smoke)
    assert command(compare.main, "--smoke", "--root", smoke).status == 0
    assert tree(smoke) == first
    assert {name for name in first if name.endswith((".png", ".svg"))}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_smoke_of_every_round(number: int, tmp_path: Path, command: Command) -> None:
    arms = {1: ("stock", "stock"), 2: ("exact", "literal"), 3: ("exact-seeded", "stock")}[number]
    plan = replace(SMOKE, round=number, reference_arm=arms[0], ajax_arm=arms[1])
    run = write_run(tmp_path / "run", plan)
    done = command(compare.main, "--smoke", "--round", number, "--root", run)
    assert (done.status, done.failed_checks) == (0, [])
    text = (run / ("analysis3.md" if number == 3 else "compare.md")).read_text()
    assert "(smoke)" in text.splitlines()[0]
    assert "no learning" in text


@pytest.mark.usefixtures("undrawn")
def test_old_records_compare_like_new_ones(tmp_path: Path, command: Command) -> None:
    new = write_run(tmp_path / "new", ROUND1)
    old = write_run(tmp_path / "old", replace(ROUND1, old=True))
    assert command(compare.main, "--root", new).status == 0
    done = command(compare.main, "--root", old, "--ajax-commit", OLD_AJAX_SHA)
    assert (done.status, done.failed_checks) == (0, [])
    first, second = (written(root, "summary.json") for root in (new, old))
    for key in ("A", "ref_S1_min", "ref_S1_max", "LEARNS", "WITHIN_RANGE", "per_seed"):
        assert first[key] == second[key]


@pytest.mark.usefixtures("undrawn")
def test_three_seeds_against_five(tmp_path: Path, command: Command) -> None:
    reference = write_run(tmp_path / "three", replace(ROUND3, seeds=(0, 1, 2)))
    ajax = write_run(tmp_path / "five", ROUND3)
    roots = ("--ref-root", reference, "--ajax-root", ajax)
    done = command(compare.main, "--round", 3, *roots, "--out", tmp_path / "out")
    assert done.failed_checks == ["ref sizes", "sizes of both sides"]
    found = written(tmp_path / "out", "analysis3.json")
    assert (len(found["late_ref"]), len(found["late_ajax"])) == (3, 5)
    assert np.isfinite(found["p_late"])


def test_plans_are_the_protocols_rounds() -> None:
    plans: list[Plan] = [ROUND1, ROUND2, ROUND3]
    assert [(p.rows, p.every, len(p.seeds)) for p in plans] == [
        (20_000, 2_000, 3),
        (20_000, 2_000, 3),
        (24_000, 400, 5),
    ]


def test_a_round_held_against_another_rounds_arms(smoke: Path, command: Command) -> None:
    (smoke / "launch_info.txt").unlink()  # which would have it refused
    done = command(compare.main, "--smoke", "--round", "3", "--root", smoke)
    assert (done.status, done.failed_checks) == (1, ["ref arm"])
    assert "stock, round 3 has exact-seeded" in done.out


def test_the_round_is_the_one_that_was_launched(tmp_path: Path, command: Command) -> None:
    root = write_run(tmp_path / "run", replace(SMOKE, round=3, reference_arm="exact-seeded"))
    done = command(compare.main, "--smoke", "--root", root)
    assert (done.status, done.failed_checks) == (0, [])
    assert (root / "analysis3.md").exists()


@pytest.mark.parametrize("asked", ["1", "3"])
def test_a_run_launched_as_another_round_is_refused(
    asked: str, tmp_path: Path, command: Command
) -> None:
    root = tmp_path / "D"
    write_run(root, SMOKE)
    info = root / "launch_info.txt"
    info.write_text("round: 4-literal\nsmoke: yes\n")
    before = tree(root)
    done = command(compare.main, "--round", asked, "--root", root)
    assert (done.status, done.out) == (2, "")
    assert f"{root}: holds round 4-literal, not round {asked}; give --round 4-literal" in done.err
    assert tree(root) == before


def test_one_directory_given_for_both_sides_is_a_run_too(smoke: Path, command: Command) -> None:
    roots = ("--ref-root", smoke, "--ajax-root", f"{smoke}/")
    before = tree(smoke)
    done = command(compare.main, "--round", 3, *roots, "--out", smoke / "out")
    assert (done.status, done.out) == (2, "")
    assert f"{smoke}: holds round 1, not round 3; give --round 1, or leave" in done.err
    assert tree(smoke) == before


@pytest.mark.parametrize(
    "words",
    [
        "--round 1 --ref-root published:1 --ajax-root {run}",
        "--round 3 --root {run} --ajax-root {other}",
        "--ref-root {other} --ajax-root {run}",
        "--ref-root {run} --ajax-root {run}",
        "--round 1 --root published",
        "--ref-root published:1 --ajax-root published:2",
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_sides_from_several_places_are_written_to_out_only(
    words: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = (
        write_run(tmp_path / name, replace(ROUND3, rows=8_000)) for name in ("run", "other")
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = tree(tmp_path)
    options = words.format(run=run, other=other).split()
    done = command(compare.main, *options)
    assert (done.status in (0, 1), done.err) == (True, "")
    assert done.out.endswith("give --out DIR for tables and figures\n")
    assert tree(tmp_path) == before
    said = done.out.splitlines()[:-1]
    done = command(compare.main, *options, "--out", tmp_path / "out")
    assert done.out.splitlines()[:-1] == said
    shutil.rmtree(tmp_path / "out")
    assert tree(tmp_path) == before


def test_against_goes_with_no_side_from_elsewhere(rounds: Path, command: Command) -> None:
    words = ("--root", rounds / "round2", "--against", rounds / "round1", "--ref-root", "nowhere")
    done = command(compare.main, "--round", 2, *words)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "--against goes with --round 2 and --root, the directory of round 2, alone" in done.err


@pytest.mark.usefixtures("undrawn")
def test_pairs_of_smokes_are_held_against_a_smokes_sizes(tmp_path: Path, command: Command) -> None:
    plans = {1: SMOKE, 2: replace(SMOKE, round=2, reference_arm="exact", ajax_arm="literal")}
    roots = {number: write_run(tmp_path / f"{number}", plan) for number, plan in plans.items()}
    done = command(compare.main, "--round", 2, "--root", roots[2], "--against", roots[1])
    assert (done.status, done.failed_checks) == (0, [])


@pytest.mark.parametrize(("root", "against"), [("round1", "round1"), ("round2", "round2")])
def test_pairs_of_other_rounds_than_1_and_2_are_refused(
    root: str, against: str, rounds: Path, command: Command
) -> None:
    before = tree(rounds)
    options = ("--round", 2, "--root", rounds / root, "--against", rounds / against)
    done = command(compare.main, *options)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    option = "--root" if root == "round1" else "--against"
    assert f"{rounds / root}: holds round {root[-1]}, not round" in done.err
    assert f"; {option} takes the directory of round " in done.err
    assert tree(rounds) == before

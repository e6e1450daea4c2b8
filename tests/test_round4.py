"""Round 4 as users compare it once both parts have run: tables, page, figures and the reading."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import compare
from analysis.figures import draw_all
from analysis.round4 import key
from analysis.round4_rules import CELLS
from analysis.sources import Request, Source
from analysis.study import Study, study
from analysis.together import READINGS, line_of
from tests.conftest import Command, tree, whole
from tests.synthetic import write_run
from tests.synthetic_round4 import PARTS, SEEDS, STATISTICS, TABLES


def reading(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "reading.json").read_text()))


def lines_of(path: Path) -> list[dict[str, Any]]:
    """A JSON-lines file, plain or gzipped, read without this project's reader."""
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    return [json.loads(line) for line in data.decode().splitlines()]


def edit_line(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    rows = lines_of(path)
    change(rows[number])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# --- both parts -----------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_both_parts_and_their_reading(round4: Path, command: Command) -> None:
    before = tree(round4)
    done = whole(command, round4)
    assert (done.status, done.err, done.failed_checks) == (0, "", [])
    assert "\nReading: confirmed: the two-hot expectation is the cause" in done.out
    new = set(tree(round4)) - set(before)
    parts = {f"{part}/{name}" for part in PARTS for name in TABLES}
    assert new == parts | {"reading.md", "reading.json", "figures.json"}
    assert {name: content for name, content in tree(round4).items() if name in before} == before
    found = reading(round4)
    assert (found["reading"], found["reasons"]) == ("confirmed", [])
    assert {each["reading"] for each in found["statistics"].values()} == {"follows the form"}
    assert all(each["holds"] for each in found["controls"].values())


def directory_of(root: Path, cell: str, seed: int) -> Path:
    side, form = cell.split()
    return root / form / (f"ref_s{seed}" if side == "reference" else f"ajax/s{seed}")


@pytest.mark.usefixtures("undrawn")
def test_window_means_are_those_of_the_raw_records(round4: Path, command: Command) -> None:
    """Every sample counts once: the mean over 2000 rows, not the mean of five means."""
    whole(command, round4)
    found = reading(round4)
    controls = {name: (2_000, each) for name, each in found["controls"].items()}
    statistics = {each["metric"]: (each["window"], each) for each in found["statistics"].values()}
    assert {name: window for name, (window, _) in statistics.items()} == {
        name: window for name, (window, *_) in STATISTICS.items()
    }
    for metric, (window, each) in (statistics | controls).items():
        for cell in map(key, CELLS):
            assert set(each["seeds"][cell]) == set(map(str, SEEDS))
            for seed, value in each["seeds"][cell].items():
                rows = lines_of(directory_of(round4, cell, int(seed)) / "records.jsonl")
                inside = [row for row in rows if window - 2_000 < row["rows"] <= window]
                weights = [row["window_samples"] for row in inside]
                total = sum(
                    Fraction(weight) * Fraction(row["train"][metric])
                    for weight, row in zip(weights, inside, strict=True)
                    if weight
                )
                assert value == pytest.approx(float(total / sum(weights)), rel=1e-12)


@pytest.mark.usefixtures("undrawn")
def test_s2_and_evaluations_are_those_of_the_raw_records(round4: Path, command: Command) -> None:
    whole(command, round4)
    shown = reading(round4)["not_pre_registered"]
    for cell in map(key, CELLS):
        for seed in SEEDS:
            directory = directory_of(round4, cell, seed)
            evaluations = [row["mean"] for row in lines_of(directory / "evals.jsonl")]
            assert shown["evaluations"][cell][str(seed)] == evaluations
            last = shown["S2"][cell][str(seed)][-1]
            if cell.startswith("ajax"):
                assert last == lines_of(directory / "records.jsonl")[-1]["s2_logged"]
                continue
            scores: dict[int, list[float]] = {}
            for row in lines_of(directory / "episodes.jsonl"):
                if row["row_last"] <= 250:
                    scores.setdefault(row["worker"], []).append(row["score"])
            means = [
                Fraction(sum(map(Fraction, each[-10:]))) / len(each[-10:])
                for each in scores.values()
            ]
            assert len(means) == 16
            assert last == pytest.approx(float(sum(means) / 16), rel=1e-12)


@pytest.mark.usefixtures("undrawn")
def test_no_rule_that_was_not_registered_is_printed(round4: Path, command: Command) -> None:
    done = whole(command, round4)
    texts = [done.out]
    for part in PARTS:
        texts.append((round4 / part / "compare.md").read_text())
        summary = json.loads((round4 / part / "summary.json").read_text())
        assert not {"A", "LEARNS", "WITHIN_RANGE", "s1_rows"} & set(summary)
        assert summary["out_of_reach"] == []
        assert {"S2", "eval", "S2_curve"} == set(summary["per_seed"]["ref"]["10"])
    for text in texts:
        assert "No rule is about this part alone" in text
        for word in ("LEARNS", "S1", "LATE", "ut of reach", "rule fails"):
            assert word not in text, word
    assert "## S2 (not pre-registered in this round)" in texts[1]
    assert "# Round 4: the literal expectation on both sides" in texts[1]


def test_figures_show_every_seed_and_what_was_published(round4: Path, tmp_path: Path) -> None:
    made = READINGS["4"].documents(studies(round4))
    panels = made.figures["statistics"]["panels"]
    assert len(panels) == 5
    for panel in panels.values():
        for column in panel["columns"].values():
            assert set(column["seeds"]) == set(map(str, SEEDS))
    column = panels["ret/std 2000"]["columns"]["reference literal"]
    assert column["published"] == (0.1351, 0.133, 0.1377)
    arms = made.figures["arms"]["arms"]
    assert [point[0] for point in arms["ajax exact"]["evaluations"]] == list(range(400, 4_001, 400))
    assert [point[0] for point in arms["ajax exact"]["entropy"]] == list(range(1_200, 4_001, 400))
    first = draw_all(made.figures, tmp_path / "one")
    second = draw_all(made.figures, tmp_path / "two")
    assert [path.name for path in first] == [
        "statistics.png", "statistics.svg", "arms.png", "arms.svg",
    ]  # fmt: skip
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    shown = first[1].read_text()
    for word in ("ent/action/mean", "follows the form", "published range", "literal"):
        assert word in shown


def studies(root: Path, **options: Any) -> dict[str, Study]:
    found = {}
    for part, plan in PARTS.items():
        sources = dict.fromkeys(("reference", "ajax"), Source(directory=root / part))
        rounds = dict.fromkeys(sources, str(plan.round))
        found[part] = study(Request(str(plan.round), sources, rounds=rounds, **options))
    return found


# --- the page -------------------------------------------------------------------------------


def rows_of(page: str, section: str) -> list[list[str]]:
    (part,) = [each for each in re.split("^## ", page, flags=re.M) if each.startswith(section)]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_published_figures_stand_beside_those_of_the_round(round4: Path) -> None:
    page = READINGS["4"].documents(studies(round4)).texts["reading.md"]
    rows = {
        (row[0], row[1]): row[2:] for row in rows_of(page, "Beside the published windows: the stat")
    }
    assert len(rows) == (5 + 4) * 4
    published = {name: there for name, (there, _) in rows.items()}
    assert published["`ret/std` 2000", "Reference, literal"] == "0.1351 [0.1330, 0.1377]"
    assert published["`ret/std` 2000", "Ajax, literal"] == "0.1365 [0.1348, 0.1380]"
    assert published["`ret/std` 2000", "Ajax, exact"] == "0.0099 [0.0091, 0.0109]"
    assert published["`ret/std` 2000", "Reference, exact"] == "0.0085 [0.0078, 0.0096]"
    assert published["`val/std` 4000", "Reference, literal"] == "0.052 (no seed range)"
    assert published["`rew/min` 4000", "Ajax, exact"] == "0.000 (no seed range)"
    assert published["`val/std` 4000", "Reference, exact"] == "not published"
    assert published["`rew/min` 4000", "Ajax, literal"] == "not published"
    assert all(re.fullmatch(r"-?\d+\.\d{4} \[.*\]", here) for _, here in rows.values())
    for end in (2_000, 4_000):
        others = rows_of(
            page, f"Beside the published windows: the other metrics, window ending at {end}"
        )
        assert len({row[0] for row in others}) == 33 - {2_000: 6, 4_000: 3}[end]


def test_the_page_says_what_decided(round4: Path) -> None:
    page = READINGS["4"].documents(studies(round4)).texts["reading.md"]
    # Six pairs, each of which moves either way with a chance of one half.
    assert "924" not in page
    assert "once in 64 for one statistic" in page
    decided = {row[0]: row[1:] for row in rows_of(page, "What decided")}
    assert decided["`ret/std`"][:2] == ["higher", "yes"]
    assert decided["`rew/min`"][:2] == ["lower", "yes"]
    assert decided["`val/std`"][4] == "factor 3.000"
    assert all(row[-1] == "yes" for row in rows_of(page, "Negative controls"))
    assert all(row[-2] == "yes" for row in rows_of(page, "Is there an early difference"))
    effects = {row[0]: row[1:] for row in rows_of(page, "Each seed against itself")}
    seeds = [row for name, row in effects.items() if name.startswith("each seed of")]
    assert [row[2] for row in seeds if len(row) == 4] == [", ".join(["factor 17.333"] * 3)] * 2
    for title in ("Evaluation mean at each checkpoint", "S2, the score of the last training"):
        assert [int(row[0]) for row in rows_of(page, title)] == list(range(400, 4_001, 400))


# --- other results --------------------------------------------------------------------------


def rewritten(root: Path, change: Callable[[str, str], dict[str, float]]) -> None:
    """Both parts anew; ``change`` gives training metrics of (side, form)."""
    for part, plan in PARTS.items():
        made = plan.train
        assert made is not None

        def train(side: str, seed: int, rows: int, part: str = part, made: Any = made) -> Any:
            return made(side, seed, rows) | change(side, part)

        shutil.rmtree(root / part)
        write_run(root / part, replace(plan, train=train))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda side, _: {"ret/std": 0.1 if side == "ajax" else 0.9},
            "refuted: ret/std 2000 follows the side.",
        ),
        (
            lambda *_: {"ent/action/mean": 0.5},
            "refuted: the seed ranges of ent/action/mean 4000 overlap between the sides as they ",
        ),
        (
            lambda _, form: {"con_loss": 0.4 if form == "exact" else 0.39},
            "undecided: the control con_loss does not hold (Reference +2.56%, Ajax +2.56%).",
        ),
        (
            lambda _, form: {"val/std": 0.052 if form == "literal" else 0.0},
            "undecided: val/std 4000 is unsettled: 0 (Ajax, exact) has no logarithm.",
        ),
    ],
)
def test_other_results(change: Callable[[str, str], Any], words: str, round4: Path) -> None:
    rewritten(round4, change)
    made = READINGS["4"].documents(studies(round4))
    assert line_of(made).startswith(f"Reading: {words}")
    assert json.loads(made.texts["reading.json"])["reading"] == words.split(":")[0]


def test_one_mean_that_is_not_finite_unsettles_its_statistic(round4: Path) -> None:
    """Records have null for NaN; the other four records of the window must not hide it."""
    edit_line(
        round4 / "exact" / "ajax" / "s11" / "records.jsonl",
        6,
        lambda row: row["train"].update({"val/std": None}),
    )
    made = READINGS["4"].documents(studies(round4))
    found = json.loads(made.texts["reading.json"])["statistics"]["val/std 4000"]
    assert found["reading"] == "unsettled"
    assert found["faults"] == ["a value of Ajax, exact is not finite"]
    assert "undecided: failed check: exact: FAIL ajax s11 training metrics" in line_of(made)


@pytest.mark.usefixtures("undrawn")
def test_a_failed_check_leaves_the_round_undecided(round4: Path, command: Command) -> None:
    path = round4 / "exact" / "ajax" / "config.json"
    path.write_text(path.read_text().replace('"actent": 0.0003', '"actent": 0.003'))
    done = whole(command, round4)
    assert (done.status, done.failed_checks) == (1, ["ajax configuration"])
    assert "Reading: undecided: failed check: exact: FAIL ajax configuration: " in done.out


@pytest.mark.usefixtures("undrawn")
def test_another_document_leaves_the_round_undecided(round4: Path, command: Command) -> None:
    path = round4 / "literal" / "launch_info.txt"
    path.write_text(path.read_text().replace("sha256: 57e83", "sha256: 00000"))
    done = whole(command, round4)
    assert (done.status, done.failed_checks) == (1, ["pre-registration"])
    assert "Reading: undecided: failed check: literal: FAIL pre-registration" in done.out


def test_parts_in_each_others_place_are_refused(round4: Path, command: Command) -> None:
    (round4 / "literal").rename(round4 / "other")
    (round4 / "exact").rename(round4 / "literal")
    (round4 / "other").rename(round4 / "exact")
    before = tree(round4)
    done = whole(command, round4)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"{round4 / 'literal'}: holds round 4-exact, not round 4-literal" in done.err
    assert "; each part lies under its own name" in done.err
    assert tree(round4) == before


@pytest.mark.usefixtures("undrawn")
def test_arms_in_each_others_place_leave_the_round_undecided(
    round4: Path, command: Command
) -> None:
    infos = [round4 / part / "launch_info.txt" for part in PARTS]
    texts = [path.read_text() for path in infos]
    (round4 / "literal").rename(round4 / "other")
    (round4 / "exact").rename(round4 / "literal")
    (round4 / "other").rename(round4 / "exact")
    for path, text in zip(infos, texts, strict=True):
        path.write_text(text)
    done = whole(command, round4)
    assert (done.status, set(done.failed_checks)) == (1, {"ref arm", "ajax arm"})
    assert "Reading: undecided" in done.out


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("lost", "check"),
    [
        ("literal/ref_s10/records.jsonl", "ref s10 records: records.jsonl is missing"),
        ("exact/ajax/s11/records.jsonl", "ajax s11 records: records.jsonl is missing"),
        ("exact/ajax/ajax_final.npz", "ajax final state: ajax_final.npz is missing"),
        ("exact/launch_info.txt", "pre-registration: none recorded, now it is"),
    ],
)
def test_a_lost_file_leaves_the_round_undecided(
    lost: str, check: str, round4: Path, command: Command
) -> None:
    (round4 / lost).unlink()
    done = whole(command, round4)
    assert (done.status, done.err) == (1, "")
    (line,) = [line for line in done.out.splitlines() if line.startswith("Reading: ")]
    part = lost.partition("/")[0]
    assert line.startswith(f"Reading: undecided: failed check: {part}: FAIL {check}")
    assert reading(round4)["reading"] == "undecided"


@pytest.mark.usefixtures("undrawn")
def test_a_final_state_that_does_not_fit_leaves_the_round_undecided(
    round4: Path, command: Command
) -> None:
    path = round4 / "exact" / "ajax" / "ajax_final.npz"
    arrays = dict(np.load(path))
    arrays["return_sum"][0] += 1
    np.savez(path, **arrays)
    done = whole(command, round4)
    assert (done.status, done.failed_checks) == (1, ["ajax s10 S2 audit"])


@pytest.mark.usefixtures("undrawn")
def test_a_start_under_no_document_leaves_the_round_undecided(
    round4: Path, command: Command
) -> None:
    for part in PARTS:
        path = round4 / part / "launch_info.txt"
        path.write_text(re.sub("^pre-registration: .*\n", "", path.read_text(), flags=re.M))
    done = whole(command, round4)
    assert (done.status, done.failed_checks) == (1, ["pre-registration"] * 2)
    assert "Reading: undecided: failed check: literal: FAIL pre-registration: none rec" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--round", "4"), "--round 4 takes --root DIR alone; DIR holds literal/ and exact/"),
        (("--round", "4", "--root", "A", "--ajax-root", "B"), "takes --root DIR alone"),
        (("--round", "4", "--root", "nowhere"), "nowhere: no such directory; name the directory"),
        (("--round", "4", "--root", "A", "--fail-on-difference"), "has no rule LEARNS"),
        (("--round", "4-exact", "--root", "A", "--fail-on-difference"), "has no rule LEARNS"),
        (("--round", "4", "--root", "A", "--against", "B"), "--against goes with --round 2"),
    ],
)
def test_options_that_do_not_fit(options: tuple[str, ...], words: str, command: Command) -> None:
    done = command(compare.main, *options)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert words in done.err

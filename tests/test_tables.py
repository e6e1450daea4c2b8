"""``compare.md`` and ``analysis3.md``: what the tables say is what was computed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.checks import Check
from analysis.documents import of_study
from analysis.pairs import study_pairs
from analysis.published import load_statistics
from analysis.replication import ajax_note, which_ajax
from analysis.sources import Request, Source
from analysis.study import Study, study
from analysis.tables import render, verdict
from analysis.together import READINGS
from shared.protocol import AJAX_PUBLISHED_COMMIT, KNOWN_DIFFERENCES, Side
from shared.provenance.roots import REPO
from tests.synthetic import ROUND1, ROUND3, SMOKE, Plan, write_run


def of_run(root: Path, plan: Plan) -> Study:
    source = Source(directory=write_run(root, plan))
    request = Request(str(plan.round), {"reference": source, "ajax": source}, smoke=plan.tiny)
    return study(request)


def of_published(number: int, **rounds: int) -> Study:
    of_side: dict[Side, int] = {
        "reference": rounds.get("reference", number),
        "ajax": rounds.get("ajax", number),
    }
    sources = {side: Source(published_round=each) for side, each in of_side.items()}
    names = {side: str(each) for side, each in of_side.items()}
    return study(Request(str(number), sources, rounds=names))


REMOVED = " (removed by the arms of this comparison)"


def text_of(result: Study) -> str:
    return render(result.comparison, result.checks)


def section(text: str, title: str) -> str:
    """One ``##`` section with its tables."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(title))


def rows_of(text: str) -> dict[str, list[str]]:
    """First cell -> the others, of every Markdown table line."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {first.strip(): [cell.strip() for cell in rest] for first, *rest in lines}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    root = tmp_path_factory.mktemp("tables")
    return {
        "run of round 1": of_run(root / "1", ROUND1),
        "run of round 3": of_run(root / "3", ROUND3),
        "smoke": of_run(root / "smoke", SMOKE),
        "one side": of_run(root / "one", replace(SMOKE, sides=("ajax",))),
        "published round 1": of_published(1),
        "pair E": of_published(2, ajax=1),
        "published round 3": of_published(3),
    }


def test_every_table_is_rectangular(results: dict[str, Study]) -> None:
    for name, result in results.items():
        widths: list[int] = []
        for line in text_of(result).splitlines():
            if not line.startswith("|"):
                widths = []
                continue
            widths.append(line.count("|"))
            assert len(set(widths)) == 1, (name, line)


def test_no_number_is_missing_its_meaning(results: dict[str, Study]) -> None:
    for name, result in results.items():
        text = text_of(result)
        assert not re.search(r"\b(nan|None|inf)\b", text), name
        assert text.startswith("# ")
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert "\n\n\n" not in text


def test_s1_and_its_rule(results: dict[str, Study]) -> None:
    text = section(text_of(results["published round 1"]), "S1")
    stated = load_statistics()["round1"].seeds
    table = rows_of(text)
    assert "|  | Reference | Ajax |" in text
    for seed in range(3):
        assert table[f"seed {seed}"] == [
            f"{stated['reference', seed]['S1']:.1f}",
            f"{stated['ajax', seed]['S1']:.1f}",
        ]
    assert (table["mean"][1], table["lowest"][0], table["highest"][0]) == (
        "204.1",
        "241.4",
        "386.1",
    )
    assert "Rule: A = 204.1, reference range 241.4-386.1: LEARNS no, WITHIN_RANGE no." in text
    assert "checkpoints 16000 18000 20000" in text


def test_round_3s_table_has_the_published_figures(results: dict[str, Study]) -> None:
    text = text_of(results["published round 3"])
    assert rows_of(section(text, "Welch"))["LATE"][0::2] == ["1.795", "0.1216"]
    assert rows_of(section(text, "Welch"))["S1"][0::2] == ["-0.678", "0.5166"]
    concordance = rows_of(section(text, "Concordance"))
    assert concordance["at 20000"][:2] == ["2/5", "2/5"]
    assert concordance["at 24000"][:2] == ["4/5", "3/5"]
    assert concordance["rate over 16000-24000"][:2] == ["0.457", "0.324"]
    assert "As amended on 2026-10-04: H2 or noise" in section(text, "Reading")
    # By its first wording H1 would have fired on these figures: shown beside, never instead.
    assert "as first written: H1" in section(text, "Reading")


def test_many_checkpoints_are_shown_every_2000_rows(results: dict[str, Study]) -> None:
    shown = rows_of(section(text_of(results["run of round 3"]), "Evaluation mean"))
    assert [key for key in shown if key.isdigit()] == [str(n) for n in range(2_000, 24_001, 2_000)]
    few = rows_of(section(text_of(results["smoke"]), "Evaluation mean"))
    assert [key for key in few if key.isdigit()] == ["400", "800", "1200", "1600"]


def test_each_evaluation_stands_in_its_column(results: dict[str, Study]) -> None:
    result = results["smoke"]
    table = rows_of(section(text_of(result), "Evaluation mean"))
    assert table["rows"] == ["ref s0", "ref s1", "ajax s0", "ajax s1"]
    seeds = [each for data in result.comparison.sides.values() for each in data.seeds]
    for index, at in enumerate(("400", "800", "1200", "1600")):
        assert table[at] == [f"{each.evaluations[index].mean:.1f}" for each in seeds]


def test_windows_with_disjoint_ranges_are_marked(results: dict[str, Study]) -> None:
    result = results["published round 1"]
    text = section(text_of(result), "Training metrics")
    windows = result.comparison.windows
    reference, ajax = windows["reference"], windows["ajax"]
    assert reference is not None
    assert ajax is not None
    parts = re.split(r"^### Window ending at (\d+) rows$", text, flags=re.MULTILINE)
    marked = checked = 0
    for end, part in zip(parts[1::2], parts[2::2], strict=True):
        for name, cells in rows_of(part).items():
            if not name.startswith("`"):
                continue
            metric = name.split("`")[1]
            first, second = (side[int(end)].get(metric) for side in (reference, ajax))
            if first is None or second is None:
                assert "-" in cells  # not recorded on that side
                continue
            disjoint = first[1] > second[2] or second[1] > first[2]
            assert name.endswith("*") == disjoint
            assert cells[0] == f"{first[0]:.4f} [{first[1]:.4f}, {first[2]:.4f}]"
            marked, checked = marked + disjoint, checked + 1
    assert checked > 250
    assert 0 < marked < checked


def test_the_head_counts_checks_and_failures_come_first(results: dict[str, Study]) -> None:
    result = results["smoke"]
    planted = (
        Check("a", True, "fine"),
        Check("b", None, "not recorded"),
        Check("c", False, "broken"),
    )
    text = render(result.comparison, planted)
    assert "Checks: 1 passed, 1 failed, 1 not possible." in text
    lines = [line for line in section(text, "Checks").splitlines() if line.startswith("- ")]
    assert lines == ["- FAIL c: broken", "- NOT CHECKED b: not recorded", "- PASS a: fine"]


def test_what_is_out_of_reach_is_listed(results: dict[str, Study]) -> None:
    text = text_of(results["one side"])
    assert "The rule is out of reach" in text
    assert ": needs the reference side" in section(text, "Out of reach")
    assert "## Out of reach" not in text_of(results["smoke"])


def test_companions_are_marked_as_not_pre_registered(results: dict[str, Study]) -> None:
    for name in ("published round 1", "published round 3", "run of round 1"):
        assert "## What these seeds can show (not pre-registered)" in text_of(results[name])
    table = rows_of(section(text_of(results["published round 1"]), "What these seeds"))
    # Three against three: no permutation test can go below 0.1.
    assert table["S1"][3] == "0.1000"


def test_every_known_difference_is_listed(results: dict[str, Study]) -> None:
    for result in results.values():
        known = section(text_of(result), "Known differences")
        lines = [line for line in known.splitlines() if line.startswith("- ")]
        assert [line.replace(REMOVED, "") for line in lines] == [
            f"- {each.name}: {each.text}." for each in KNOWN_DIFFERENCES
        ]


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("published round 1", set()),
        ("smoke", set()),
        ("pair E", {"D22"}),
        ("published round 3", {"D2", "D22"}),
    ],
)
def test_differences_that_the_arms_removed_are_marked(
    name: str, gone: set[str], results: dict[str, Study]
) -> None:
    lines = section(text_of(results[name]), "Known differences").splitlines()
    assert {line.split(" ")[1] for line in lines if REMOVED in line} == gone


def test_the_verdict_says_how_far_below(results: dict[str, Study]) -> None:
    assert verdict(results["published round 1"].comparison) == (
        "S1: LEARNS fails, Ajax lies 37.2 below the lowest reference seed "
        "(Ajax 204.1, reference seeds 241.4-386.1)."
    )
    assert "LATE: LEARNS fails, Ajax lies 4.9 below" in verdict(
        results["published round 3"].comparison
    )
    assert "out of reach" in verdict(results["one side"].comparison)


def test_the_reading_of_round_2_shows_both_senses_of_the_gap() -> None:
    sources = {number: Source(published_round=number) for number in (1, 2)}
    studies = study_pairs(Request("2", {}), sources)
    text = READINGS["2"].documents(studies).texts["reading.md"]
    table = rows_of(text)
    assert table["round 1"][:2] == ["87.2", "37.2"]
    assert table["pairE"][:2] == ["85.8", "61.0"]
    assert [table[name][3] for name in ("round 1", "pairE", "pairR")] == [
        "5 of 10",
        "10 of 10",
        "10 of 10",
    ]
    assert "unsettled by its own wording" in text


def test_round_2s_page_shows_the_runs_at_the_cap_and_ajaxs_single_500() -> None:
    sources = {number: Source(published_round=number) for number in (1, 2)}
    studies = study_pairs(Request("2", {}), sources)
    text = READINGS["2"].documents(studies).texts["reading.md"]
    table = rows_of(section(text, "Evaluations at the last checkpoints"))
    arms = [name for name in table if ", " in name]
    last = {arm: list(map(float, table[arm][-1].split())) for arm in arms}
    reference = [*last["Reference, stock"], *last["Reference, exact"]]
    ajax = [*last["Ajax, stock"], *last["Ajax, literal"]]
    # The published text: all six reference runs at 399 or more, one of six Ajax runs, at 500.
    assert (len(reference), len(ajax), min(reference) >= 399) == (6, 6, True)
    assert [value for value in ajax if value >= 399] == [500.0]
    assert "- Ajax, stock: 1 of 3: seed 2 (500.0)" in text
    assert "- Ajax, literal: 0 of 3" in text


def test_a_companions_page_says_what_each_test_assumes(results: dict[str, Study]) -> None:
    for name in ("published round 1", "run of round 1", "pair E"):
        text = section(text_of(results[name]), "What these seeds")
        for column, assumed in (
            ("Permutation p", "the same distribution"),
            ("Hedges g", "one spread pooled"),
            ("Detectable", "normal seeds"),
            ("Difference", "spreads differ"),
        ):
            (line,) = [line for line in text.splitlines() if line.startswith(f"- *{column}*")]
            assert assumed in line


def test_window_means_beside_the_published_ones_name_both_ajax(results: dict[str, Study]) -> None:
    text = section(text_of(results["run of round 1"]), "Beside the published windows")
    assert "Published Ajax: commit 5cb0738. Ajax here: ajax-rl 0.4.0" in text
    assert "15 lie outside" in text
    assert "15 lie" not in ajax_note(f"commit {AJAX_PUBLISHED_COMMIT} (recorded at launch), clean")
    assert which_ajax([]) == "not recorded"


@pytest.mark.parametrize(
    ("name", "directory"),
    [("published round 1", "round1"), ("pair E", "round2/pairE"), ("published round 3", "round3")],
)
def test_tables_of_the_published_rounds_are_the_committed_ones(
    name: str, directory: str, results: dict[str, Study]
) -> None:
    for file, text in of_study(results[name]).texts.items():
        if file.endswith(".md"):
            assert text == (REPO / "results" / directory / file).read_text()

"""The published figures: complete, typed, and read as a side of a comparison."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from analysis.published import (
    DIRECTORY,
    load_round,
    load_statistics,
    load_windows,
    published_side,
)
from shared.errors import RecordError, UserError
from shared.metrics import TABLE_METRICS
from shared.protocol import PAIRINGS
from tests.synthetic import OLD_AJAX_SHA, REFERENCE_SHA, ROUND1, ROUND2, ROUND3, updates

PLANS = {1: ROUND1, 2: ROUND2, 3: ROUND3}


@pytest.mark.parametrize("number", PLANS)
def test_every_evaluation_of_every_seed_is_there(number: int) -> None:
    plan, found = PLANS[number], load_round(number)
    assert found.header["reference_revision"] == REFERENCE_SHA
    assert found.header["ajax_revision"] == OLD_AJAX_SHA
    assert found.header["arms"] == {"reference": plan.reference_arm, "ajax": plan.ajax_arm}
    for side, seeds in found.seeds.items():
        assert tuple(each.seed for each in seeds) == plan.seeds
        for each in seeds:
            assert tuple(row.rows for row in each.evaluations) == tuple(plan.checkpoints)
            for row in each.evaluations:
                assert row.updates == updates(row.rows)
                if side == "ajax":
                    assert row.returns is None
                else:
                    assert row.returns is not None
                    assert row.lengths is not None
                    assert len(row.returns) == len(row.lengths) == plan.episodes
                    assert row.mean == pytest.approx(fmean(row.returns), rel=1e-12)
    assert {row["seed"] for row in found.timing["reference"]} == set(plan.seeds)


def test_nothing_is_rounded() -> None:
    """The source's own digits: Ajax's means are float32 numbers written out."""
    means = [row.mean for each in load_round(1).seeds["ajax"] for row in each.evaluations]
    assert any(len(repr(mean)) > 10 for mean in means)
    assert load_statistics()["round1"].rule["A"] == 204.13333638509116
    assert load_statistics()["round3"].welch["LATE"]["p"] == 0.1216447677760917


def test_what_was_stated_of_each_comparison() -> None:
    stated = load_statistics()
    assert set(stated) == set(PAIRINGS) == {"round1", "pairE", "pairR", "round3"}
    for name in ("round1", "pairE", "pairR"):
        entry = stated[name]
        assert set(entry.seeds) == {(s, n) for s in ("reference", "ajax") for n in range(3)}
        assert set(entry.s2_audit) == {0, 1, 2}
        s1 = {key: row["S1"] for key, row in entry.seeds.items()}
        assert entry.rule["A"] == pytest.approx(fmean(s1["ajax", n] for n in range(3)))
        assert entry.rule["reference_low"] == min(s1["reference", n] for n in range(3))
        assert entry.rule["reference_high"] == max(s1["reference", n] for n in range(3))
    assert [stated[name].entropy_disjoint for name in ("round1", "pairE", "pairR")] == [
        [2_000, 4_000, 6_000, 8_000, 12_000],
        [],
        [],
    ]
    assert len(stated["round3"].seeds) == 10


def test_the_window_tables_are_complete() -> None:
    tables = load_windows()
    assert set(tables) == {"round1", "pairE", "pairR"}
    for table in tables.values():
        for side in ("reference", "ajax"):
            assert tuple(table[side]) == tuple(range(2_000, 20_001, 2_000))
            for window in table[side].values():
                assert set(window) <= set(TABLE_METRICS)
                for mean, low, high in window.values():
                    assert low <= mean <= high
    # Protocol section 11, root cause.
    first, second = (tables["round1"]["reference"][rows] for rows in (2_000, 4_000))
    assert (first["ret/std"][0], first["adv/std"][0]) == pytest.approx((0.135, 0.160), abs=5e-4)
    assert second["ent/action/mean"][0] == pytest.approx(0.5135, abs=5e-5)
    ajax = tables["round1"]["ajax"]
    assert ajax[2_000]["ret/std"][0] == pytest.approx(0.0099, abs=5e-5)
    assert ajax[4_000]["ent/action/mean"][0] == pytest.approx(0.4565, abs=5e-5)
    literal = tables["pairR"]["ajax"][4_000]["ent/action/mean"][0]
    assert literal == pytest.approx(0.509, abs=5e-4)


def test_a_published_side_says_what_it_lacks() -> None:
    side = published_side("reference", 2)
    assert (side.published, side.source, side.arm) == (True, "published round 2", "exact")
    assert "carried" in str(side.missing[0])
    assert all(each.records is None and each.episodes is None for each in side.seeds)
    # S2 and windows of round 2's reference stand in pair E.
    assert side.carried_windows == load_windows()["pairE"]["reference"]
    assert side.seeds[1].carried_s2 == tuple(
        load_statistics()["pairE"].seeds["reference", 1]["S2_curve"]
    )
    third = published_side("ajax", 3)
    assert (third.carried_windows, third.seeds[0].carried_s2) == (None, None)
    assert third.missing[0].statistics == "S2, window means"


def test_a_round_that_was_not_published_is_refused() -> None:
    with pytest.raises(UserError, match="round 4 has no published figures"):
        load_round(4)


Loader = Callable[[Path], object]

#: File, the line that is replaced, its new text, and what the message says of it.
WRONG: list[tuple[str, Loader, int, str, str]] = [
    ("round1.jsonl", lambda d: load_round(1, d), 1, '{"format": 0, "kind": "round"}', "format 0"),
    ("round1.jsonl", lambda d: load_round(1, d), 9, "{", "not valid JSON"),
    ("round1.jsonl", lambda d: load_round(1, d), 9, '{"kind": "evaluation"}', "is missing"),
    ("round1.jsonl", lambda d: load_round(1, d), 3, '{"kind": "timing"}', "'side' is missing"),
    ("statistics.jsonl", load_statistics, 1, '{"format": "1"}', "format '1' is unknown"),
    ("statistics.jsonl", load_statistics, 4, '{"comparison": "pairE", "kind": "guess"}', "guess"),
    ("statistics.jsonl", load_statistics, 4, '{"comparison": "round9"}', "'round9'"),
    ("windows.jsonl", load_windows, 1, '{"rows": 2000}', "format None is unknown"),
    ("windows.jsonl", load_windows, 5, '{"reference": [1, 2, 3]}', "is missing or wrong"),
    (
        "windows.jsonl", load_windows, 5,
        '{"comparison": "pairE", "rows": 2000, "metric": "rew", "reference": [1], "ajax": [1]}',
        "is missing or wrong",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "load", "line", "text", "message"), WRONG)
def test_a_wrong_line_is_named(
    name: str, load: Loader, line: int, text: str, message: str, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(DIRECTORY, tmp_path / "published"))
    lines = (directory / name).read_text().splitlines()
    lines[line - 1] = text
    (directory / name).write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError) as caught:
        load(directory)
    assert str(caught.value).startswith(f"{directory / name}:{line}: ")
    assert message in str(caught.value)


def test_the_source_is_stated_once() -> None:
    text = (DIRECTORY / "README.md").read_text()
    assert text.count("YannBerthelot/Ajax") == 1
    for path in DIRECTORY.glob("*.jsonl"):
        assert json.loads(path.read_text().splitlines()[0])["format"] == 1

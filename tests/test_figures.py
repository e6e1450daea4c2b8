"""Figures: the numbers behind them are the statistics, and drawing them works and repeats."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from scipy import stats

from analysis.canvas import COLOUR, MARKER
from analysis.comparison import Comparison
from analysis.figures import DRAWINGS, SEED_STYLES, draw_all, figure_data
from analysis.pairs import reading_documents, study_pairs
from analysis.sources import Request, Source
from analysis.study import Study, study
from tests.synthetic import ROUND3, Plan, write_run

PNG = b"\x89PNG\r\n\x1a\n"


def studied(root: Path, plan: Plan) -> Comparison:
    source = Source(directory=write_run(root, plan))
    request = Request(str(plan.round), {"reference": source, "ajax": source}, seeds=plan.seeds)
    return study(request).comparison


def published(number: int) -> Study:
    source = Source(published_round=number)
    return study(Request(str(number), {"reference": source, "ajax": source}))


@pytest.fixture(scope="module")
def round3(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return studied(tmp_path_factory.mktemp("figures") / "run", ROUND3)


# --- the numbers ----------------------------------------------------------------------------


def test_curves_hold_every_evaluation_and_the_rule(round3: Comparison) -> None:
    curves = figure_data(round3)["curves"]
    for side, data in round3.sides.items():
        assert curves["sides"][side] == {
            str(each.seed): [[row.rows, row.mean] for row in each.evaluations]
            for each in data.seeds
        }
    assert round3.late is not None
    rule = round3.late.rule
    assert rule is not None
    assert curves["rule"] == {
        "name": "LATE",
        "rows": [12_000, 24_000],
        "range": [rule.low, rule.high],
        "A": rule.A,
    }


def test_entropy_windows_are_the_tables(round3: Comparison) -> None:
    (panel,) = figure_data(round3)["entropy"]["panels"].values()
    assert [window["rows"] for window in panel["windows"]] == list(range(2_000, 24_001, 2_000))
    for window, expected in zip(panel["windows"], round3.entropy, strict=True):
        assert window["overlap"] == expected.overlap
        for side, table in round3.windows.items():
            assert table is not None
            assert tuple(window[side]) == table[window["rows"]]["ent/action/mean"]


def test_late_has_each_seed_with_its_interval(round3: Comparison) -> None:
    late = figure_data(round3)["late"]
    assert round3.late is not None
    for side, values in round3.late.values.items():
        entry = late["sides"][side]
        assert [seed for seed, *_ in entry["seeds"]] == [0, 1, 2, 3, 4]
        assert [value for _, value, *_ in entry["seeds"]] == pytest.approx(list(values))
        # A seed's interval says how far its own checkpoints scatter: around its mean, and not
        # wider than the checkpoints themselves.
        for seed, value, low, high in entry["seeds"]:
            rows = round3.sides[side].seeds[seed].evaluations
            means = [row.mean for row in rows if row.rows >= 12_000]
            assert min(means) <= low < value < high <= max(means)
        mean, low, high = entry["mean"]
        half = stats.t.ppf(0.975, 4) * stdev(map(float, values)) / 5**0.5
        assert (mean, low, high) == pytest.approx((fmean(values), mean - half, mean + half))


def test_only_figures_with_something_to_show(tmp_path: Path) -> None:
    one_side = studied(tmp_path / "one", replace(ROUND3, sides=("reference",), seeds=(0,)))
    assert set(figure_data(one_side)) == {"curves"}
    assert figure_data(one_side)["curves"]["rule"] is None
    assert set(figure_data(published(1).comparison)) == {"curves", "entropy"}
    assert set(figure_data(published(3).comparison)) == {"curves", "late"}


# --- drawing --------------------------------------------------------------------------------


def texts(svg: str) -> str:
    return " ".join(re.findall(r">([^<>]+)</text>", svg))


def test_round_3_draws_all_and_repeats(round3: Comparison, tmp_path: Path) -> None:
    figures = figure_data(round3)
    first, second = (draw_all(figures, tmp_path / name) for name in ("first", "second"))
    assert [path.name for path in first] == [
        f"{name}.{kind}" for name in ("curves", "entropy", "late") for kind in ("png", "svg")
    ]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
        if one.suffix == ".png":
            assert one.read_bytes().startswith(PNG)
            assert one.stat().st_size > 10_000
    assert [path.name for path in (tmp_path / "first").iterdir() if path.name.startswith(".")] == []
    curves, entropy, late = (texts(first[i].read_text()) for i in (1, 3, 5))
    for words in ("Reference", "Ajax", "s0", "s4", "mean of 5 seeds", "LATE rule", "return", "row"):
        assert words in curves
    for words in ("nats", "window ends", "Reference", "Ajax"):
        assert words in entropy
    for words in ("mean evaluation return", "95 %", "not pre-registered", "s3"):
        assert words in late
    # No date and no path: a picture says nothing of the machine that drew it.
    assert str(tmp_path) not in first[1].read_text()
    assert "dc:date" not in first[1].read_text()


@pytest.mark.parametrize(
    "plan",
    [
        Plan(rows=20_000, seeds=(0,), sides=("ajax",)),
        Plan(rows=20_000, seeds=(4,)),
        Plan(rows=2_000, seeds=(0, 1)),
        replace(ROUND3, seeds=(0,)),
    ],
    ids=["one side, one seed", "one seed a side", "one checkpoint", "round 3 with one seed"],
)
def test_small_samples_draw(plan: Plan, tmp_path: Path) -> None:
    figures = figure_data(studied(tmp_path / "run", plan))
    assert "curves" in figures
    for path in draw_all(figures, tmp_path / "out"):
        assert path.stat().st_size > 5_000


def always_the_cap(_side: str, _seed: int, _rows: int) -> float:
    return 5_000.0


def test_runs_without_any_spread_draw(tmp_path: Path) -> None:
    """Every evaluation 500: all intervals have no width."""
    figures = figure_data(studied(tmp_path / "run", replace(ROUND3, level=always_the_cap)))
    assert figures["late"]["sides"]["ajax"]["mean"] == [500.0, 500.0, 500.0]
    assert len(draw_all(figures, tmp_path / "out")) == 6


def test_equal_values_that_rounding_moves_apart_draw() -> None:
    """Three seeds at 0.1 have the mean 0.10000000000000002, above the highest of them."""
    mean = (0.1 + 0.1 + 0.1) / 3
    window: dict[str, Any] = {"rows": 2_000, "overlap": True}
    window |= {"reference": [mean, 0.1, 0.1], "ajax": [0.2, 0.2, 0.2 + 1e-17]}
    labels = {"reference": "R", "ajax": "A"}
    DRAWINGS["entropy"]({"panels": {"title": {"labels": labels, "windows": [window]}}})
    entry = {"seeds": [[0, mean, 0.1, 0.1]], "mean": [0.1, mean, mean]}
    late = {"title": "t", "labels": labels, "range": [0.1, 0.1]}
    DRAWINGS["late"](late | {"sides": {"reference": entry, "ajax": entry}})


def test_the_entropy_of_all_comparisons_is_one_figure(tmp_path: Path) -> None:
    base = Request("2", {})
    sources = {number: Source(published_round=number) for number in (1, 2)}
    comparisons = {name: each.comparison for name, each in study_pairs(base, sources).items()}
    _, figures = reading_documents(comparisons)
    panels = figures["entropy_windows"]["panels"]
    disjoint = {
        title.split(":")[0]: [w["rows"] for w in panel["windows"] if not w["overlap"]]
        for title, panel in panels.items()
    }
    assert disjoint == {
        "Round 1": [2_000, 4_000, 6_000, 8_000, 12_000],
        "Pair E": [],
        "Pair R": [],
    }
    _, path = draw_all(figures, tmp_path)
    shown = texts(path.read_text())
    assert all(title.split(":")[0] in shown for title in panels)
    assert "seed ranges disjoint" in shown


# --- colours --------------------------------------------------------------------------------

#: What a viewer without one kind of cone sees of linear RGB (Machado, Oliveira, Fernandes 2009).
SIGHT: dict[str, list[list[float]]] = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_can_be_told_apart(sight: str) -> None:
    seen = {
        name: np.array(SIGHT[sight]) @ np.array(to_rgb(colour)) ** 2.2
        for name, colour in {**COLOUR, "mean": "black"}.items()
    }
    for (_, one), (_, two) in combinations(seen.items(), 2):
        assert float(np.linalg.norm(one - two)) > 0.2
    assert len(set(MARKER.values())) == 2
    assert len(set(SEED_STYLES)) == 5, "as many as round 3 has seeds"


def test_every_figure_has_its_drawing(round3: Comparison) -> None:
    drawings: dict[str, Callable[..., Any]] = dict(DRAWINGS)
    made = {*figure_data(round3), *figure_data(published(1).comparison)}
    # Those of rounds 2, 4 and 5 belong to a reading of several comparisons.
    assert {*made, "entropy_windows", "statistics", "arms", "pairs"} == set(drawings)

"""How far a process is, read from files that are being written."""

import json
from pathlib import Path

import pytest

from launch.places import Places
from launch.plan import Job, plan_round
from launch.progress import PlainLines, duration, snapshot, tail
from shared.protocol import ROUNDS
from shared.records.layout import RunLayout


def jobs(out: Path) -> dict[str, Job]:
    anywhere = Path("/X")
    places = Places(anywhere, out, anywhere, anywhere, *[anywhere] * 4)
    return {job.name: job for job in plan_round(ROUNDS["1"], places).jobs}


def write(path: Path, *rows: dict[str, float], ending: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + ending)


def progress(rows: int, updates: int, wall_s: float) -> dict[str, float]:
    return {"format": 1, "rows": rows, "updates": updates, "wall_s": wall_s}


def test_reference_process(tmp_path: Path) -> None:
    job = jobs(tmp_path)["ref_s0"]
    write(
        tmp_path / "ref_s0" / "progress.jsonl",
        progress(960, 0, 250.0),  # the compilation that follows is no training time
        progress(1120, 41, 500.0),
        progress(1280, 121, 580.0),
        progress(2080, 521, 980.0),
        ending='{"rows": 22',  # being written
    )
    write(tmp_path / "ref_s0" / "evals.jsonl", {"rows": 2000, "mean": 21.5})
    state = snapshot(job, RunLayout(tmp_path), 20_000)
    assert (state.rows, state.updates, state.rate) == (2080, 521, 1.0)
    assert state.left_s == 9481 - 521
    assert str(state) == (
        "row 2080 of 20000, 521 of 9481 updates, 1.00 updates/s, evaluation 21.5 at row 2000, "
        "2 h 29 min left"
    )


def test_speed_is_that_of_the_last_lines(tmp_path: Path) -> None:
    job = jobs(tmp_path)["ref_s0"]
    slow = [progress(1040 + 2 * n, n + 1, 100.0 * n) for n in range(50)]
    start = slow[-1]["wall_s"]
    fast = [progress(1140 + 2 * n, n + 51, start + 0.5 * (n + 1)) for n in range(20)]
    write(tmp_path / "ref_s0" / "progress.jsonl", *slow, *fast)
    assert snapshot(job, RunLayout(tmp_path), 20_000).rate == pytest.approx(2.0)


def test_ajax_process_means_over_its_seeds(tmp_path: Path) -> None:
    job = jobs(tmp_path)["ajax"]
    write(tmp_path / "ajax" / "progress.jsonl", progress(4000, 1481, 900.0))
    for seed, mean in enumerate((10.0, 20.0, 60.0)):
        write(tmp_path / f"ajax/s{seed}/evals.jsonl", {"rows": 4000, "mean": mean})
    state = snapshot(job, RunLayout(tmp_path), 20_000)
    assert (state.evaluation, state.evaluation_rows, state.rate) == (30.0, 4000, None)
    assert state.left_s is None, "one line gives no speed"
    write(tmp_path / "ajax/s1/evals.jsonl", {"rows": 2000, "mean": 20.0})
    assert snapshot(job, RunLayout(tmp_path), 20_000).evaluation is None, "seeds not at one row"


def test_an_evaluation_that_came_to_nan_is_none_to_show(tmp_path: Path) -> None:
    job = jobs(tmp_path)["ref_s0"]
    write(tmp_path / "ref_s0" / "progress.jsonl", progress(4000, 1481, 900.0))
    evaluations = tmp_path / "ref_s0" / "evals.jsonl"
    evaluations.write_text('{"rows": 2000, "mean": 9.5}\n{"rows": 4000, "mean": null}\n')
    state = snapshot(job, RunLayout(tmp_path), 20_000)
    assert (state.rows, state.evaluation, state.evaluation_rows) == (4000, None, None)
    evaluations.write_text('{"rows": null, "mean": 9.5}\n')
    assert snapshot(job, RunLayout(tmp_path), 20_000).evaluation is None
    (tmp_path / "ref_s0" / "progress.jsonl").write_text('{"rows": 160, "updates": null}\n')
    assert snapshot(job, RunLayout(tmp_path), 20_000).rows == 0


def test_nothing_there_yet(tmp_path: Path) -> None:
    state = snapshot(jobs(tmp_path)["ajax"], RunLayout(tmp_path), 20_000)
    assert (state.rows, state.updates, state.rate, state.evaluation) == (0, 0, None, None)
    assert "nothing recorded yet" in str(state)


def test_odd_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_bytes(b'{"rows": 1}\n\xff\xfe\nnull\n[1]\n{"rows": 2, "x": null, "y": "z"}\n')
    assert tail(path, 9) == [{"rows": 1}, {"rows": 2}]
    assert tail(path, 9, "x") == []


def test_clock_going_backwards_gives_no_speed(tmp_path: Path) -> None:
    path = tmp_path / "ref_s0" / "progress.jsonl"
    write(path, progress(1600, 281, 500.0), progress(1760, 361, 400.0))
    assert snapshot(jobs(tmp_path)["ref_s0"], RunLayout(tmp_path), 20_000).left_s is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (3600, "60 min"), (11_100, "3 h 05 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_lines_come_at_their_pace(tmp_path: Path) -> None:
    lines: list[str] = []
    job = jobs(tmp_path)["ref_s0"]
    quick = PlainLines(ROUNDS["1"], RunLayout(tmp_path), lines.append, 0.0)
    quick.tick([job])
    assert lines == ["ref_s0: nothing recorded yet (building, compiling, first rows)"]
    slow = PlainLines(ROUNDS["1"], RunLayout(tmp_path), lines.append, 60.0)
    slow.tick([job])
    assert len(lines) == 1

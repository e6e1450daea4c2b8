"""Records of an Ajax run as its log points come in; needs no Ajax."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ajax_side.recorder import Recorder
from shared.errors import NotLearningError, UserError
from shared.records.layout import EVALUATIONS, PROGRESS, RECORDS, RunLayout
from shared.records.rows import Evaluation, Place, Progress, Record, read_checkpoints, read_rows

REPO = Path(__file__).resolve().parent.parent
SEEDS = (4, 7)


def logged(rows: int, updates: int, mean: float, **more: float) -> dict[str, Any]:
    """What Ajax logs, as arrays of one element."""
    values: Mapping[str, Any] = {
        "timestep": np.int32(rows),
        "env_frames": np.int32(rows),
        "Train/n_updates": np.int32(updates),
        "Train/episodic mean reward": np.float32(mean / 2),
        "Train/rec_loss": np.float32(0.1),
        "Eval/episodic mean reward": np.float32(mean),
        "Eval/mean episodic length": np.float32(mean),
        **{name: np.float32(value) for name, value in more.items()},
    }
    return {name: np.asarray(value) for name, value in values.items()}


def returned(*points: list[dict[str, Any]]) -> dict[str, Any]:
    """The metrics of the finished call: ``[seeds, log points]``."""
    return {key: np.array([[p[key] for p in each] for each in points]) for key in points[0][0]}


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path)


@pytest.fixture
def recorder(layout: RunLayout) -> Recorder:
    return Recorder(layout, SEEDS, rows=1200, began=time.time() - 50)


def test_each_log_point_is_on_disk_when_it_is_logged(
    recorder: Recorder, layout: RunLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder.log(logged(400, 0, 20.25), 0)
    path = layout.ajax_seed_dir(4) / RECORDS
    (record,) = read_checkpoints(path, Record, Place("ajax", 4))
    assert (record.rows, record.updates, record.eval_mean) == (400, 0, 20.25)
    assert record.s2_logged == 10.125
    assert record.train == {"n_updates": 0.0, "rec_loss": float(np.float32(0.1))}
    (evaluation,) = read_rows(layout.ajax_seed_dir(4) / EVALUATIONS, Evaluation)
    assert (evaluation.mean, evaluation.returns) == (20.25, None)
    assert (layout.ajax_dir / PROGRESS).read_text() == ""  # the other seed is still out
    assert capsys.readouterr().out == ""
    recorder.log(logged(400, 0, 31.0), 1)
    (progress,) = read_rows(layout.ajax_dir / PROGRESS, Progress)
    assert (progress.rows, progress.updates) == (400, 0)
    assert 50 <= (record.wall_s or 0.0) <= progress.wall_s < 110, "seconds since the process began"
    assert "row 400 of 1200, 0 updates, evaluation 20.2 31.0" in capsys.readouterr().out


def test_window_samples_are_the_updates_since_the_last_log_point(
    recorder: Recorder, layout: RunLayout
) -> None:
    for rows, updates in ((400, 0), (800, 81), (1200, 281)):
        recorder.log(logged(rows, updates, 9.0), 0)
    records = read_rows(layout.ajax_seed_dir(4) / RECORDS, Record)
    assert [record.window_samples for record in records] == [0, 81, 200]


def test_unavailable_means_are_null_and_not_a_number(recorder: Recorder, layout: RunLayout) -> None:
    recorder.log(logged(400, 0, 9.0, **{"Train/rec_loss": np.nan}), 0)
    (record,) = read_rows(layout.ajax_seed_dir(4) / RECORDS, Record)
    assert record.train["rec_loss"] is None
    assert record.retnorm is None


def test_return_normaliser_is_recorded_where_it_is_observed(
    recorder: Recorder, layout: RunLayout
) -> None:
    bounds = {"Observed/retnorm_low": -0.5, "Observed/retnorm_high": 2.0}
    recorder.log(logged(400, 0, 9.0, **bounds), 0)
    recorder.log(logged(800, 81, 9.0, **(bounds | {"Observed/retnorm_high": 0.25})), 0)
    first, second = read_rows(layout.ajax_seed_dir(4) / RECORDS, Record)
    assert first.retnorm == {"low": -0.5, "high": 2.0, "scale": 2.5}
    assert second.retnorm == {"low": -0.5, "high": 0.25, "scale": 1.0}
    assert "Observed/retnorm_low" not in first.train


def test_heartbeats_are_thinned_and_do_not_repeat_a_log_point(
    recorder: Recorder, layout: RunLayout
) -> None:
    for rows in range(0, 1201, 16):
        if rows == 480:
            recorder.log(logged(480, 0, 9.0), 0)
            recorder.log(logged(480, 0, 9.0), 1)
        recorder.beat(rows)
    lines = read_rows(layout.ajax_dir / PROGRESS, Progress)
    seen = [(line.rows, line.updates) for line in lines]
    assert seen == [(160, 0), (320, 0), (480, 0), (640, 0), (800, 0), (960, 0), (1120, 41)]


def test_every_line_says_whose_it_is(layout: RunLayout) -> None:
    recorder = Recorder(layout, SEEDS, 1200, time.time(), arm="literal", round="2")
    recorder.log(logged(400, 0, 9.0), 1)
    for name, kind in ((RECORDS, Record), (EVALUATIONS, Evaluation)):
        (row,) = read_rows(layout.ajax_seed_dir(7) / name, kind)
        assert (row.side, row.seed, row.arm, row.round) == ("ajax", 7, "literal", "2")


def test_rows_that_go_back_are_an_error(recorder: Recorder) -> None:
    recorder.log(logged(800, 0, 9.0), 0)
    with pytest.raises(UserError, match="row 400 logged after row 800"):
        recorder.log(logged(400, 0, 9.0), 0)
    assert isinstance(recorder.failure, UserError)


def test_records_are_compared_with_what_the_call_returned(recorder: Recorder) -> None:
    first = [logged(400, 0, 9.0), logged(800, 0, 10.0)]
    second = [logged(400, 0, 11.0), logged(800, 0, 12.0)]
    for position, points in enumerate((first, second)):
        for point in points:
            recorder.log(point, position)
    assert recorder.faults(returned(first, second), (400, 800)) == []
    changed = returned(first, [second[0], logged(800, 0, 12.5)])
    assert recorder.faults(changed, (400, 800)) == [
        "seed 7: the records are not what the call returned"
    ]
    assert recorder.faults(returned(first, second), (400, 800, 1200)) == [
        "seed 4: recorded 2 of 3 log points",
        "seed 7: recorded 2 of 3 log points",
    ]


def test_metrics_with_one_entry_a_tick_are_compared_at_their_evaluations(
    recorder: Recorder,
) -> None:
    for position in range(2):
        recorder.log(logged(32, 0, 9.0), position)
    ticks = [logged(16, 0, np.nan), logged(32, 0, 9.0), logged(48, 0, np.nan)]
    assert recorder.faults(returned(ticks, ticks), (32,)) == []


def test_what_the_call_returned_is_recorded_as_if_it_had_been_logged(tmp_path: Path) -> None:
    points = [
        [logged(400, 0, mean), logged(800, 81, mean + 0.1), logged(1200, 281, mean + 0.2)]
        for mean in (9.0, 11.0)
    ]
    live, late = (
        Recorder(RunLayout(tmp_path / name), SEEDS, 1200, time.time()) for name in ("live", "late")
    )
    for number in range(3):
        for position in range(2):
            live.log(points[position][number], position)
    padding = logged(-1, -1, np.nan)
    late.take(returned(*([*each, padding] for each in points)))
    for seed in SEEDS:
        for kind, name in ((Record, RECORDS), (Evaluation, EVALUATIONS)):
            logged_rows, taken = (
                [
                    replace(row, wall_s=None)
                    for row in read_rows(
                        RunLayout(tmp_path / where).ajax_seed_dir(seed) / name, kind
                    )
                ]
                for where in ("live", "late")
            )
            assert taken == logged_rows
            assert len(taken) == 3
    assert late.faults(returned(*points), (400, 800, 1200)) == []


def test_late_records_do_not_claim_a_time(recorder: Recorder, layout: RunLayout) -> None:
    points = [logged(400, 0, 9.0), logged(800, 81, 9.0)]
    recorder.take(returned(points, points))
    assert [row.wall_s for row in read_rows(layout.ajax_seed_dir(4) / RECORDS, Record)] == [
        None
    ] * 2
    lines = read_rows(layout.ajax_dir / PROGRESS, Progress)
    assert [line.rows for line in lines] == [400, 800]


def test_a_loss_that_is_no_number_stops_the_run_with_its_records_kept(
    recorder: Recorder, layout: RunLayout
) -> None:
    for position in range(2):
        recorder.log(logged(400, 0, 9.0, **{"Train/dyn_loss": np.nan}), position)  # no update yet
    recorder.log(logged(800, 81, 9.0, **{"Train/dyn_loss": np.nan, "Train/adv/std": 1.0}), 0)
    message = "ajax: stopped at row 800, after 81 updates: dyn_loss of seed 4 not finite; "
    with pytest.raises(NotLearningError, match=message):
        recorder.log(logged(800, 81, 9.0), 1)
    assert isinstance(recorder.failure, NotLearningError)
    for seed in SEEDS:
        records = read_rows(layout.ajax_seed_dir(seed) / RECORDS, Record)
        assert [record.rows for record in records] == [400, 800]


def test_a_metric_that_is_no_loss_may_be_no_number(recorder: Recorder) -> None:
    for position in range(2):
        recorder.log(logged(800, 81, 9.0, **{"Train/adv/std": np.nan}), position)


def test_without_callbacks_everything_is_recorded_before_the_run_is_given_up(
    recorder: Recorder, layout: RunLayout
) -> None:
    fine = [logged(400, 81, 9.0), logged(800, 181, 9.0), logged(1200, 281, 9.0)]
    lost = [fine[0], *(point | {"Train/rec_loss": np.float32(np.inf)} for point in fine[1:])]
    with pytest.raises(NotLearningError, match=r"row 800, after 181 updates: rec_loss of seed 7"):
        recorder.take(returned(fine, lost))
    for seed in SEEDS:
        records = read_rows(layout.ajax_seed_dir(seed) / RECORDS, Record)
        assert [record.rows for record in records] == [400, 800, 1200]


BLOCKED = """
import hashlib, signal, sys, time
from pathlib import Path
from ajax_side.interrupt import end_on_signals
from ajax_side.recorder import Recorder
from shared.records.layout import RunLayout
from tests.test_ajax_recorder import logged
recorder = Recorder(RunLayout(Path(sys.argv[1])), (4, 7), 1200, time.time())
if len(sys.argv) > 2:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
recorder.log(logged(400, 0, 9.0), 0)
recorder.log(logged(400, 0, 9.0), 1)
end_on_signals(recorder)
print("ready", flush=True)
hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # minutes inside one C call, as the training
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_process_that_is_inside_compiled_code(
    tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BLOCKED, tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        started = time.monotonic()
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert time.monotonic() - started < 10
    assert process.returncode == 128 + number
    assert errors == f"error: ended by {number.name}; recorded up to row 400\n"
    path = RunLayout(tmp_path).ajax_seed_dir(7) / RECORDS
    assert [record.rows for record in read_rows(path, Record)] == [400]


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BLOCKED, tmp_path, "ignored"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert errors == "error: ended by SIGTERM; recorded up to row 400\n"

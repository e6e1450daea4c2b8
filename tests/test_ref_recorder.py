"""The reference's recorder: a clock that is set while it records changes nothing."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ref_side.recorder import Checkpoint, Recorder
from shared.records.layout import EPISODES, EVALUATIONS, PROGRESS, RECORDS
from shared.records.rows import Episode, Evaluation, Progress, Record, read_rows


def test_a_clock_that_is_set_back_distorts_no_time_and_silences_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = {"time": 1050.0, "monotonic": 7.0}
    for name in clock:
        monkeypatch.setattr(time, name, lambda name=name: clock[name])
    recorder = Recorder(tmp_path, 3, 1600, began=1000.0, arm="exact", round="2")
    recorder.progress(160, 0)
    assert capsys.readouterr().out == "", "15 seconds have not passed"
    clock |= {"time": 1050.0 - 3600.0, "monotonic": 27.0}
    recorder.progress(1120, 41)
    assert capsys.readouterr().out == (
        f"{tmp_path.name}: row 1120 of 1600, 41 updates, 2.05 updates/s, last evaluation none yet, "
        "70 s\n"
    )
    clock["monotonic"] += 5.0
    outcome = SimpleNamespace(returns=(20.0, 30.0), lengths=(20, 30))
    normaliser = {"low": 0.0, "high": 2.0, "scale": 2.0}
    recorder.checkpoint(Checkpoint(1200, 81, {}, 40, normaliser, outcome))
    ended = SimpleNamespace(row_last=9, length=9, score=9.0, terminal=True)
    recorder.episode(0, ended)
    recorder.close()
    assert [row.wall_s for row in read_rows(tmp_path / PROGRESS, Progress)] == [50.0, 70.0]
    assert [row.wall_s for row in read_rows(tmp_path / EVALUATIONS, Evaluation)] == [75.0]
    assert [row.wall_s for row in read_rows(tmp_path / RECORDS, Record)] == [75.0]
    for name, kind in ((EVALUATIONS, Evaluation), (RECORDS, Record), (EPISODES, Episode)):
        (row,) = read_rows(tmp_path / name, kind)
        assert (row.side, row.seed, row.arm, row.round) == ("ref", 3, "exact", "2")

"""Writes a run's records while it runs, from what Ajax logs at each log point."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from shared.errors import NotLearningError, UserError
from shared.metrics import LOSSES, not_finite
from shared.protocol import SIDE_KEY, updates
from shared.records.jsonl import JsonlWriter
from shared.records.layout import EVALUATIONS, PROGRESS, RECORDS, RunLayout
from shared.records.rows import Evaluation, Progress, Record

#: Rows between two lines of progress.jsonl, as on the reference side.
PROGRESS_ROWS = 160

#: Ajax's prefix of training metrics, and the names it logs beside the window means.
_TRAIN = "Train/"
_S2 = "Train/episodic mean reward"
_UPDATES = "Train/n_updates"
_EVALUATION, _EVALUATION_LENGTH = "Eval/episodic mean reward", "Eval/mean episodic length"
_ROWS = "timestep"
#: Added by :func:`ajax_side.observers.add_return_normaliser`.
NORMALISER_LOW, NORMALISER_HIGH = "Observed/retnorm_low", "Observed/retnorm_high"


class Recorder:
    """One line per seed and log point in ``records.jsonl`` and ``evals.jsonl``, as it comes.

    Ajax's logging callback calls :meth:`log` once per seed, from a thread of its own. A logged
    ``Train/<metric>`` of the agent is already the mean over the updates since the last log point;
    the number of updates since then is therefore the number of samples in that window. ``began``
    is the unix time at which the process began; ``arm`` and ``round`` are what the lines say of
    themselves, beside side and seed.
    """

    def __init__(
        self,
        layout: RunLayout,
        seeds: Sequence[int],
        rows: int,
        began: float,
        *,
        arm: str | None = None,
        round: str | None = None,  # noqa: A002 - the name of the key
    ) -> None:
        self._seeds, self._total = tuple(seeds), rows
        self._arm, self._round = arm, round
        # From here on a clock that is set changes nothing.
        self._start = time.monotonic() - (time.time() - began)
        self._reported = 0
        self._windows: dict[int, list[Record]] = {seed: [] for seed in seeds}
        for seed in seeds:
            layout.ajax_seed_dir(seed).mkdir(parents=True)
        self._progress = JsonlWriter(layout.ajax_dir / PROGRESS)
        self._writers = {
            seed: (
                JsonlWriter(layout.ajax_seed_dir(seed) / EVALUATIONS),
                JsonlWriter(layout.ajax_seed_dir(seed) / RECORDS),
            )
            for seed in seeds
        }
        #: Held while lines are written; whoever ends the process takes it first.
        self.lock = threading.Lock()
        #: The first thing that went wrong while recording, if any.
        self.failure: Exception | None = None

    def log(self, metrics: Mapping[str, Any], index: int) -> None:
        """Record one log point of the seed at position ``index``; ``metrics`` holds scalars.

        Raises ``NotLearningError`` when every seed has logged and a loss of one is not finite.
        """
        with self._guarded():
            self._write(self._seeds[index], scalars(metrics), self._elapsed())

    def take(self, metrics: Mapping[str, Any]) -> None:
        """Record every log point from what the finished call returned (see :meth:`faults`).

        When each was reached is not known by then: its ``wall_s`` is ``None``. Raises
        ``NotLearningError``, once all are recorded, for the first log point that calls for it.
        """
        failure: NotLearningError | None = None
        for point in range(metrics[_ROWS].shape[1]):
            for position, seed in enumerate(self._seeds):
                if not np.isfinite(metrics[_EVALUATION][position, point]):
                    continue  # no log point
                found = {name: values[position, point] for name, values in metrics.items()}
                try:
                    with self._guarded():
                        self._write(seed, scalars(found), None)
                except NotLearningError as error:
                    failure = failure or error
        if failure is not None:
            raise failure

    def beat(self, rows: int) -> None:
        """Note in ``progress.jsonl`` that ``rows`` rows, and the updates due by then, are done."""
        with self._guarded():
            if rows > self._reported and rows % PROGRESS_ROWS == 0:
                self._note(rows, updates(rows), self._elapsed())

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Hold the lock, and keep what goes wrong: Ajax's run only says that a callback failed."""
        with self.lock:
            try:
                yield
            except Exception as error:
                self.failure = self.failure or error
                raise

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _note(self, rows: int, done: int, wall_s: float) -> None:
        self._reported = rows
        self._progress.write(Progress(rows, done, wall_s).to_json())

    def _write(self, seed: int, metrics: Mapping[str, float], wall_s: float | None) -> None:
        windows = self._windows[seed]
        previous = windows[-1].updates if windows else 0
        record = as_record(seed, metrics, previous, wall_s)
        record = replace(record, arm=self._arm, round=self._round)
        if windows and record.rows <= windows[-1].rows:
            raise UserError(f"seed {seed}: row {record.rows} logged after row {windows[-1].rows}")
        evaluations, records = self._writers[seed]
        evaluations.write(as_evaluation(record).to_json())
        records.write(record.to_json())
        windows.append(record)
        if all(len(each) >= len(windows) for each in self._windows.values()):
            self._report(len(windows) - 1)

    def _report(self, point: int) -> None:
        """One line of progress, once every seed has logged its ``point``-th log point."""
        done = [self._windows[seed][point] for seed in self._seeds]
        last = max(done, key=lambda record: record.wall_s or 0.0)
        wall = self._elapsed() if last.wall_s is None else last.wall_s
        if last.rows > self._reported:
            self._note(last.rows, last.updates, wall)
        means = " ".join(f"{record.eval_mean:.1f}" for record in done)
        print(
            f"ajax: row {last.rows} of {self._total}, {last.updates} updates, "
            f"evaluation {means}, {wall:.0f} s",
            flush=True,
        )
        for record in done:
            check_learning(record)

    def rows(self) -> dict[int, tuple[int, ...]]:
        """Seed -> rows recorded so far."""
        return {seed: tuple(record.rows for record in each) for seed, each in self._windows.items()}

    def faults(self, metrics: Mapping[str, Any], expected: Sequence[int]) -> list[str]:
        """What the records lack against the metrics that the finished call returned.

        ``metrics``: arrays ``[seeds, log points]``, or ``[seeds, ticks]`` with NaN evaluations
        between log points; ``expected``: the rows of the log points.
        """
        found = []
        for position, seed in enumerate(self._seeds):
            returned = metrics[_EVALUATION][position]
            logged = np.isfinite(returned)
            pairs = zip(metrics[_ROWS][position][logged], returned[logged], strict=True)
            recorded = [(record.rows, record.eval_mean) for record in self._windows[seed]]
            if recorded != [(int(rows), float(mean)) for rows, mean in pairs]:
                found.append(f"seed {seed}: the records are not what the call returned")
            if [rows for rows, _ in recorded] != list(expected):
                found.append(f"seed {seed}: recorded {len(recorded)} of {len(expected)} log points")
        return found

    def close(self) -> None:
        """Close the files."""
        for writer in (self._progress, *(each for pair in self._writers.values() for each in pair)):
            writer.close()


def scalars(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Logged arrays of one element as Python numbers; float32 values keep every digit."""
    return {name: getattr(value, "item", lambda v=value: v)() for name, value in metrics.items()}


def as_record(
    seed: int, metrics: Mapping[str, float], previous: int, wall_s: float | None
) -> Record:
    """One line of ``records.jsonl``; ``previous`` is the number of updates at the last one."""
    done = int(metrics[_UPDATES])
    train: dict[str, float | None] = {
        name.removeprefix(_TRAIN): value
        for name, value in metrics.items()
        if name.startswith(_TRAIN) and name != _S2
    }
    return Record(
        seed=seed,
        rows=int(metrics[_ROWS]),
        updates=done,
        side=SIDE_KEY["ajax"],
        eval_mean=metrics[_EVALUATION],
        eval_len_mean=metrics[_EVALUATION_LENGTH],
        eval_returns=None,
        s2_logged=metrics[_S2],
        train=train,
        train_raw=None,
        retnorm=_normaliser(metrics),
        wall_s=wall_s,
        window_samples=done - previous,
    )


def check_learning(record: Record) -> None:
    """Raise ``NotLearningError`` where a window's mean of a loss is not finite."""
    # Before the first update of a window the means are NaN, and say nothing.
    lost = not_finite(record.train, LOSSES) if record.window_samples else ()
    if lost:
        raise NotLearningError(
            f"ajax: stopped at row {record.rows}, after {record.updates} updates: "
            f"{', '.join(lost)} of seed {record.seed} not finite; the records are kept"
        )


def as_evaluation(record: Record) -> Evaluation:
    """The line of ``evals.jsonl`` that goes with a record."""
    return Evaluation(
        side=record.side,
        seed=record.seed,
        arm=record.arm,
        round=record.round,
        rows=record.rows,
        updates=record.updates,
        returns=None,
        lengths=None,
        mean=record.eval_mean,
        len_mean=record.eval_len_mean,
        wall_s=record.wall_s,
    )


def _normaliser(metrics: Mapping[str, float]) -> dict[str, float | None] | None:
    """The return normaliser at this row; ``None`` where this Ajax offers no place to observe it."""
    if NORMALISER_LOW not in metrics:
        return None
    low, high = metrics[NORMALISER_LOW], metrics[NORMALISER_HIGH]
    return {"low": low, "high": high, "scale": max(1.0, high - low)}

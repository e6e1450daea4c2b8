"""Writes the records of one reference run (protocol sections 5 and 7) while it runs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.metrics import DERIVED_SCALE, derived_scale, to_ajax_names
from shared.protocol import SIDE_KEY
from shared.records.jsonl import JsonlWriter
from shared.records.layout import EPISODES, EVALUATIONS, PROGRESS, RECORDS
from shared.records.rows import Episode, Evaluation, Progress, Record

if TYPE_CHECKING:  # they import the reference and jax, and recording needs neither
    from ref_side.environment import FinishedEpisode
    from ref_side.evaluation import Outcome

#: Parameters that hold the return normaliser's percentiles.
_LOW, _HIGH = "agent/retnorm/low/value", "agent/retnorm/high/value"
#: A progress line is printed at every checkpoint, and besides at most this often.
_QUIET_SECONDS = 15.0


@dataclass(frozen=True)
class Checkpoint:
    """What is recorded at one multiple of ``every`` rows.

    ``window`` holds the means of the training metrics under the reference's names, over
    ``samples`` updates; ``normaliser`` the return normaliser's low, high and scale.
    """

    rows: int
    updates: int
    window: Mapping[str, float]
    samples: int
    normaliser: Mapping[str, float]
    evaluation: "Outcome"


def return_normaliser(parameters: Mapping[str, Any]) -> dict[str, float]:
    """``low``, ``high`` and ``scale`` = max(1, high - low) from the agent's parameters."""
    low, high = float(parameters[_LOW]), float(parameters[_HIGH])
    return {"low": low, "high": high, "scale": max(1.0, high - low)}


class Recorder:
    """Appends to a run's four JSON-lines files and prints progress; ``began`` is a unix time.

    ``arm`` and ``round`` are what the lines say of themselves, beside side and ``seed``.
    """

    def __init__(
        self,
        directory: Path,
        seed: int,
        rows: int,
        began: float,
        *,
        arm: str | None = None,
        round: str | None = None,  # noqa: A002 - the name of the key
    ) -> None:
        self._name, self._rows = directory.name, rows
        self._labels: dict[str, Any] = {
            "side": SIDE_KEY["reference"],
            "seed": seed,
            "arm": arm,
            "round": round,
        }
        # From here on a clock that is set changes nothing.
        self._start = time.monotonic() - (time.time() - began)
        self._episodes = JsonlWriter(directory / EPISODES)
        self._evaluations = JsonlWriter(directory / EVALUATIONS)
        self._records = JsonlWriter(directory / RECORDS)
        self._progress = JsonlWriter(directory / PROGRESS)
        self._writers = (self._episodes, self._evaluations, self._records, self._progress)
        self._last_evaluation = "none yet"
        self._printed = (0, time.monotonic())

    def episode(self, worker: int, episode: "FinishedEpisode") -> None:
        """Record a finished training episode of environment ``worker``."""
        row = Episode(
            **self._labels,
            worker=worker,
            row_last=episode.row_last,
            length=episode.length,
            score=episode.score,
            terminal=episode.terminal,
        )
        self._episodes.write(row.to_json())

    def progress(self, rows: int, updates: int) -> None:
        """Record how far the run is; a line is printed now and then."""
        self._progress.write(Progress(rows, updates, self._elapsed()).to_json())
        if time.monotonic() - self._printed[1] >= _QUIET_SECONDS:
            self._say(rows, updates)

    def checkpoint(self, found: Checkpoint) -> None:
        """Record one checkpoint in ``evals.jsonl`` and ``records.jsonl`` and print a line."""
        returns, lengths = found.evaluation.returns, found.evaluation.lengths
        evaluation = Evaluation(
            **self._labels,
            rows=found.rows,
            updates=found.updates,
            returns=returns,
            lengths=lengths,
            mean=sum(returns) / len(returns),
            len_mean=sum(lengths) / len(lengths),
            wall_s=self._elapsed(),
        )
        self._evaluations.write(evaluation.to_json())
        self._records.write(self._record(found, evaluation).to_json())
        self._last_evaluation = f"{evaluation.mean:.1f} at {found.rows}"
        self._say(found.rows, found.updates)

    def _record(self, found: Checkpoint, evaluation: Evaluation) -> Record:
        return Record(
            **self._labels,
            rows=found.rows,
            updates=found.updates,
            eval_mean=evaluation.mean,
            eval_len_mean=evaluation.len_mean,
            eval_returns=evaluation.returns,
            s2_logged=None,
            train={
                **to_ajax_names(found.window),
                "n_updates": found.updates,
                DERIVED_SCALE: derived_scale(found.window),
            },
            train_raw=dict(found.window),
            retnorm=dict(found.normaliser),
            wall_s=evaluation.wall_s,
            window_samples=found.samples,
        )

    def check(self) -> None:
        """Raise ``UserError`` where its files are not where they were: somebody moved them."""
        for writer in self._writers:
            writer.check()

    def close(self) -> None:
        """Close the files."""
        for writer in self._writers:
            writer.close()

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _say(self, rows: int, updates: int) -> None:
        before, at = self._printed
        now = time.monotonic()
        print(
            f"{self._name}: row {rows} of {self._rows}, {updates} updates, "
            f"{(updates - before) / max(now - at, 1e-9):.2f} updates/s, "
            f"last evaluation {self._last_evaluation}, {self._elapsed():.0f} s",
            flush=True,
        )
        self._printed = (updates, now)

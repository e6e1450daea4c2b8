"""The checks of a comparison (protocol section 9): did the runs do what the protocol says?

A check is one line, ``PASS name: detail`` or ``FAIL name: detail``. What a source cannot show is
a :class:`Check` with ``ok`` None, printed as ``NOT CHECKED`` and never counted as passed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.data import SeedData, SideData
from shared.errors import printable, shown
from shared.launch_info import Revision
from shared.protocol import MAX_EPISODE_STEPS, SIDE_KEY, Side, checkpoints, updates


@dataclass(frozen=True)
class Check:
    """One check; ``ok`` is ``None`` where the source does not hold what it needs."""

    name: str
    ok: bool | None
    detail: str

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "NOT CHECKED"}[self.ok]
        return printable(f"{word} {self.name}: {self.detail}")


@dataclass(frozen=True)
class Sizes:
    """What the runs of one comparison must have: the protocol's values, or a smoke run's own."""

    seeds: tuple[int, ...]
    rows: int
    every: int
    episodes: int
    tiny: bool

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Rows of the evaluations, ascending."""
        return checkpoints(self.rows, self.every)


@dataclass(frozen=True)
class ExpectedAjax:
    """Identity that the Ajax side must have: a commit, or a release's version and digest."""

    commit: str | None = None
    version: str | None = None
    digest: str | None = None


def outcome(name: str, faults: Sequence[str], good: str) -> Check:
    """PASS with ``good``, or FAIL with the first fault and the number of the others."""
    if not faults:
        return Check(name, True, good)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return Check(name, False, f"{faults[0]}{more}")


def record_checks(side: SideData, sizes: Sizes) -> Iterator[Check]:
    """Checks of evaluations and records, the same for both sides."""
    key = SIDE_KEY[side.side]
    for each in side.seeds:
        name = f"{key} s{each.seed}"
        yield _evaluation_sizes(name, side, each, sizes)
        yield _rows(f"{name} evaluations", [row.rows for row in each.evaluations], sizes)
        if each.records is not None:
            yield _rows(f"{name} records", [row.rows for row in each.records], sizes)
            yield _agree(name, each)
            yield _windows(name, each)
        if not side.published:
            if each.records is None:
                yield Check(f"{name} records", False, "records.jsonl is missing")
            yield _updates(name, each)


def _evaluation_sizes(name: str, side: SideData, seed: SeedData, sizes: Sizes) -> Check:
    faults = []
    listed = [row for row in seed.evaluations if row.returns is not None]
    for row in listed:
        returns, lengths = row.returns or (), row.lengths or ()
        if len(returns) != sizes.episodes or len(lengths) != sizes.episodes:
            faults.append(f"row {row.rows}: {len(returns)} episodes of {sizes.episodes}")
        elif not math.isclose(row.mean, math.fsum(returns) / len(returns), rel_tol=1e-9):
            faults.append(f"row {row.rows}: mean {row.mean:g} is not that of its returns")
        elif returns != lengths or not all(1 <= a <= MAX_EPISODE_STEPS for a in returns):
            faults.append(f"row {row.rows}: a return is not its length in 1..{MAX_EPISODE_STEPS}")
    outside = [row.rows for row in seed.evaluations if not 0 <= row.mean <= MAX_EPISODE_STEPS]
    faults += [f"row {rows}: mean outside 0..{MAX_EPISODE_STEPS}" for rows in outside]
    if not listed and side.side == "reference" and seed.evaluations:
        faults.append("no returns are recorded")
    good = f"{sizes.episodes} episodes each" if listed else "means in range (Ajax logs the mean)"
    return outcome(f"{name} evaluation sizes", faults, good)


def _rows(name: str, rows: Sequence[int], sizes: Sizes) -> Check:
    expected = list(sizes.checkpoints)
    faults = []
    if list(rows) != expected:
        last = rows[-1] if rows else 0
        faults.append(f"{len(rows)} of {len(expected)} checkpoints, the last at row {last}")
    return outcome(name, faults, f"{len(expected)}, every {sizes.every} to {sizes.rows}")


def _updates(name: str, seed: SeedData) -> Check:
    rows = [*seed.evaluations, *(seed.records or ())]
    faults = [
        f"{row.updates} at row {row.rows}, expected {updates(row.rows)}"
        for row in rows
        if row.updates != updates(row.rows)
    ]
    last = seed.evaluations[-1] if seed.evaluations else None
    good = f"{last.updates} at row {last.rows}" if last else "none"
    return outcome(f"{name} updates", faults, good)


def _agree(name: str, seed: SeedData) -> Check:
    """``evals.jsonl`` and ``records.jsonl`` must tell of the same evaluations."""
    means = {row.rows: row.mean for row in seed.evaluations}
    faults = [
        f"row {row.rows}: {row.eval_mean:g} in records.jsonl, {means[row.rows]:g} in evals.jsonl"
        for row in seed.records or ()
        if row.rows in means and row.eval_mean != means[row.rows]
    ]
    return outcome(f"{name} evaluations in both files", faults, "equal")


def _windows(name: str, seed: SeedData) -> Check:
    faults, previous = [], 0
    for row in seed.records or ():
        trained, previous = row.updates > previous, row.updates
        bad = [m for m, value in row.train.items() if value is None or not math.isfinite(value)]
        if trained and (bad or not row.train):
            faults.append(
                f"row {row.rows}: {bad[0] if bad else 'no metric'} is not a finite number"
            )
    return outcome(f"{name} training metrics", faults, "finite in every window with updates")


def identity(side: Side, revision: Revision | None, expected: str, recorded: bool) -> Check:
    """The commit that ran, ``recorded`` by the process itself or else at launch."""
    name = f"{SIDE_KEY[side]} identity"
    if revision is None or revision.commit is None:
        return Check(name, False, "no revision is recorded")
    if not (expected.startswith(revision.commit) or revision.commit.startswith(expected)):
        return Check(name, False, f"commit {revision.commit}, expected {expected}")
    if revision.dirty:
        return Check(name, False, f"commit {revision.commit} with uncommitted changes")
    source = "recorded by the process" if recorded else "recorded at launch"
    clean = "clean" if revision.dirty is False else "its dirty flag was not recorded"
    return Check(name, True, f"commit {revision.commit} ({source}), {clean}")


def compare_values(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Faults of a resolved configuration against expected values; numbers compare as numbers."""
    faults = []
    for key, value in expected.items():
        if key not in found:
            faults.append(f"{key} is missing")
        elif not same_value(found[key], value):
            faults.append(f"{key} is {shown(found[key])}, expected {value!r}")
    return faults


def same_value(found: Any, expected: Any) -> bool:
    """Equality across JSON, YAML and Python: ``5e6`` is text to YAML 1.1, and 1 equals 1.0."""
    if isinstance(expected, bool) or isinstance(found, bool):
        return found is expected
    if isinstance(expected, int | float):
        try:
            return math.isclose(float(found), float(expected), rel_tol=1e-12)
        except (TypeError, ValueError, OverflowError):
            return False
    return bool(found == expected)

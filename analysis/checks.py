"""The checks of a comparison (protocol section 9): did the runs do what the protocol says?

A check is one line, ``PASS name: detail`` or ``FAIL name: detail``. What a source cannot show is
a :class:`Check` with ``ok`` None, printed as ``NOT CHECKED`` and never counted as passed.

A check fails for one of two reasons. The run is not as the protocol has it: another size, arm or
code, or a file that a run of this project must have is missing. Or the data cannot be right:
they contradict the task (a return outside 1..500) or one another. Then no rule is applied.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.data import SeedData, SideData
from analysis.formats import some
from shared.errors import printable, shown
from shared.protocol import MAX_EPISODE_STEPS, SIDE_KEY, checkpoints, updates
from shared.records.launch_info import Revision
from shared.records.rows import Checkpoint, Evaluation

#: Relative tolerance between two means of the same numbers, of which one may be of 32 bits.
_FLOAT32 = 1e-6
#: So many evaluations below the end of the scale are not equal by chance.
_TELLING = 4


@dataclass(frozen=True)
class Check:
    """One check; ``ok`` is ``None`` where the source does not hold what it needs."""

    name: str
    ok: bool | None
    detail: str
    #: Of a failed check: the data cannot be right. Else the run is not as the protocol has it.
    impossible: bool = False

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "NOT CHECKED"}[self.ok]
        return printable(f"{word} {self.name}: {self.detail}")


def failed_checks(checks: Sequence[Check]) -> list[Check]:
    """Those that failed, first the ones that say that the data cannot be right."""
    return sorted(
        (each for each in checks if each.ok is False), key=lambda each: not each.impossible
    )


@dataclass(frozen=True)
class Sizes:
    """What the runs of one comparison must have: the protocol's values, or a smoke run's own."""

    seeds: tuple[int, ...]
    rows: int
    every: int
    episodes: int
    tiny: bool
    #: False where a run says nothing of its sizes, and these are the round's.
    recorded: bool = field(default=True, compare=False)

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
    #: Where the user named it, if not by an option.
    named_by: str | None = None


def outcome(name: str, faults: Sequence[str], good: str, impossible: Sequence[str] = ()) -> Check:
    """PASS with ``good``, or FAIL with the first fault and the number of the others.

    Of both kinds, ``impossible`` are the faults that data cannot have; they come first.
    """
    found = [*impossible, *faults]
    if not found:
        return Check(name, True, good)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Check(name, False, f"{found[0]}{more}", bool(impossible))


def absent(name: str, detail: str, *, own: bool) -> Check:
    """A check that lacks what it needs: failed in an ``own`` run of this project, which has it."""
    return Check(name, False if own else None, detail)


def exit_check(name: str, code: int | None, *, own: bool) -> Check:
    """The exit code of one process."""
    if code is None:
        return absent(f"{name} exit code", "no DONE file", own=own)
    return Check(f"{name} exit code", code == 0, str(code))


def record_checks(side: SideData, sizes: Sizes, *, own: bool) -> Iterator[Check]:
    """Checks of evaluations and records, the same for both sides; ``own`` as in :func:`absent`."""
    key = SIDE_KEY[side.side]
    for each in side.seeds:
        name = f"{key} s{each.seed}"
        yield _evaluation_sizes(name, side, each, sizes, own=own)
        yield _rows(f"{name} evaluations", [row.rows for row in each.evaluations], sizes)
        if each.records is not None:
            yield _rows(f"{name} records", [row.rows for row in each.records], sizes)
            yield _agree(name, each)
            yield _windows(name, each)
        if not side.published:
            if each.records is None:
                yield absent(f"{name} records", "records.jsonl is missing", own=own)
            yield _updates(name, each, own=own)


def twin_checks(sides: Iterable[SideData]) -> Iterator[Check]:
    """Two seeds with the same evaluations are one run under two names; a line for each pair.

    Evaluations at the end of the scale say nothing: any two policies that never fall have them.
    """
    seen: dict[tuple[tuple[int, float], ...], str] = {}
    for side in sides:
        for seed in side.seeds:
            curve = tuple(
                (row.rows, row.mean) for row in seed.evaluations if row.mean < MAX_EPISODE_STEPS
            )
            name = f"{SIDE_KEY[side.side]} s{seed.seed}"
            if len(curve) >= _TELLING and (first := seen.setdefault(curve, name)) != name:
                detail = f"the same as those of {first} at {len(curve)} checkpoints"
                yield Check(f"{name} evaluations", False, detail, impossible=True)


def _evaluation_sizes(
    name: str, side: SideData, seed: SeedData, sizes: Sizes, *, own: bool
) -> Check:
    name = f"{name} evaluation sizes"
    listed = [row for row in seed.evaluations if row.returns is not None]
    faults = [
        f"row {row.rows}: {len(row.returns or ())} episodes of {sizes.episodes}"
        for row in listed
        if len(row.returns or ()) != sizes.episodes
    ]
    impossible = [
        f"row {row.rows}: {fault}" for row in seed.evaluations for fault in _evaluation_faults(row)
    ]
    if not listed and not impossible and side.side == "reference":
        return absent(name, "no returns are recorded", own=own)
    good = f"{sizes.episodes} episodes each" if listed else "means in range (Ajax logs the mean)"
    return outcome(name, faults, good, impossible)


def _evaluation_faults(row: Evaluation) -> Iterator[str]:
    """What no evaluation of CartPole can be: each step is worth 1, and an episode ends at 500."""
    returns, limits = row.returns, f"1..{MAX_EPISODE_STEPS}"
    if returns:
        if not all(1 <= each <= MAX_EPISODE_STEPS for each in returns):
            yield f"a return outside {limits}"
        if row.lengths is not None and row.lengths != returns:
            yield "a return is not its length"
        if not math.isclose(row.mean, math.fsum(returns) / len(returns), rel_tol=_FLOAT32):
            yield f"mean {row.mean:g} is not that of its returns"
    if not 1 <= row.mean <= MAX_EPISODE_STEPS:
        yield f"mean {row.mean:.10g} outside {limits}"
    if row.len_mean is not None and not math.isclose(row.mean, row.len_mean, rel_tol=_FLOAT32):
        yield f"mean return {row.mean:g} is not the mean length {row.len_mean:g}"


def _rows(name: str, rows: Sequence[int], sizes: Sizes) -> Check:
    expected = sizes.checkpoints
    lacking, others = set(expected) - set(rows), set(rows) - set(expected)
    faults: list[str] = []
    if lacking or others:
        there = len(expected) - len(lacking)
        fault = f"{there} of {len(expected)} checkpoints, the last at row {max(rows, default=0)}"
        fault += f"; missing: {some(lacking)}" if lacking else ""
        faults.append(fault + (f"; besides: {some(others)}" if others else ""))
    return outcome(name, faults, f"{len(expected)}, every {sizes.every} to {sizes.rows}")


def _updates(name: str, seed: SeedData, *, own: bool) -> Check:
    """Updates never fall, and are the same in both files.

    A run of this project follows the protocol's schedule; another has its own, or did not count.
    """
    both: tuple[Sequence[Checkpoint], ...] = (seed.evaluations, seed.records or ())
    counted = [rows for rows in both if own or any(row.updates for row in rows)]
    if not counted:
        return Check(f"{name} updates", None, "none are counted")
    logged = {row.rows: row.updates for row in counted[0]}
    impossible = [
        f"{row.updates} at row {row.rows} in records.jsonl, {logged[row.rows]} in evals.jsonl"
        for row in counted[-1]
        if logged.get(row.rows, row.updates) != row.updates
    ]
    faults: list[str] = []
    for rows in counted:
        before = 0
        for row in rows:
            fault = f"{row.updates} at row {row.rows}"
            if row.updates < before:
                impossible.append(f"{fault}, after {before}")
            if row.updates != updates(row.rows):
                (impossible if own else faults).append(f"{fault}, expected {updates(row.rows)}")
            before = row.updates
    last = counted[0][-1] if counted[0] else None
    good = f"{last.updates} at row {last.rows}" if last else "none"
    return outcome(f"{name} updates", faults, good, impossible)


def _agree(name: str, seed: SeedData) -> Check:
    """``evals.jsonl`` and ``records.jsonl`` must tell of the same evaluations."""
    means = {row.rows: row.mean for row in seed.evaluations}
    impossible = [
        f"row {row.rows}: {row.eval_mean:g} in records.jsonl, {means[row.rows]:g} in evals.jsonl"
        for row in seed.records or ()
        if row.rows in means and row.eval_mean != means[row.rows]
    ]
    return outcome(f"{name} evaluations in both files", (), "equal", impossible)


def _windows(name: str, seed: SeedData) -> Check:
    faults: list[str] = []
    impossible: list[str] = []
    previous = 0
    for row in seed.records or ():
        trained, previous = row.updates > previous, row.updates
        bad = [m for m, value in row.train.items() if value is None or not math.isfinite(value)]
        if trained and (bad or not row.train):
            faults.append(
                f"row {row.rows}: {bad[0] if bad else 'no metric'} is not a finite number"
            )
        # A NaN stands for none in the published records.
        s2 = math.nan if row.s2_logged is None else row.s2_logged
        if s2 < 1 or s2 > MAX_EPISODE_STEPS:
            impossible.append(f"row {row.rows}: S2 {s2:g} outside 1..{MAX_EPISODE_STEPS}")
    good = "finite in every window with updates"
    return outcome(f"{name} training metrics", faults, good, impossible)


def identity(
    name: str, revision: Revision | None, expected: str, *, recorded: bool, own: bool
) -> Check:
    """The commit that ran, ``recorded`` by the process itself or else at launch."""
    if revision is None or revision.commit is None:
        return absent(name, "no revision is recorded", own=own)
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

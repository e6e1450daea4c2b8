"""Checks that only the reference's files allow: configuration, episodes, the end of the run."""

from collections import defaultdict
from collections.abc import Iterator

from analysis.checks import (
    Check,
    Sizes,
    absent,
    compare_values,
    exit_check,
    identity,
    outcome,
)
from analysis.checks_files import files_check
from analysis.data import SeedData
from analysis.evidence import Evidence, ReferenceProcess
from shared.configuration import reference_resolved
from shared.protocol import MAX_EPISODE_STEPS, N_ENVS, REFERENCE_COMMIT, updates
from shared.provenance.roots import ELSEWHERE, REFERENCE_ROOT
from shared.records.launch_info import Revision
from shared.records.rows import Episode, check_episode


def reference_checks(evidence: Evidence, sizes: Sizes) -> Iterator[Check]:
    """All checks of the reference side of a run directory."""
    for process, seed in zip(evidence.reference, evidence.side.seeds, strict=True):
        name, own = f"ref s{process.seed}", evidence.own
        yield exit_check(name, process.exit_code, own=own)
        yield files_check(name, process, evidence.side.arm)
        yield _config(name, process, sizes, own=own)
        yield _arguments(name, process, sizes, own=own)
        yield _identity(name, process, evidence.revision, own=own)
        yield _episodes(name, seed, sizes, own=own)
        yield _finished(name, seed, process, sizes, own=own)


def _config(name: str, process: ReferenceProcess, sizes: Sizes, *, own: bool) -> Check:
    if process.config is None:
        return absent(f"{name} configuration", "config.yaml is missing", own=own)
    expected = reference_resolved(
        seed=process.seed, rows=sizes.rows, logdir=f"<out>/ref_s{process.seed}", tiny=sizes.tiny
    )
    # Published records name their output directory under another root.
    logdir = str(expected.pop("logdir")).removeprefix("<out>")
    faults = compare_values(process.config, expected)
    found = str(process.config.get("logdir", ""))
    if not (found.startswith("<") and found.endswith(logdir)) or found.startswith(ELSEWHERE):
        faults.append(f"logdir is {process.config.get('logdir')!r}")
    return outcome(f"{name} configuration", faults, f"{len(expected) + 1} resolved values")


def _arguments(name: str, process: ReferenceProcess, sizes: Sizes, *, own: bool) -> Check:
    if process.arguments is None:
        return absent(f"{name} arguments", "run_args.json is missing", own=own)
    expected = {
        "seed": process.seed,
        "rows": sizes.rows,
        "eval_every": sizes.every,
        "eval_episodes": sizes.episodes,
        "tiny": sizes.tiny,
    }
    faults = compare_values(process.arguments, expected)
    faults += [
        f"{key} is {process.arguments.get(key)!r}, not below <{REFERENCE_ROOT}>"
        for key in ("agent_file", "embodied_file")
        if not str(process.arguments.get(key, "")).startswith(f"<{REFERENCE_ROOT}>/")
    ]
    return outcome(f"{name} arguments", faults, "as the round's; code below the checkout")


def _identity(
    name: str, process: ReferenceProcess, launched: Revision | None, *, own: bool
) -> Check:
    arguments = process.arguments or {}
    commit = arguments.get("reference_commit")
    revision = Revision(commit, arguments.get("reference_dirty")) if commit else launched
    name = f"{name} identity"
    return identity(name, revision, REFERENCE_COMMIT, recorded=bool(commit), own=own)


def _episodes(name: str, seed: SeedData, sizes: Sizes, *, own: bool) -> Check:
    if seed.episodes is None:
        return absent(f"{name} episodes", "episodes.jsonl is missing", own=own)
    impossible, faults = episode_faults(seed.episodes, sizes.rows)
    good = f"{len(seed.episodes)}, tiling every worker"
    return outcome(f"{name} episodes", faults, good, impossible)


def _finished(
    name: str, seed: SeedData, process: ReferenceProcess, sizes: Sizes, *, own: bool
) -> Check:
    if process.timing is None and not own:
        return absent(f"{name} finished", "timing.json is missing", own=own)
    timing, impossible = process.timing or {}, []
    faults = [f"{key} is missing" for key in ("flush_episodes", "t_end") if key not in timing]
    done = seed.evaluations[-1].updates if seed.evaluations else 0
    if done != updates(sizes.rows):
        faults.append(f"{done} of {updates(sizes.rows)} updates")
    flushed = timing.get("flush_episodes")
    if seed.episodes is not None and flushed is not None and sizes.recorded:
        # The flush steps each environment once more: onto the row of index rows / 16.
        ended = sum(episode.row_last == sizes.rows // N_ENVS for episode in seed.episodes)
        if ended != flushed:
            fault = f"{ended} episodes end on the flushed row, timing.json says {flushed}"
            impossible.append(fault)
    return outcome(f"{name} finished", faults, f"flush recorded {flushed} episodes", impossible)


def episode_faults(episodes: tuple[Episode, ...], rows: int) -> tuple[list[str], list[str]]:
    """What one seed's training episodes cannot be, and what a run of ``rows`` would not have.

    Per worker they tile its rows from 0 on, whatever the run's length.
    """
    impossible, faults = [], []
    by_worker: defaultdict[int, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by_worker[episode.worker].append(episode)
        if fault := check_episode(episode):
            impossible.append(f"worker {episode.worker}, row {episode.row_last}: {fault}")
    for worker in range(N_ENVS):
        first_row = 0
        for episode in sorted(by_worker[worker], key=lambda each: each.row_last):
            # An episode of L steps has L + 1 rows: its reset row counts (protocol section 4).
            if episode.row_last != first_row + episode.length:
                span = f"rows {first_row}..{episode.row_last}"
                impossible.append(f"worker {worker}: {span} do not tile")
                break
            first_row = episode.row_last + 1
        else:
            # The flush may finish an episode on the row after the run's last (section 5).
            left = rows // N_ENVS + 1 - first_row
            if left < 0:
                faults.append(f"worker {worker}: {first_row} rows of {rows // N_ENVS}")
            if left > MAX_EPISODE_STEPS:
                faults.append(f"worker {worker}: its last {left} rows hold no finished episode")
    unknown = sorted(set(by_worker) - set(range(N_ENVS)))
    impossible += [f"worker {worker} is not one of {N_ENVS}" for worker in unknown]
    return impossible, faults

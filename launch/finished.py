"""When has a process finished? It ended with 0, and every file that it is to leave is there."""

from collections.abc import Sequence
from pathlib import Path

from shared.errors import UserError
from shared.protocol import Round, Side
from shared.records import layout
from shared.records.files import exists, read_exit_code
from shared.records.layout import RunLayout

_PER_SEED = (layout.EVALUATIONS, layout.RECORDS)
_REFERENCE_FILES = (
    *(layout.REFERENCE_CONFIG, layout.REFERENCE_ARGUMENTS, layout.TIMING, layout.PROGRESS),
    *_PER_SEED,
    layout.EPISODES,
)
_AJAX_FILES = (layout.AJAX_CONFIG, layout.TIMING, layout.PROGRESS, layout.AJAX_FINAL)


def process_seeds(chosen: Round, side: Side) -> dict[str, tuple[int, ...]]:
    """Name -> seeds of each process of ``side``: of the reference one per seed, of Ajax one."""
    if side == "reference":
        return {layout.reference_name(seed): (seed,) for seed in chosen.seeds}
    return {layout.AJAX_NAME: chosen.seeds}


def expected_files(
    chosen: Round, side: Side, seeds: Sequence[int], run: RunLayout
) -> tuple[Path, ...]:
    """The files that the process of ``side`` with these seeds is to leave (protocol section 7)."""
    patch = [layout.PATCH] if chosen.arm(side).patched else []
    if side == "reference":
        return tuple(
            run.reference_dir(seed) / name for seed in seeds for name in (*_REFERENCE_FILES, *patch)
        )
    per_seed = (run.ajax_seed_dir(seed) / name for seed in seeds for name in _PER_SEED)
    return (*(run.ajax_dir / name for name in (*_AJAX_FILES, *patch)), *per_seed)


def read_done(name: str, run: RunLayout) -> int | None:
    """The exit code on record; ``None`` without one, and where the file is damaged.

    A launcher runs again whatever has not surely finished, and moves aside what is there.
    """
    try:
        return read_exit_code(run.done(name))
    except UserError:
        return None


def missing_files(files: Sequence[Path], root: Path) -> tuple[str, ...]:
    """Those of ``files`` that are not there, relative to ``root``.

    Published records are packed, and lack the lines of progress: nothing is computed from these.
    """
    needed = (path for path in files if path.name != layout.PROGRESS)
    return tuple(path.relative_to(root).as_posix() for path in needed if not exists(path))


def has_finished(name: str, files: Sequence[Path], run: RunLayout) -> bool:
    """Whether the process ``name`` ended with 0 and has left its ``files``."""
    return read_done(name, run) == 0 and not missing_files(files, run.root)


def has_finished_side(chosen: Round, side: Side, run: RunLayout) -> bool:
    """Whether every process of ``side`` has finished."""
    return all(
        has_finished(name, expected_files(chosen, side, seeds, run), run)
        for name, seeds in process_seeds(chosen, side).items()
    )

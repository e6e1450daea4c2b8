"""Reads one side of a run directory (protocol section 7) as far as its files allow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from analysis.data import Missing, SeedData, SideData
from shared.errors import RecordError, UserError, printable, shown
from shared.protocol import ROUNDS, SERIES, SIDE_LABEL, Side
from shared.provenance.roots import REPO, Roots
from shared.records.files import exists, find, read_json_object, require_inside
from shared.records.launch_info import Launch, read_launches
from shared.records.layout import (
    AJAX_CONFIG,
    EPISODES,
    EVALUATIONS,
    PATCH,
    RECORDS,
    REFERENCE_ARGUMENTS,
    RunLayout,
)
from shared.records.rows import (
    Checkpoint,
    Episode,
    Evaluation,
    Place,
    Record,
    read_checkpoints,
    read_rows,
)

C = TypeVar("C", bound=Checkpoint)

#: File -> what cannot be computed without it.
_USES: dict[Side, dict[str, str]] = {
    "reference": {
        RECORDS: "training-metric windows, entropy overlap",
        EPISODES: "S2 of the reference",
    },
    "ajax": {RECORDS: "training-metric windows, entropy overlap, S2 of Ajax"},
}


#: Arm of a run that recorded no name for it, but a patch.
PATCHED = "patched (PATCH.txt)"
_SECTIONS = ("run", "constructor", "dreamer_config", "agent_config", "schedule")
_NAMES = ("arm", "round", "reference_commit", "ajax_commit")
#: Key of a document, or of its ``run`` -> what it holds where it is there, and that in words.
_KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(_SECTIONS, (dict, "an object")),
    **dict.fromkeys(_NAMES, (str | None, "text")),
    "ajax_distribution": (dict | None, "an object"),
    "seeds": (list, "a list"),
}


def require_run(root: Path) -> None:
    """Raise :class:`UserError` unless ``root`` is a directory that holds seeds of either side.

    So it does where a link leads a file that is read out of the directory.
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such directory; name the output directory of a round")
    require_inside(root, RunLayout(root).read_files())
    if not _holds_seeds(root):
        for name, parts in SERIES.items():
            there = [part for each in parts if _holds_seeds(root / (part := ROUNDS[each].part))]
            if there:
                raise UserError(
                    f"{root}: not the directory of one run, but of parts of round {name} "
                    f"({', '.join(f'{part}/' for part in there)}); compare them with --round "
                    f"{name}, or name one of them"
                )
        raise UserError(
            f"{root}: not the directory of a run (no ref_s<S>/ and no ajax/s<S>/ in it); "
            "name the output directory of a round, or 'published'"
        )


def _holds_seeds(root: Path) -> bool:
    layout = RunLayout(root)
    return bool(layout.seeds("reference") or layout.seeds("ajax"))


def launches(root: Path) -> tuple[Launch, ...]:
    """The starts recorded in ``launch_info.txt``; none where there is no such file."""
    path = RunLayout(root).launch_info
    return read_launches(path) if path.exists() else ()


def round_launch(root: Path) -> Launch | None:
    """The last start in ``root`` that says which of the rounds it was."""
    found = [each for each in launches(root) if each.fields.get("round") in ROUNDS]
    return found[-1] if found else None


def seeds_with_evaluations(root: Path, side: Side) -> tuple[int, ...]:
    """The seeds of ``side`` in ``root`` that have an evaluation, ascending."""
    layout = RunLayout(root)
    # A process that ended before its first evaluation left a file without lines, or none.
    return tuple(
        seed
        for seed in layout.seeds(side)
        if (path := find(layout.seed_dir(side, seed) / EVALUATIONS))
        # What is no file is not empty: it is refused when it is read.
        and (not path.is_file() or path.stat().st_size)
    )


def load_side(root: Path, side: Side, seeds: Sequence[int]) -> SideData:
    """One side of the run in ``root``, with ``seeds``, at whatever checkpoints it has.

    A side without any evaluation comes back without seeds. Raises :class:`UserError` where a
    single seed is missing, :class:`RecordError` where a file is damaged.
    """
    layout = RunLayout(root)
    present = seeds_with_evaluations(root, side)
    if not present:
        lost = "everything that compares the sides"
        return SideData(side, source_of(root), (), missing=(Missing(f"the {side} side", lost),))
    for seed in seeds:
        if seed not in present:
            raise UserError(
                f"{layout.seed_dir(side, seed) / EVALUATIONS}: {SIDE_LABEL[side]} seed {seed} has "
                f"no evaluation; rerun that process, or name the seeds to compare: --seeds "
                f"{' '.join(map(str, present))}"
            )
    loaded = tuple(_load_seed(layout, place(layout, side, seed)) for seed in seeds)
    return SideData(
        side,
        source_of(root),
        loaded,
        arm=_arm(layout, side, seeds),
        missing=_missing(layout, side, seeds),
    )


def read_object(path: Path) -> dict[str, Any] | None:
    """A document of a process, its values of the kinds that are read; ``None`` without the file."""
    if not exists(path):
        return None
    document = read_json_object(path)
    run = document.get("run")
    for found in (document, run if isinstance(run, dict) else {}):
        for key, (kind, words) in _KINDS.items():
            if key in found and not isinstance(found[key], kind):
                raise RecordError(
                    f"{path}: {key!r} is {shown(found[key])}, not {words}, as expected; restore "
                    "the file"
                )
    return document


def recorded_arguments(
    layout: RunLayout, side: Side, seed: int | None = None
) -> tuple[Path, Mapping[str, Any]]:
    """The file in which a process of ``side`` recorded its arguments, and these; empty without.

    Of the reference's processes, that of ``seed``, by default the first.
    """
    if side == "ajax":
        path = layout.ajax_dir / AJAX_CONFIG
        return path, (read_object(path) or {}).get("run", {})
    seeds = layout.seeds("reference")
    first = seeds[0] if seeds else 0
    path = layout.reference_dir(first if seed is None else seed) / REFERENCE_ARGUMENTS
    return path, read_object(path) or {}


def source_of(root: Path) -> str:
    """The location of a run as tables record it: never an absolute path."""
    return Roots(repo=REPO).record(root)


def place(layout: RunLayout, side: Side, seed: int) -> Place:
    """Whose the rows of one seed's directory must be, as far as its run has recorded it."""
    _, recorded = recorded_arguments(layout, side, seed)
    found = {key: recorded[key] for key in ("arm", "round") if recorded.get(key)}
    for launch in reversed(launches(layout.root)):
        if side in launch.sides:
            for key, field in (("arm", f"{side} arm"), ("round", "round")):
                if launch.fields.get(field):
                    found.setdefault(key, launch.fields[field])
    return Place(side, seed, **found)


def _load_seed(layout: RunLayout, owner: Place) -> SeedData:
    directory = layout.seed_dir(owner.side, owner.seed)

    def checkpoints(name: str, kind: type[C]) -> tuple[C, ...] | None:
        # The file that is there, packed or not: it is the one that a message has to name.
        path = find(directory / name)
        if path is None:
            return None
        return tuple(read_checkpoints(path, kind, owner))

    episodes = find(directory / EPISODES) if owner.side == "reference" else None
    return SeedData(
        owner.seed,
        checkpoints(EVALUATIONS, Evaluation) or (),
        records=checkpoints(RECORDS, Record),
        episodes=None if episodes is None else tuple(read_rows(episodes, Episode, owner)),
    )


def _arm(layout: RunLayout, side: Side, seeds: Sequence[int]) -> str | None:
    """The arm that ran: what its processes recorded, else the launch, else whether patched.

    Seeds that ran different arms give all of them, which is no arm; ``None`` where one's is not on
    record.
    """
    found = {_recorded_arm(layout, side, seed) for seed in seeds}
    known = sorted(each for each in found if each is not None)
    if len(known) > 1:
        return f"mixed ({', '.join(known)})"
    return None if None in found else known[0]


def _recorded_arm(layout: RunLayout, side: Side, seed: int) -> str | None:
    if arm := place(layout, side, seed).arm:
        return arm
    directory = layout.ajax_dir if side == "ajax" else layout.reference_dir(seed)
    if (directory / PATCH).exists():
        return PATCHED
    # The published rounds recorded how they ran, and a patch where there was one.
    known = recorded_arguments(layout, side, seed)[1] or launches(layout.root)
    return "stock" if known else None


def _missing(layout: RunLayout, side: Side, seeds: Sequence[int]) -> tuple[Missing, ...]:
    found = []
    for name, lost in _USES[side].items():
        for seed in seeds:
            directory = layout.seed_dir(side, seed)
            if not exists(directory / name):
                where = directory.relative_to(layout.root).as_posix()
                found.append(Missing(f"{where}/{name}", f"{lost} (seed {seed})"))
    for seed in sorted(set(layout.seeds(side)) - set(seeds_with_evaluations(layout.root, side))):
        where = (layout.seed_dir(side, seed) / EVALUATIONS).relative_to(layout.root).as_posix()
        found.append(Missing(f"an evaluation in {where}", f"{SIDE_LABEL[side]} seed {seed}"))
    for name in layout.strangers(side):
        lost = f"what {printable(name)} holds"
        found.append(Missing("a directory that bears a seed's number", lost))
    return tuple(found)

"""Which directories of a results tree can be recomputed, and from what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analysis.checked import check
from analysis.checks import ExpectedAjax
from analysis.load import round_launch
from analysis.outputs import file_names
from analysis.report import check_lines
from analysis.requests import PART_PLACE, require_round
from analysis.series import awaited, waiting_line
from analysis.sources import Request, Source
from analysis.study import Study, study
from analysis.together import READING_JSON
from shared.errors import printable
from shared.protocol import AJAX_PUBLISHED_COMMIT, PAIRINGS, ROUNDS, SERIES, SIDES, Round, Side
from shared.records.files import read_json_object, require_inside
from shared.records.layout import RunLayout


@dataclass(frozen=True)
class Target:
    """One directory with recorded tables, and the request that recomputes them."""

    name: str
    directory: Path
    request: Request = field(repr=False)


def find_targets(root: Path, *, own: bool) -> tuple[list[Target], list[str]]:
    """Every directory of the tree that can be recomputed, and a line on each that cannot.

    In this project's own tree, rounds without raw records are recomputed from the published
    figures. In a foreign tree nothing of a recorded summary can be recomputed without them.
    """
    tables = {file for each in ROUNDS.values() for file in file_names(each.number)}
    require_inside(root, (path for file in tables for path in root.rglob(file)))
    targets, lacking = [], []
    for pairing in PAIRINGS.values():
        directory = root / pairing.directory
        if not own and not (table := directory / file_names(pairing.round_number)[1]).exists():
            if directory.is_dir():
                lacking.append(_without(table))
            continue
        sources = {side: _source(root, number, own) for side, number in pairing.rounds.items()}
        found = {side: source for side, source in sources.items() if source is not None}
        if len(found) < len(SIDES):
            absent = sorted({pairing.rounds[side] for side in SIDES if side not in found})
            names = " and ".join(f"round{number}/" for number in absent)
            lacking.append(f"{directory}: needs the raw records (ref_s<S>/, ajax/s<S>/) of {names}")
            continue
        request = Request(
            str(pairing.round_number),
            found,
            ajax=ExpectedAjax(commit=AJAX_PUBLISHED_COMMIT),
            rounds=pairing.round_names,
        )
        targets.append(Target(pairing.directory, directory, request))
    parts, waiting = _part_targets(root, own)
    targets += parts
    others = _other_targets(root, {target.directory for target in targets} | set(waiting))
    return targets + others, [*lacking, *waiting.values()]


def _part_targets(root: Path, own: bool) -> tuple[list[Target], dict[Path, str]]:
    """The parts of series that lie where results have them; and of those that cannot be, why."""
    targets, waiting = [], {}
    for chosen in (ROUNDS[name] for parts in SERIES.values() for name in parts):
        directory = root / chosen.directory
        summary = directory / file_names(chosen.number)[1]
        if not _holds_run(directory):
            continue
        require_round(round_launch(directory), str(directory), chosen.name, PART_PLACE)
        if chosen.whole:  # read together with its siblings
            summary = directory.parent / READING_JSON
        # What has tables has been computed before; what has none waits for its series.
        missing = {} if summary.exists() and not chosen.whole else awaited([directory])
        if not missing and not own and not summary.exists():
            waiting[directory] = _without(summary)
            continue
        smoke = summary.exists() and bool(read_json_object(summary).get("smoke"))
        # A tree of this project's own says so wherever its clone lies.
        name = f"<repo>/results/{chosen.directory}" if own else None
        sources: dict[Side, Source] = dict.fromkeys(SIDES, Source(directory, name=name))
        rounds = dict.fromkeys(SIDES, chosen.name)
        request = Request(chosen.name, sources, smoke=smoke, rounds=rounds)
        if missing:
            waiting[directory] = _checks_alone(directory, request, missing)
        else:
            targets.append(Target(chosen.directory, directory, request))
    return targets, waiting


def _checks_alone(directory: Path, request: Request, missing: Mapping[Path, Round]) -> str:
    """Of a part whose series waits: the checks, if it has finished itself, and for what it waits.

    Nothing else of it is computed.
    """
    if ROUNDS[request.round_name] in missing.values():
        return f"{directory}: {waiting_line(missing)}"
    found = "; ".join(check_lines(check(request).checks))
    return f"{directory}: {found}; {waiting_line(missing)}"


def _without(table: Path) -> str:
    return f"{table.parent}: holds no {table.name} that could be held against its raw records"


def _holds_run(directory: Path) -> bool:
    return any(RunLayout(directory).seeds(side) for side in SIDES)


def _source(root: Path, number: int, own: bool) -> Source | None:
    directory = root / f"round{number}"
    if _holds_run(directory):
        return Source(directory=directory)
    return Source(published_round=number) if own else None


def _other_targets(root: Path, known: set[Path]) -> list[Target]:
    """Directories of runs anywhere below ``root`` that hold their own tables."""
    targets = []
    kinds = {file_names(each.number)[1]: each.name for each in reversed(ROUNDS.values())}
    for file, kind in kinds.items():
        for path in sorted(root.rglob(file)):
            directory = path.parent
            if directory in known or not _holds_run(directory):
                continue
            known.add(directory)
            launch, smoke = round_launch(directory), bool(read_json_object(path).get("smoke"))
            sources: dict[Side, Source] = {side: Source(directory=directory) for side in SIDES}
            if launch is None:
                request = Request(kind, sources, smoke=smoke)
            else:
                started = launch.fields["round"]
                rounds = dict.fromkeys(SIDES, started)
                request = Request(started, sources, smoke=smoke, rounds=rounds)
            name = printable(directory.relative_to(root).as_posix())
            targets.append(Target(name, directory, request))
    return targets


def study_target(target: Target) -> Study:
    """Recompute one target."""
    return study(target.request, recompute=True)

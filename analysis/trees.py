"""Which directories of a results tree can be recomputed, and from what."""

from dataclasses import dataclass, field
from pathlib import Path

from analysis.checks import ExpectedAjax
from analysis.outputs import file_names
from analysis.pairs import PAIRS
from analysis.study import Request, Source, Study, study
from shared.errors import UserError
from shared.files import read_json_object
from shared.layout import RunLayout
from shared.protocol import AJAX_PUBLISHED_COMMIT, ROUNDS, SIDES, Side

#: Directory of the published layout -> (kind of round, round that each side's runs are from).
PUBLISHED_LAYOUT: dict[str, tuple[int, dict[Side, int]]] = {
    "round1": (1, {"reference": 1, "ajax": 1}),
    **{f"round2/{name}": (2, rounds) for name, rounds in PAIRS.items()},
    "round3": (3, {"reference": 3, "ajax": 3}),
}


@dataclass(frozen=True)
class Target:
    """One directory with recorded tables, and the request that recomputes them."""

    name: str
    directory: Path
    request: Request = field(repr=False)


def find_targets(root: Path, *, own: bool) -> list[Target]:
    """Every directory of the tree that can be recomputed, in a stable order.

    In this project's own tree, rounds without raw records are recomputed from the published
    figures. In a foreign tree a recorded summary without raw records is an error: nothing of it
    could be recomputed, and saying so is the point.
    """
    targets = []
    for name, (kind, rounds) in PUBLISHED_LAYOUT.items():
        directory = root / name
        if not own and not (directory / file_names(kind)[1]).exists():
            continue
        sources = {side: _source(root, number, own=own) for side, number in rounds.items()}
        request = Request(kind, sources, ajax=ExpectedAjax(commit=AJAX_PUBLISHED_COMMIT))
        targets.append(Target(name, directory, request))
    return targets + _other_targets(root, {target.directory for target in targets})


def _source(root: Path, number: int, *, own: bool) -> Source:
    directory = root / f"round{number}"
    if any(RunLayout(directory).seeds(side) for side in SIDES):
        return Source(directory=directory)
    if own:
        return Source(published_round=number)
    raise UserError(
        f"{directory}: holds no raw records (ref_s<S>/, ajax/s<S>/), so that nothing recorded "
        "there can be recomputed; add them, or compare with 'nox -s compare'"
    )


def _other_targets(root: Path, known: set[Path]) -> list[Target]:
    """Directories of runs anywhere below ``root`` that hold their own tables."""
    targets = []
    for kind in ROUNDS:
        for path in sorted(root.rglob(file_names(kind)[1])):
            directory = path.parent
            if directory in known or not any(RunLayout(directory).seeds(side) for side in SIDES):
                continue
            known.add(directory)
            recorded = read_json_object(path)
            sources: dict[Side, Source] = {side: Source(directory=directory) for side in SIDES}
            request = Request(kind, sources, smoke=bool(recorded.get("smoke")))
            name = directory.relative_to(root).as_posix()
            targets.append(Target(name, directory, request))
    return targets


def study_target(target: Target) -> Study:
    """Recompute one target."""
    return study(target.request)

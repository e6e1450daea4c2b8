"""Which tables a comparison may replace: its own of before, and no other's."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analysis.canvas import Data
from analysis.documents import FIGURE_NUMBERS
from analysis.manifest import NAME as MANIFEST
from analysis.outputs import file_names
from analysis.study import Study
from analysis.together import READING, READING_JSON
from shared.errors import UserError
from shared.protocol import ROUNDS
from shared.provenance.roots import REPO
from shared.records.files import read_json_object

#: The files of a comparison, of any round, and of a reading.
_TABLES = {name for each in ROUNDS.values() for name in file_names(each.number)} | {
    FIGURE_NUMBERS,
    READING,
    READING_JSON,
}
_ELSEWHERE = "give --out with another directory"


def require_replaceable(directory: Path, result: Study, curves: Data) -> None:
    """Raise :class:`UserError` where the tables of ``result`` would replace those of another.

    ``curves`` are the numbers of its curves. Tables in ``directory`` are its own where these have
    the same title and the same evaluations as far as both have them: a run that goes on has more.
    In its own directory a run may also replace what it had before it was trained again.
    """
    place = directory.resolve()
    there = sorted(name for name in _TABLES if (place / name).exists())
    if there and _same(place, curves):
        return
    if tree := _study_tree(place):
        raise UserError(f"{directory}: lies in the results of a study ({tree}); {_ELSEWHERE}")
    at_home = {source and source.resolve() for source in result.directories} == {place}
    if there and not (at_home and _written_here(place)):
        raise UserError(
            f"{directory}: holds tables of another comparison ({there[0]}); {_ELSEWHERE}, or "
            "remove them"
        )


def require_reading_replaceable(
    directory: Path, parts: Mapping[str, Path], studies: Iterable[Study]
) -> None:
    """The same of a reading, whose parts have been looked at: it is theirs, or there is none.

    Where the parts have no tables, it is theirs if they lie in ``directory``.
    """
    read = {path for each in studies for path in each.directories if path}
    lacking = [path for path in parts.values() if not (path / FIGURE_NUMBERS).exists()]
    if not parts:
        lacking = [path for path in read if path.resolve().parent != directory.resolve()]
    if (directory / READING_JSON).exists() and lacking:
        raise UserError(
            f"{directory}: holds the reading of other comparisons ({READING_JSON}); {_ELSEWHERE}, "
            "or remove it"
        )


def _study_tree(place: Path) -> Path | None:
    trees = (place, *place.parents)
    kept = (each for each in trees if each == REPO / "results" or (each / MANIFEST).exists())
    return next(kept, None)


def _recorded(place: Path, names: set[str]) -> list[dict[str, Any]]:
    return [read_json_object(place / name) for name in sorted(names) if (place / name).exists()]


def _written_here(place: Path) -> bool:
    """Whether this project wrote the tables: the published ones do not name their sources."""
    names = {name for name in _TABLES - {FIGURE_NUMBERS, READING_JSON} if name.endswith(".json")}
    return all("sources" in each for each in _recorded(place, names))


def _same(place: Path, curves: Data) -> bool:
    for figures in _recorded(place, {FIGURE_NUMBERS}):
        old = figures.get("curves")
        if not isinstance(old, dict):
            return False
        try:
            return _titles_agree(old["title"], curves["title"]) and all(
                _agree(old["sides"].get(side, {}), curves["sides"].get(side, {}))
                for side in {*old["sides"], *curves["sides"]}
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
    return False


def _titles_agree(old: str, new: str) -> bool:
    # A title begins otherwise while the data cannot be right.
    return new.endswith(str(old)) or str(old).endswith(new)


def _agree(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether ``new`` has every seed of ``old``, and the evaluations of both are equal."""
    if set(old) - set(new):
        return False
    pairs = [
        (before[rows], mean)
        for seed in old
        for before in [dict(map(tuple, old[seed]))]
        for rows, mean in new[seed]
        if rows in before
    ]
    return bool(pairs) and all(before == mean for before, mean in pairs)

"""Readings of several comparisons together, as a table: rounds 2, 4 and 5."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analysis import (
    pairs,
    round4,
    round4_figures,
    round4_rows,
    round4_tables,
    round5,
    round5_figures,
    round5_tables,
)
from analysis.canvas import Data
from analysis.documents import Documents, documents
from analysis.formats import unread
from analysis.published_table import Row
from analysis.study import Study
from shared.protocol import PAIRINGS, READING2
from shared.records.files import dump_json

READING, READING_JSON = "reading.md", "reading.json"

#: Texts by file name, and the numbers of figures by their name.
Made = tuple[dict[str, str], dict[str, Data]]


@dataclass(frozen=True)
class Reading:
    """What is read from several comparisons, in documents of its own."""

    #: Where they lie below a tree of results.
    directory: str
    #: Name of a comparison in the reading -> its directory below the tree.
    parts: Mapping[str, str]
    make: Callable[[Mapping[str, Study]], Made]
    #: Lines about ``reading.json`` as recorded and as recomputed, where no publication has them.
    rows: Callable[[Mapping[str, Any], Mapping[str, Any]], Iterable[Row]] | None = None

    def documents(self, studies: Mapping[str, Study]) -> Documents:
        """``reading.md``, ``reading.json`` and figures, from the comparisons by their name."""
        return documents(*self.make(studies))


def line_of(made: Documents) -> str:
    """The line of ``reading.md`` that says how it is read."""
    return next(line for line in made.texts[READING].splitlines() if line.startswith("Reading: "))


def _of_pairs(studies: Mapping[str, Study]) -> Made:
    return pairs.reading_documents({name: each.comparison for name, each in studies.items()})


def _of_round4(studies: Mapping[str, Study]) -> Made:
    lacking = round4.smokes(studies)
    if lacking:
        nothing = dump_json({"format": round4.FORMAT, "reading": None, "reasons": lacking})
        return {READING: unread(round4_tables.HEAD, lacking), READING_JSON: nothing}, {}
    found = round4.read_round4(studies)
    texts = {READING: round4_tables.render(found), READING_JSON: dump_json(round4.as_json(found))}
    return texts, round4_figures.figure_data(found)


def _of_round5(studies: Mapping[str, Study]) -> Made:
    if lacking := round4.smokes(studies):
        nothing = dump_json({"format": round5.FORMAT, "reading": None, "reasons": lacking})
        return {READING: unread(round5_tables.HEAD, lacking), READING_JSON: nothing}, {}
    found = round5.read_round5({part: each.checked for part, each in studies.items()})
    texts = {READING: round5_tables.render(found), READING_JSON: dump_json(round5.as_json(found))}
    return texts, round5_figures.figure_data(found)


#: By the round that is read.
READINGS: dict[str, Reading] = {
    "2": Reading("round2", {name: PAIRINGS[name].directory for name in READING2}, _of_pairs),
    "4": Reading(
        "round4",
        {each.part: each.directory for each in round4.PARTS.values()},
        _of_round4,
        round4_rows.rows,
    ),
    "5": Reading(
        "round5",
        {part: each.directory for part, each in round5.BLOCKS.items()},
        _of_round5,
    ),
}

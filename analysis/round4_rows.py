"""What is recorded of round 4 beside what is recomputed: lines that ``nox -s reproduce`` prints."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from analysis.difference import ABSENT, json_differences
from analysis.formats import DASH, interval, number
from analysis.published_table import Row
from analysis.round4 import key
from analysis.round4_rules import CELLS, mean
from shared.protocol import SIDES

Json = Mapping[str, Any]


def rows(recorded: Json, recomputed: Json) -> Iterator[Row]:
    """Lines of both ``reading.json``; each says whether all of its numbers are equal."""
    for name in recomputed.get("statistics", {}):
        yield _row(name, recorded, recomputed, ("statistics", name), _statistic)
    for name in recomputed.get("not_pre_registered", {}).get("paired", {}):
        paired = ("not_pre_registered", "paired", name)
        yield _row(f"paired effect, {name}", recorded, recomputed, paired, _paired)
    for name in recomputed.get("controls", {}):
        yield _row(name, recorded, recomputed, ("controls", name), _control)
    if "not_pre_registered" in recomputed:
        for name, (place, show) in _DESCRIPTION.items():
            yield _row(name, recorded, recomputed, ("not_pre_registered", place), show)
    yield _row("reading", recorded, recomputed, ("reading",), _word)


def _row(
    name: str, recorded: Json, recomputed: Json, place: tuple[str, ...], show: Callable[[Any], str]
) -> Row:
    before, now = (_at(document, place) for document in (recorded, recomputed))
    same = before is not ABSENT and not list(json_differences(before, now))
    return Row(f"round4 {name}", _shown(before, show), _shown(now, show), same)


def _at(document: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        document = document.get(step, ABSENT) if isinstance(document, Mapping) else ABSENT
    return document


def _shown(value: Any, show: Callable[[Any], str]) -> str:
    """``value`` as text; a recorded document may have been edited into anything."""
    try:
        return show(value)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return DASH


def _statistic(entry: Json) -> str:
    means = (mean(list(entry["seeds"][key(cell)].values())) for cell in CELLS)
    return f"{' '.join(number(value, 4) for value in means)}: {entry['reading']}"


def _paired(entry: Json) -> str:
    """The pooled effect on the statistic's scale, with its interval."""
    pooled = entry["pooled"]
    return f"{pooled['value']:.4f} {interval((pooled['low'], pooled['high']), 4)}"


def _control(entry: Json) -> str:
    changes = " ".join(f"{entry['changes'][side]:+.2%}" for side in SIDES)
    return f"{changes}: {'holds' if entry['holds'] else 'does not hold'}"


def _last(arms: Json) -> str:
    return " ".join(
        number(mean([curve[-1] for curve in arms[key(cell)].values()])) for cell in CELLS
    )


def _word(reading: str | None) -> str:
    return "out of reach" if reading is None else str(reading)


def _windows(windows: Json) -> str:
    metrics = {name for arms in windows.values() for each in arms.values() for name in each}
    return f"{len(metrics)} metrics, {len(windows)} windows, {len(CELLS)} arms"


#: Line -> what of the description it is about, and how that is shown.
_DESCRIPTION: dict[str, tuple[str, Callable[[Any], str]]] = {
    "S2 at the last checkpoint": ("S2", _last),
    "evaluation at the last checkpoint": ("evaluations", _last),
    "window means": ("windows", _windows),
}

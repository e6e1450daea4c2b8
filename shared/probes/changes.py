"""Changed values of a side's configuration, given as text and checked against what is there."""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from shared.errors import UserError
from shared.protocol import SIDE_LABEL, Side

_TRUTH = {"true": True, "false": False}


def changed_values(
    side: Side, current: Mapping[str, Any], changes: Mapping[str, str]
) -> dict[str, Any]:
    """The new value of every changed key, of the type that ``current`` has there.

    Raises ``UserError`` for a key that ``current`` lacks, a value of another type, one that is
    there already, and a setting that is no single value.
    """
    return {key: _changed(side, current, key, text) for key, text in changes.items()}


def _changed(side: Side, current: Mapping[str, Any], key: str, text: str) -> Any:
    given = f"--change {side}.{key}={text}"
    if key not in current:
        near = get_close_matches(key, current, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"{given}: {SIDE_LABEL[side]}'s configuration has no {key}{hint}")
    before = current[key]
    if not isinstance(before, bool | int | float | str):
        raise UserError(f"{given}: {key} is no single value; change another setting")
    try:
        value = _TRUTH[text.lower()] if isinstance(before, bool) else type(before)(text)
    except (KeyError, ValueError):
        kind = type(before).__name__
        raise UserError(f"{given}: {key} is {before}, so give a value of type {kind}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{given}: give a finite number")
    if value == before:
        raise UserError(f"{given}: {key} is {before} already; give another value")
    return value


def check_sizes(
    side: Side, changes: Mapping[str, str], stock: Mapping[str, Any], changed: Mapping[str, Any]
) -> None:
    """Raise ``UserError`` where changes move the shape of a tensor; both by tensor name."""
    for name in sorted(stock.keys() | changed.keys()):
        before, after = stock.get(name), changed.get(name)
        if before != after:
            given = " ".join(f"--change {side}.{key}={text}" for key, text in changes.items())
            raise UserError(
                f"{given}: {name} would be {after} in place of {before}, and the recording has one "
                "size; change a setting that decides none"
            )

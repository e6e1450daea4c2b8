"""Changed values of a side's configuration, given as text and checked against what is there."""

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
    if value == before:
        raise UserError(f"{given}: {key} is {before} already; give another value")
    return value

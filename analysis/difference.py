"""Differences between recorded and recomputed documents."""

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Numbers are equal when they agree to this relative size: another processor's mathematical
#: functions may differ in the last digits of a p-value, and in nothing that means anything.
RELATIVE = 1e-12


@dataclass(frozen=True)
class Difference:
    """One value that differs; ``where`` is its dotted place in the JSON document."""

    where: str
    recorded: Any
    recomputed: Any


class Absent:
    """Stands for a value that one side does not have."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


def json_differences(
    recorded: Any, recomputed: Any, where: str = "", *, shared_only: bool = False
) -> Iterator[Difference]:
    """Values that differ between two JSON documents.

    With ``shared_only`` keys that only one of them has are passed over: another version of this
    project may record more.
    """
    if isinstance(recorded, Mapping) and isinstance(recomputed, Mapping):
        for key in [*recorded, *(key for key in recomputed if key not in recorded)]:
            if shared_only and not (key in recorded and key in recomputed):
                continue
            yield from json_differences(
                recorded.get(key, ABSENT),
                recomputed.get(key, ABSENT),
                f"{where}.{key}" if where else str(key),
                shared_only=shared_only,
            )
    elif isinstance(recorded, list) and isinstance(recomputed, list):
        for index in range(max(len(recorded), len(recomputed))):
            yield from json_differences(
                recorded[index] if index < len(recorded) else ABSENT,
                recomputed[index] if index < len(recomputed) else ABSENT,
                f"{where}[{index}]",
                shared_only=shared_only,
            )
    elif not equal(recorded, recomputed):
        yield Difference(where, recorded, recomputed)


def equal(recorded: Any, recomputed: Any) -> bool:
    """Equality of two JSON leaves; whole numbers, text and truth values exactly."""
    if isinstance(recorded, bool) or isinstance(recomputed, bool):
        return recorded is recomputed
    numbers = isinstance(recorded, int | float) and isinstance(recomputed, int | float)
    if numbers and float in (type(recorded), type(recomputed)):
        return math.isclose(recorded, recomputed, rel_tol=RELATIVE)
    return bool(recorded == recomputed)


def unified(recorded: str, recomputed: str, name: str) -> list[str]:
    """Unified diff of two texts, recorded first."""
    return list(
        difflib.unified_diff(
            recorded.splitlines(),
            recomputed.splitlines(),
            f"recorded/{name}",
            f"recomputed/{name}",
            lineterm="",
            n=1,
        )
    )

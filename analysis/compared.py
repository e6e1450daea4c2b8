"""Recomputed documents beside the recorded ones: what differs, and what no raw file gives."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.difference import ABSENT, Difference, json_differences, unified
from shared.errors import printable, shown
from shared.records.files import plain, read_json, read_json_object, read_text


@dataclass
class Compared:
    """Documents compared, lines that say what differs, and numbers that no raw file gives."""

    documents: int = 0
    differences: list[str] = field(default_factory=list)
    #: Names of the documents that differ.
    changed: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


def compare_documents(documents: Mapping[str, str], directory: Path, *, own: bool) -> Compared:
    """Compare recomputed documents with those in ``directory``.

    In this project's own results every document must be equal; in a foreign tree, whose tables
    look different, the numbers that both have.
    """
    result = Compared()
    for name, recomputed in documents.items():
        path = directory / name
        there = path.exists()
        if not own and not (there and path.suffix == ".json"):
            continue
        result.documents += there
        before = len(result.differences)
        if own:
            result.differences += _own_differences(recomputed, path)
        else:
            _compare_numbers(read_json_object(path), json.loads(recomputed), path, result)
        if len(result.differences) > before:
            result.changed.append(name)
    return result


def _own_differences(recomputed: str, path: Path) -> Iterator[str]:
    if not path.exists():
        yield f"{path}: is missing; restore it"
        return
    recorded = read_text(path)
    if path.suffix == ".json":
        found = list(json_differences(read_json(path), json.loads(recomputed)))
        yield from (_line(path, each) for each in found)
        if not found:
            return
    if recorded != recomputed:
        yield from unified(recorded, recomputed, str(path))


#: Sentences about the checks and the sources differ between trees by design.
_NOT_NUMBERS = ("checks", "checks_failed", "sources", "arms", "out_of_reach", "format", "reading")


def _line(path: Path, each: Difference) -> str:
    recorded, recomputed = shown(each.recorded), shown(each.recomputed)
    return printable(f"{path}: {each.where}: recorded {recorded}, recomputed {recomputed}")


def _compare_numbers(
    recorded: Mapping[str, Any], recomputed: Mapping[str, Any], path: Path, result: Compared
) -> None:
    """A foreign document: what the raw files do not give is named, and is no difference."""
    first, second = (
        plain({key: value for key, value in each.items() if key not in _NOT_NUMBERS})
        for each in (recorded, recomputed)
    )
    for each in json_differences(first, second, shared_only=True):
        place, _, index = each.where.partition("[")
        note = printable(f"{path.name}: {place}: its raw files do not give it")
        if note in result.lacking:
            continue  # another entry of the same list
        # A list that ends early is a difference: its raw files are there.
        empty = index == "0]" and each.recomputed is ABSENT
        if empty or (not index and each.recomputed is None):
            result.lacking.append(note)
        else:
            result.differences.append(_line(path, each))

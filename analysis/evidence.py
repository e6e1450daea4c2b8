"""What a run directory says of how its figures came about: the input of the checks.

Everything is read once and without judgement; a file that is not there is ``None``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from numpy.typing import NDArray

from analysis.data import SideData
from analysis.load import launches, read_object
from shared.configuration import flatten
from shared.errors import RecordError
from shared.protocol import Side
from shared.records.arrays import read_arrays
from shared.records.digests import Changes, changes
from shared.records.files import exists, read_exit_code, read_text
from shared.records.launch_info import FORMAT_KEY, Launch, Revision, side_revision
from shared.records.layout import (
    AJAX_CONFIG,
    AJAX_FINAL,
    AJAX_NAME,
    PATCH,
    REFERENCE_ARGUMENTS,
    REFERENCE_CONFIG,
    TIMING,
    RunLayout,
    reference_name,
)

#: Arrays of ``ajax_final.npz`` that the audit needs, each with a leading seed axis.
FINAL_KEYS = ("seeds", "rows", "updates", "return_sum", "return_count")
#: The reference's configuration has 5 kB, mappings three deep, and values of 60 characters.
MAX_YAML_BYTES, MAX_DEPTH, MAX_SCALAR = 2**18, 20, 1000


@dataclass(frozen=True)
class ReferenceProcess:
    """Files of one reference seed beside its records."""

    seed: int
    exit_code: int | None
    config: Mapping[str, Any] | None
    arguments: Mapping[str, Any] | None
    timing: Mapping[str, Any] | None
    files: Changes | None = None
    patched: bool = False


@dataclass(frozen=True)
class AjaxProcess:
    """Files of the Ajax process beside its records."""

    exit_code: int | None
    config: Mapping[str, Any] | None
    timing: Mapping[str, Any] | None
    #: Final arrays; ``None`` without the file, empty where its keys are not known.
    final: Mapping[str, NDArray[Any]] | None
    files: Changes | None = None
    patched: bool = False


@dataclass(frozen=True)
class Evidence:
    """All of one side: its processes, the starts of the round, and the revision they name."""

    side: SideData
    starts: tuple[Launch, ...]
    revision: Revision | None
    reference: tuple[ReferenceProcess, ...] = ()
    ajax: AjaxProcess | None = None

    @property
    def own(self) -> bool:
        """Whether this project's launcher started the side: then it must have left its files."""
        return started_here(self.starts, self.side.side)


def started_here(starts: Sequence[Launch], side: Side) -> bool:
    """Whether one of ``starts`` is this project's, and ran ``side``."""
    return any(FORMAT_KEY in each.fields and side in each.sides for each in starts)


def gather(root: Path, side: SideData) -> Evidence:
    """Evidence for ``side`` as loaded from ``root``. Raises :class:`RecordError`."""
    layout, starts = RunLayout(root), launches(root)
    revision = side_revision(starts, side.side)
    if side.side == "reference":
        processes = tuple(_reference(layout, seed) for seed in side.seed_numbers)
        return Evidence(side, starts, revision, reference=processes)
    ajax = _ajax(layout) if side.seeds else None
    return Evidence(side, starts, revision, ajax=ajax)


def _reference(layout: RunLayout, seed: int) -> ReferenceProcess:
    directory = layout.reference_dir(seed)
    return ReferenceProcess(
        seed,
        read_exit_code(layout.done(reference_name(seed))),
        _yaml(directory / REFERENCE_CONFIG),
        read_object(directory / REFERENCE_ARGUMENTS),
        read_object(directory / TIMING),
        changes(layout, reference_name(seed)),
        exists(directory / PATCH),
    )


def _ajax(layout: RunLayout) -> AjaxProcess:
    directory = layout.ajax_dir
    return AjaxProcess(
        read_exit_code(layout.done(AJAX_NAME)),
        read_object(directory / AJAX_CONFIG),
        read_object(directory / TIMING),
        _final(directory / AJAX_FINAL),
        changes(layout, AJAX_NAME),
        exists(directory / PATCH),
    )


class _Loader(yaml.SafeLoader):
    """YAML as a configuration needs it: no aliases, which multiply, and nothing deep or long."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if (
            isinstance(event, yaml.AliasEvent)
            or self._depth > MAX_DEPTH
            or len(getattr(event, "value", "")) > MAX_SCALAR
        ):
            raise yaml.MarkedYAMLError(problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _yaml(path: Path) -> dict[str, Any] | None:
    if not exists(path):
        return None
    text = read_text(path, MAX_YAML_BYTES)
    try:
        value = yaml.load(text, _Loader)
    # Beside its own errors PyYAML lets through Python's on a date or a number.
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise RecordError(f"{path}{line}: not valid YAML; restore the file") from None
    if not isinstance(value, dict):
        raise RecordError(f"{path}:1: expected a mapping; restore the file")
    return flatten(value)


def _final(path: Path) -> dict[str, NDArray[Any]] | None:
    if not exists(path):
        return None
    final = read_arrays(path, FINAL_KEYS)
    if len(final) < len(FINAL_KEYS):
        # The published rounds' keys are not known: what cannot be read is not guessed.
        return {}
    seeds, sums = final["seeds"].shape, final["return_sum"].shape
    for name, array in final.items():
        shape, kinds = (sums, "iuf") if name.startswith("return_") else (seeds, "iu")
        if array.shape != shape or shape[:1] != seeds or array.dtype.kind not in kinds:
            raise RecordError(f"{path}: {name!r} does not hold one entry a seed; restore it")
    return final

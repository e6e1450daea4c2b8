"""What a run directory says of how its figures came about: the input of the checks.

Everything is read once and without judgement; a file that is not there is ``None``.
"""

import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from analysis.data import SideData
from analysis.load import launches, read_ajax_config
from shared.configuration import flatten
from shared.digests import Changes, changes
from shared.errors import RecordError
from shared.files import exists, read_bytes, read_exit_code, read_json_object, read_text
from shared.launch_info import Launch, Revision, side_revision
from shared.layout import (
    AJAX_CONFIG,
    AJAX_FINAL,
    AJAX_NAME,
    REFERENCE_ARGUMENTS,
    REFERENCE_CONFIG,
    TIMING,
    RunLayout,
    reference_name,
)

#: Arrays of ``ajax_final.npz`` that the audit needs, each with a leading seed axis.
FINAL_KEYS = ("seeds", "rows", "updates", "return_sum", "return_count")


@dataclass(frozen=True)
class ReferenceProcess:
    """Files of one reference seed beside its records."""

    seed: int
    exit_code: int | None
    config: Mapping[str, Any] | None
    arguments: Mapping[str, Any] | None
    timing: Mapping[str, Any] | None
    files: Changes | None = None


@dataclass(frozen=True)
class AjaxProcess:
    """Files of the Ajax process beside its records."""

    exit_code: int | None
    config: Mapping[str, Any] | None
    timing: Mapping[str, Any] | None
    #: Final arrays; ``None`` without the file, empty where its keys are not known.
    final: Mapping[str, NDArray[Any]] | None
    files: Changes | None = None


@dataclass(frozen=True)
class Evidence:
    """All of one side: its processes, the starts of the round, and the revision they name."""

    side: SideData
    starts: tuple[Launch, ...]
    revision: Revision | None
    reference: tuple[ReferenceProcess, ...] = ()
    ajax: AjaxProcess | None = None


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
        _object(directory / REFERENCE_ARGUMENTS),
        _object(directory / TIMING),
        changes(layout, reference_name(seed)),
    )


def _ajax(layout: RunLayout) -> AjaxProcess:
    directory = layout.ajax_dir
    return AjaxProcess(
        read_exit_code(layout.done(AJAX_NAME)),
        read_ajax_config(directory / AJAX_CONFIG),
        _object(directory / TIMING),
        _final(directory / AJAX_FINAL),
        changes(layout, AJAX_NAME),
    )


def _object(path: Path) -> dict[str, Any] | None:
    return read_json_object(path) if exists(path) else None


def _yaml(path: Path) -> dict[str, Any] | None:
    if not exists(path):
        return None
    try:
        value = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise RecordError(f"{path}{line}: not valid YAML; restore the file") from None
    if not isinstance(value, dict):
        raise RecordError(f"{path}:1: expected a mapping; restore the file")
    return flatten(value)


def _final(path: Path) -> dict[str, NDArray[Any]] | None:
    if not exists(path):
        return None
    try:
        with np.load(io.BytesIO(read_bytes(path)), allow_pickle=False) as archive:
            known = set(FINAL_KEYS) <= set(archive.files)
            # The published rounds' keys are not known: what cannot be read is not guessed.
            final = {name: archive[name] for name in archive.files} if known else {}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        # numpy's own words advise to load what is not to be trusted.
        raise RecordError(f"{path}: not a readable .npz file; restore it") from None
    for name in FINAL_KEYS if final else ():
        if final[name].shape[:1] != final["seeds"].shape:
            raise RecordError(f"{path}: {name!r} does not hold one entry a seed; restore it")
    return final

"""Recordings of a reference run that ``matched`` trains both sides on: made once, kept, checked."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diagnose.sides import Sides
from shared.errors import UserError, shown
from shared.probes.matched_case import CONTEXT, FIELDS, as_text, of_text
from shared.probes.parameter_map import PAIRS
from shared.protocol import REFERENCE_COMMIT
from shared.records.arrays import Arrays, below, read_arrays, write_arrays

#: Changes when a recording means something else than before.
_FORMAT = 1
_PROBE = "record"


@dataclass(frozen=True)
class Wanted:
    """The run that is recorded: its seed and widths, and at least how many of its updates."""

    seed: int
    tiny: bool
    updates: int

    @property
    def identity(self) -> dict[str, Any]:
        """What makes two recordings the same one, but for their length."""
        return {
            "format": _FORMAT,
            "seed": self.seed,
            "tiny": self.tiny,
            "arm": "stock",
            "commit": REFERENCE_COMMIT,
        }

    @property
    def prefix(self) -> str:
        """First part of a file name."""
        digest = hashlib.sha256(json.dumps(self.identity).encode()).hexdigest()
        return f"batches-{digest[:10]}-"


@dataclass(frozen=True)
class Recording:
    """``parameters`` by the reference's names; ``batches``: field -> ``[updates, 16, ...]``."""

    path: Path
    parameters: Arrays
    batches: Arrays
    #: ``<updates>/<head>`` -> logits of the reward head and the critic ``[16, 65, bins]``.
    logits: Arrays = field(default_factory=dict)


def obtain(sides: Sides, wanted: Wanted, directory: Path, file: Path | None = None) -> Recording:
    """The recording ``file``, else a fitting one in ``directory``; recorded where there is none.

    Nothing is overwritten. Raises ``UserError`` for a file that is another recording.
    """
    found = file if file is not None else _kept(wanted, directory)
    if found.exists():
        print(f"recording: {found.name}", flush=True)
        return read(found, wanted)
    arrays = {name: np.asarray(getattr(wanted, name)) for name in ("seed", "tiny", "updates")}
    answer = sides.ask("reference", _PROBE, arrays, cached=True)
    write_arrays(found, {"about": as_text(wanted.identity), **answer.arrays})
    return read(found, wanted)


def _kept(wanted: Wanted, directory: Path) -> Path:
    """The shortest recording in ``directory`` that is long enough, else where one would lie."""
    lengths = {
        int(length): path
        for path in directory.glob(f"{wanted.prefix}*.npz")
        if (length := path.stem.removeprefix(wanted.prefix)).isdigit()
    }
    enough = sorted(length for length in lengths if length >= wanted.updates)
    return lengths[enough[0]] if enough else directory / f"{wanted.prefix}{wanted.updates}.npz"


def _about(arrays: Arrays) -> dict[str, Any]:
    """What a recording says of itself; nothing where that is not to be read."""
    try:
        about = of_text(arrays["about"])
    except (KeyError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def read(path: Path, wanted: Wanted) -> Recording:
    """Read ``path``. Raises ``UserError`` unless it is the recording that is wanted."""
    arrays = read_arrays(path)
    about = _about(arrays)
    for key, value in wanted.identity.items():
        if about.get(key) != value:
            raise UserError(
                f"{path}: was recorded with {key} {shown(about.get(key))}, {value} is wanted; "
                "name another --batches, or one that does not exist to record it there"
            )
    recording = Recording(
        path, *(below(arrays, name) for name in ("parameters", "batches", "logits"))
    )
    names = {pair.reference for pair in PAIRS}
    if recording.parameters.keys() != names or recording.batches.keys() != {*FIELDS, *CONTEXT}:
        raise UserError(f"{path}: lacks parameters or batches; remove it, and it is recorded anew")
    held = min(len(each) if each.ndim else 0 for each in recording.batches.values())
    if held < wanted.updates:
        raise UserError(
            f"{path}: holds {held} updates, {wanted.updates} are wanted; give --updates {held}, or "
            "a file that does not exist to record it there"
        )
    return recording

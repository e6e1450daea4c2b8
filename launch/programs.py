"""Compiled programs that processes share: where jax keeps them, and which are there already."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shared.compiled import cache_variables
from shared.protocol import Round, Side
from shared.records.files import write_json

#: Within one cache directory: a file for each program that a process has compiled to the end.
MARKERS = "warm"


@dataclass(frozen=True)
class SideCache:
    """The cache directory of one side, and what identifies the code that compiles into it.

    ``code`` is ``None`` for a checkout with uncommitted changes: what it compiled last time says
    nothing of this time.
    """

    directory: Path
    code: str | None


def program_marker(
    cache: SideCache | None, side: Side, chosen: Round, xla_flags: str, *, callbacks: bool = True
) -> Path | None:
    """File that says that the program of a process is in the cache; siblings share it.

    The reference compiles its update alone, Ajax the whole run over all its seeds: with host
    ``callbacks`` jax does not keep that, and the file speaks for its other programs.
    """
    if cache is None or cache.code is None:
        return None
    parts = [side, chosen.arm(side).name, "tiny" if chosen.tiny else "full", cache.code]
    if side == "ajax":
        sizes = (len(chosen.seeds), chosen.rows, chosen.every, chosen.episodes)
        parts.append("x".join(map(str, sizes)))
        parts += [] if callbacks else ["stored"]
    if xla_flags:
        parts.append(hashlib.sha256(xla_flags.encode()).hexdigest()[:8])
    return cache.directory / MARKERS / f"{'-'.join(parts)}.json"


def mark_warm(marker: Path) -> None:
    """Note that the program is in the cache; a directory that cannot be written stays cold."""
    with suppress(OSError):
        marker.parent.mkdir(parents=True, exist_ok=True)
        write_json(marker, {"warm since": datetime.now(UTC).isoformat(timespec="seconds")})


def cache_environment(cache: SideCache | None, side: Side) -> Mapping[str, str]:
    """Variables with which a process keeps every program that it compiles, or none at all."""
    # Ajax would move jax's cache to a directory of its own.
    own: dict[str, str] = {"AJAX_NO_COMPILE_CACHE": "1"} if side == "ajax" else {}
    if cache is None:
        return own
    return own | cache_variables(cache.directory)

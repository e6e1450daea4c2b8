"""What is checked before a round starts anything: a round that fails should fail in seconds."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from launch.plan import Plan
from shared.errors import UserError
from shared.protocol import AJAX_DISTRIBUTION, AJAX_RELEASE, Side
from shared.provenance.distributions import (
    AJAX_RELEASE_DIGEST,
    find_distribution,
    verify_distribution,
)
from shared.records.launch_info import read_launches
from shared.records.layout import RunLayout

#: Free space that one process needs at least: records, and a checkpoint of 8 MB.
BYTES_PER_PROCESS = 100 * 2**20
ASK_SECONDS = 60.0
#: What a launcher may have written when it was killed before it noted its start.
_OURS = re.compile(r"\.?(launch\.lock|launch\.log|launcher\.json|launch_info\.txt\.)(\..*|\w*)")

_QUESTION = """
import importlib.metadata, json, platform, sys
found = {each.metadata["Name"].lower(): each.version for each in importlib.metadata.distributions()}
print(json.dumps([platform.python_version(), sorted(found.items()), sys.path]))
"""


@dataclass(frozen=True)
class PythonFacts:
    """One side's interpreter: Python's and jax's version, and where it looks for packages.

    ``packages`` is a digest over name and version of everything that is installed there.
    """

    version: str
    jax: str
    search_path: tuple[str, ...]
    packages: str = ""

    def __str__(self) -> str:
        return f"{self.version}, jax {self.jax}"


@cache
def inspect_python(python: Path, side: Side) -> PythonFacts:
    """Run one side's interpreter and ask it what it is. Raises ``UserError`` where it is unfit.

    It is asked once; who records the answer calls ``cache_clear()`` before.
    """
    remedy = f"name another one with --{side}-python, or leave that out"
    try:
        done = subprocess.run(
            # -I: as the side's environment is, whatever the user's shell adds to it.
            [str(python), "-I", "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=True,
        )
        version, packages, search_path = json.loads(done.stdout)
        jax = dict(packages).get("jax")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is it a Python?"
        raise UserError(f"{python}: cannot be run ({reason}); {remedy}") from None
    if jax is None:
        raise UserError(f"{python}: has no jax; {remedy}")
    listed = "".join(f"{name}=={installed}\n" for name, installed in packages)
    digest = hashlib.sha256(listed.encode()).hexdigest()
    return PythonFacts(version, jax, tuple(search_path), digest)


def verified_release(facts: PythonFacts) -> dict[str, str]:
    """Name, version and digest of the pinned Ajax release, every file compared with its RECORD.

    Raises ``UserError`` where it is not installed, is another version, or has changed files.
    """
    found = find_distribution(AJAX_DISTRIBUTION, facts.search_path)
    identity = found.identity()
    remedy = "install constraints-ajax.txt there, or pass --ajax-root DIR"
    if found.version != AJAX_RELEASE:
        raise UserError(
            f"{found.name} {found.version} is installed, {AJAX_RELEASE} expected; {remedy}"
        )
    verify_distribution(found)
    if found.digest != AJAX_RELEASE_DIGEST:
        raise UserError(f"{found.name} {found.version}: its RECORD is not the release's; {remedy}")
    return identity


def check_output(plan: Plan) -> None:
    """Raise ``UserError`` unless the output directory can take this plan without loss.

    It must be missing or empty, or hold a start of the same round: another side's, or one that is
    to be continued.
    """
    out = plan.out
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file; name a directory with --out")
    if not out.is_dir() or all(_OURS.fullmatch(path.name) for path in out.iterdir()):
        return
    if not RunLayout(out).launch_info.exists():
        raise UserError(f"{out}: is not empty and holds no run; name another directory with --out")
    check_same_round(plan)


def check_same_round(plan: Plan) -> None:
    """Raise ``UserError`` where the directory holds a start of another round."""
    wanted = identity_fields(plan)
    path = RunLayout(plan.out).launch_info
    for launch in read_launches(path):
        for key, value in wanted.items():
            there = launch.fields.get(key, value)
            if there != value:
                raise UserError(
                    f"{path}: was started with {key} {there}, this start asks for {value}; "
                    "give it the same, or name another directory with --out"
                )


def identity_fields(plan: Plan) -> Mapping[str, str]:
    """Fields of ``launch_info.txt`` that two starts into one directory must share."""
    chosen = plan.round
    return {
        "round": chosen.name,
        "smoke": "yes" if chosen.tiny else "no",
        "rows": str(chosen.rows),
        "every": str(chosen.every),
        "episodes": str(chosen.episodes),
        "seeds": " ".join(map(str, chosen.seeds)),
    }


def check_room(out: Path, processes: int, code: Sequence[Path]) -> None:
    """Raise ``UserError`` where ``out`` cannot be written or has too little room.

    Neither may it lie in one of the directories ``code``, which are never written to.
    """
    for place in code:
        if out.resolve().is_relative_to(place.resolve()):
            raise UserError(
                f"{out}: lies in the code that runs, {place}; name another one with --out"
            )
    existing = next(path for path in (out, *out.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"{existing}: cannot be written; name another directory with --out")
    free, needed = shutil.disk_usage(existing).free, processes * BYTES_PER_PROCESS
    if free < needed:
        raise UserError(
            f"{existing}: {free / 2**20:.0f} MiB are free, {processes} processes need about "
            f"{needed / 2**20:.0f}; make room, or name another directory with --out"
        )

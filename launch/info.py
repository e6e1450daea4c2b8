"""What ``launch_info.txt`` says of a start (protocol section 7), collected from this machine."""

import hashlib
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from launch.places import Places
from launch.plan import Plan
from launch.preflight import PythonFacts
from launch.registration import is_governed
from shared.errors import UserError
from shared.preregistration import KEY as REGISTRATION
from shared.preregistration import registration_line
from shared.protocol import REFERENCE_COMMIT, Side
from shared.provenance.git import git, git_bytes
from shared.provenance.roots import ELSEWHERE, REPO, git_state, system
from shared.records.launch_info import PROJECT, Revision
from shared.variables import XLA_FLAGS_VARIABLE, child_environment

#: Variables that can change a side's speed: of threads, of memory, and of libraries loaded first.
SETTING_VARIABLES = {
    *("GLIBC_TUNABLES", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"),
    *("NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
}
_SETTING_PREFIXES = ("MALLOC", "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "TCMALLOC_")


def launch_fields(
    plan: Plan,
    revisions: Mapping[str, Revision],
    pythons: Mapping[Side, PythonFacts],
    *,
    xla_flags: Mapping[Side, str],
    limit: int,
    command: str,
    environment: Mapping[str, str] = os.environ,
    now: datetime | None = None,
) -> dict[str, str]:
    """The fields of one block of ``launch_info.txt``, in the order of the file.

    ``revisions`` and ``pythons`` cover the sides that this start runs, and the project.
    """
    chosen = plan.round
    moment = (now or datetime.now()).astimezone()
    fields = {
        "launched": moment.strftime("%Y-%m-%d %H:%M:%S %z"),
        "system": system(),
        "load averages": load_averages(),
        "round": chosen.name,
        "smoke": "yes" if chosen.tiny else "no",
        "sides": " ".join(plan.sides),
    }
    fields |= {f"{side} arm": chosen.arm(side).name for side in plan.sides}
    fields |= {key: revision.line(key) for key, revision in revisions.items()}
    fields |= {XLA_FLAGS_VARIABLE[side]: xla_flags.get(side, "") for side in plan.sides}
    fields |= {"environment": inherited_settings(environment), **size_fields(plan)}
    fields |= {"jobs": str(limit), "compile cache": "on" if plan.compile_cache else "off"}
    for side, facts in pythons.items():
        fields |= side_fields(side, facts)
    return fields | {"command": command}


def size_fields(plan: Plan) -> dict[str, str]:
    """The sizes of a round, and what governs them."""
    chosen = plan.round
    return {
        "rows": str(chosen.rows),
        "every": str(chosen.every),
        "episodes": str(chosen.episodes),
        "seeds": " ".join(map(str, chosen.seeds)),
        "departs from the protocol": "; ".join(plan.departures) or "no",
        **({REGISTRATION: registration_line(chosen.preregistration)} if is_governed(plan) else {}),
    }


def side_fields(side: Side, facts: PythonFacts) -> dict[str, str]:
    """The interpreter of one side, what is installed there, and this project's code that runs."""
    return {
        f"{side} python": str(facts),
        f"{side} packages": f"sha256 {facts.packages}",
        f"{side} code": f"sha256 {code_digest(REPO, side)}",
    }


def inherited_settings(environment: Mapping[str, str]) -> str:
    """What the sides inherit that may change speed or rounding: ``NAME=VALUE ...``, or ``none``.

    Of a location, which would name this machine, the name of a library is kept.
    """
    kept = child_environment({}, environment)
    found = []
    for name in sorted(kept):
        if name in SETTING_VARIABLES or name.startswith(_SETTING_PREFIXES):
            value = re.sub(r"[^\s:,;]*/[^\s:,;]*", _without_place, kept[name])
            found.append(f"{name}={' '.join(value.split())}")
    # An environment may hold bytes that are no text.
    return " ".join(found).encode(errors="replace").decode() or "none"


def _without_place(found: re.Match[str]) -> str:
    name = found[0].rpartition("/")[2]
    return f"{ELSEWHERE}/{name}" if ".so" in name else ELSEWHERE


def code_digest(repo: Path, side: Side) -> str:
    """sha256 over this project's code that runs in the process of ``side``, path by path."""
    digest = hashlib.sha256()
    for package in (f"{'ref' if side == 'reference' else side}_side", "shared"):
        for path in sorted((repo / package).rglob("*.py")):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(repo).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def load_averages() -> str:
    """Load averages over 1, 5 and 15 minutes, or ``unknown`` where the system has none."""
    try:
        return " ".join(f"{load:.2f}" for load in os.getloadavg())
    except OSError:
        return "unknown"


def collect_revisions(
    places: Places, release: Mapping[str, str] | None, sides: tuple[Side, ...]
) -> dict[str, Revision]:
    """Revisions of the sides that run, and of this project; the reference is verified already.

    ``release`` is name, version and digest of the installed Ajax, for a run without a checkout.
    """
    found: dict[str, Revision] = {}
    if "reference" in sides:
        found["reference"] = Revision(REFERENCE_COMMIT, dirty=False)
    if "ajax" in sides:
        source = places.ajax_source
        found["ajax"] = Revision(distribution=release) if source is None else checkout(source)
    return found | {PROJECT: project_revision(places.repo)}


def checkout(src: Path) -> Revision:
    """Revision of the git checkout around ``src``; dirty and diff count what lies below it."""
    state = git_state(src)
    try:
        # As the published rounds did.
        diff = git_bytes(src, "diff", "--no-ext-diff", "--no-textconv", "HEAD", "--", ".")
    except UserError:
        return Revision(state.commit, state.dirty)
    return Revision(state.commit, state.dirty, hashlib.sha1(diff).hexdigest())


def project_revision(repo: Path) -> Revision:
    """Revision of this project; without commit where ``repo`` is the root of no git checkout."""
    try:
        # An unpacked archive may lie inside another project's checkout.
        if Path(git(repo, "rev-parse", "--show-toplevel").strip()).resolve() != repo.resolve():
            return Revision()
        state = git_state(repo)
    except UserError:
        return Revision()
    return Revision(state.commit, state.dirty)

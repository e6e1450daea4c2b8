"""jax's persistent compilation cache: its directory for each side, and who fills it first.

One directory per CPU, Python, jax and jaxlib: jax's own key covers the program and the XLA flags,
but on the CPU not the instructions that it was compiled for. What jax cannot read or write there
costs a warning in the log and a compilation, never the run.
"""

from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from launch.places import Places
from launch.plan import Job
from launch.preflight import PythonFacts, inspect_python
from launch.programs import SideCache, mark_warm
from launch.progress import tail
from shared.compiled import DIRECTORY, cache_name
from shared.cpu import describe_cpu
from shared.errors import UserError
from shared.protocol import REFERENCE_COMMIT, Side
from shared.provenance.distributions import AJAX_RELEASE_DIGEST
from shared.provenance.roots import git_state
from shared.records.layout import PROGRESS

#: Stands for the key of an environment that is not built yet.
UNKNOWN = "<key>"


def find_caches(places: Places, sides: Sequence[Side]) -> dict[Side, SideCache]:
    """The cache of each side on this machine. Nothing is created."""
    root = places.repo / DIRECTORY
    found = {}
    for side in sides:
        try:
            key = cache_key(describe_cpu(), inspect_python(places.python(side), side))
        except UserError:
            key = UNKNOWN  # it is built, or refused, when the round starts
        found[side] = SideCache(root / key, code_identity(places, side))
    return found


def cache_key(cpu: str, facts: PythonFacts) -> str:
    """Directory name for programs of this CPU and of the interpreter that ``facts`` describe."""
    return cache_name(cpu, facts.version, facts.jax, _version("jaxlib", facts.search_path))


def code_identity(places: Places, side: Side) -> str | None:
    """Commit of the side's checkout, or digest of its release; ``None`` with changes."""
    if side == "reference":
        return REFERENCE_COMMIT[:12]
    if places.ajax_source is None:
        return AJAX_RELEASE_DIGEST[:12]
    with suppress(UserError):
        state = git_state(places.ajax_source)
        return None if state.dirty else state.commit[:12]
    return None


def _version(name: str, search_path: Sequence[str]) -> str:
    found = metadata.distributions(name=name, path=list(search_path))
    return next((each.version for each in found), "none")


class WarmUp:
    """Lets the first process of a program that is not in the cache compile it alone.

    The others of the same program wait until it trains, or has ended; other programs do not.
    """

    def __init__(self) -> None:
        # Beside the files, for a directory that cannot be written.
        self._trained: set[Path] = set()

    def allows(self, job: Job, running: Sequence[Job]) -> bool:
        """Whether ``job`` may start beside the jobs that run."""
        if job.program is None or job.program in self._trained or job.program.exists():
            return True
        return all(each.program != job.program for each in running)

    def look(self, running: Sequence[Job]) -> None:
        """Note which programs are in the cache by now."""
        for job in running:
            if job.program is not None and job.program not in self._trained and trains(job):
                self._trained.add(job.program)
                mark_warm(job.program)


def trains(job: Job) -> bool:
    """Whether the process has reported an update: it has compiled what it needed for that."""
    return any(line.get("updates", 0) > 0 for line in tail(job.directory / PROGRESS, 1))

"""A round as data: which processes, with what command, environment and files. Nothing is started.

:func:`plan_round` is pure; ``launch.describe`` prints its result, ``launch.supervise`` runs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launch.comparisons import Command, Comparison, comparisons, scan
from launch.finished import expected_files
from launch.places import Places
from launch.programs import SideCache, cache_environment, program_marker
from shared.protocol import ROUNDS, SIDES, Round, Side, updates
from shared.records import layout
from shared.records.layout import RunLayout
from shared.variables import AJAX_VARIABLE


@dataclass(frozen=True)
class Job:
    """One process of a round. ``env`` is added to what ``child_environment`` keeps.

    ``directory`` and ``expected_files`` are what it must leave behind; ``expected_s`` is roughly
    how many seconds it takes, from which only the order of the processes follows. ``program`` is
    the file that says that its compiled program is in the cache; jobs with the same one share it.
    """

    name: str
    side: Side
    seeds: tuple[int, ...]
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    directory: Path
    expected_files: tuple[Path, ...]
    expected_s: float
    program: Path | None = None


@dataclass(frozen=True)
class Plan:
    """A round: its processes, longest first, then its comparisons and the scan of its files."""

    round: Round
    sides: tuple[Side, ...]
    out: Path
    jobs: tuple[Job, ...]
    comparisons: tuple[Comparison, ...]
    scan: Command
    departures: tuple[str, ...]
    compile_cache: bool = False


@dataclass(frozen=True)
class Cost:
    """Seconds to start (build, compile), the same with a warm cache, and per update of one seed."""

    start_s: float
    warm_s: float
    update_s: float


#: By side and tiny widths: on two cores, two processes side by side (protocol section 11); start-up
#: at the tiny widths is what is left of the published smokes' 5 and 2.5 minutes. A warm start of
#: Ajax was not published, and its full program is in no cache. nox -s bench measures all of it.
COSTS: dict[tuple[Side, bool], Cost] = {
    ("reference", False): Cost(344.0, 25.0, 1.55),
    ("ajax", False): Cost(110.0, 110.0, 0.95),
    ("reference", True): Cost(145.0, 35.0, 0.55),
    ("ajax", True): Cost(100.0, 100.0, 0.1),
}


def plan_round(
    chosen: Round,
    places: Places,
    *,
    sides: Sequence[Side] = SIDES,
    xla_flags: Mapping[Side, str] | None = None,
    caches: Mapping[Side, SideCache] | None = None,
    compare: bool = True,
    callbacks: bool = True,
) -> Plan:
    """Plan ``chosen`` (a round of the protocol, its smoke, or either with values replaced).

    Without ``caches`` every process compiles for itself. Without ``callbacks`` Ajax records when
    its training has ended.
    """
    flags, kept = xla_flags or {}, caches or {}
    other_seeds = chosen.seeds != standard(chosen).seeds
    jobs: list[Job] = []
    if "reference" in sides:
        jobs += [
            _reference_job(chosen, places, seed, flags.get("reference", ""), kept.get("reference"))
            for seed in chosen.seeds
        ]
    if "ajax" in sides:
        cache = kept.get("ajax")
        jobs.append(_ajax_job(chosen, places, flags.get("ajax", ""), cache, callbacks=callbacks))
    # Longest first, so that the last process to end is a short one; equals keep their order.
    jobs.sort(key=lambda job: -job.expected_s)
    return Plan(
        round=chosen,
        sides=tuple(side for side in SIDES if side in sides),
        out=places.out,
        jobs=tuple(jobs),
        comparisons=comparisons(chosen, places, other_seeds=other_seeds) if compare else (),
        scan=scan(places),
        departures=departures(chosen),
        compile_cache=bool(kept),
    )


def standard(chosen: Round) -> Round:
    """The protocol's round, or its smoke, that ``chosen`` was made from."""
    published = ROUNDS[chosen.name]
    return published.smoke() if chosen.tiny else published


def departures(chosen: Round) -> tuple[str, ...]:
    """What ``chosen`` does otherwise than the protocol's round or smoke, a phrase each."""
    usual = standard(chosen)
    found = [
        f"{name} {_words(getattr(chosen, name))} instead of {_words(getattr(usual, name))}"
        for name in ("seeds", "rows", "every", "episodes")
        if getattr(chosen, name) != getattr(usual, name)
    ]
    if chosen.seeds != usual.seeds:
        found.append(
            "Ajax is vmapped over the seeds, and another vmap layout gives other numbers "
            "(protocol section 11)"
        )
    return tuple(found)


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _environment(places: Places, xla_flags: str) -> dict[str, str]:
    """Variables of both sides (protocol section 1)."""
    return {
        "PYTHONPATH": str(places.repo),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": xla_flags,
        # The working directory may be the checkout, and nothing of it is imported unverified.
        "PYTHONSAFEPATH": "1",
        # Logs are read while the process runs.
        "PYTHONUNBUFFERED": "1",
    }


def _size_options(chosen: Round, out: Path) -> list[str]:
    options = ["--rows", chosen.rows, "--every", chosen.every, "--episodes", chosen.episodes]
    return [*map(str, options), "--out", str(out), *(["--tiny"] if chosen.tiny else [])]


def _seconds(chosen: Round, side: Side, seeds: int) -> float:
    cost = COSTS[side, chosen.tiny]
    return cost.start_s + cost.update_s * seeds * updates(chosen.rows)


def _reference_job(
    chosen: Round, places: Places, seed: int, xla_flags: str, cache: SideCache | None
) -> Job:
    run = RunLayout(places.out)
    arm = chosen.arm("reference")
    return Job(
        name=layout.reference_name(seed),
        side="reference",
        seeds=(seed,),
        argv=(
            *(str(places.reference_python), "-m", "ref_side.run"),
            *("--checkout", str(places.checkout), "--arm", arm.name),
            *("--round", chosen.name, "--seed", str(seed)),
            *_size_options(chosen, places.out),
        ),
        cwd=places.checkout,
        env={**_environment(places, xla_flags), **cache_environment(cache, "reference")},
        directory=run.reference_dir(seed),
        expected_files=expected_files(chosen, "reference", (seed,), run),
        expected_s=_seconds(chosen, "reference", 1),
        program=program_marker(cache, "reference", chosen, xla_flags),
    )


def _ajax_job(
    chosen: Round, places: Places, xla_flags: str, cache: SideCache | None, *, callbacks: bool
) -> Job:
    run = RunLayout(places.out)
    arm = chosen.arm("ajax")
    more = [] if callbacks else ["--no-callbacks"]
    if places.ajax_root is not None:
        more += ["--ajax-root", str(places.ajax_root)]
    env = {**_environment(places, xla_flags), **cache_environment(cache, "ajax")}
    if places.ajax_root is None and places.ajax_src is not None:
        env[AJAX_VARIABLE] = str(places.ajax_src)
    return Job(
        name=layout.AJAX_NAME,
        side="ajax",
        seeds=chosen.seeds,
        argv=(
            *(str(places.ajax_python), "-m", "ajax_side.run", "--arm", arm.name),
            *("--round", chosen.name, "--seeds", *map(str, chosen.seeds)),
            *_size_options(chosen, places.out),
            *more,
        ),
        cwd=places.out,
        env=env,
        directory=run.ajax_dir,
        expected_files=expected_files(chosen, "ajax", chosen.seeds, run),
        expected_s=_seconds(chosen, "ajax", len(chosen.seeds)),
        program=program_marker(cache, "ajax", chosen, xla_flags, callbacks=callbacks),
    )

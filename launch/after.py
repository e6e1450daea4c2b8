"""What follows a round's processes: comparisons, and the scan of what is kept. Nothing is run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launch.places import Places
from shared import layout
from shared.layout import RunLayout
from shared.protocol import SIDES, Round, Side


@dataclass(frozen=True)
class Command:
    """A command that runs in the foreground when the processes have ended."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Comparison(Command):
    """A comparison of ``roots["reference"]``'s reference with ``roots["ajax"]``'s Ajax."""

    roots: Mapping[Side, Path]

    @property
    def own(self) -> bool:
        """Whether both sides are the round's own."""
        return len(set(self.roots.values())) == 1

    def elsewhere(self, out: Path) -> Path | None:
        """The root that is another round's; ``None`` for the round's own comparison."""
        return next((root for root in self.roots.values() if root != out), None)

    def lacks(self) -> tuple[str, ...]:
        """The sides without which this comparison can say nothing, from the files there are."""
        return tuple(
            f"{side} evaluations in {self.roots[side]}"
            for side in SIDES
            if not has_side(self.roots[side], side)
        )


@dataclass(frozen=True)
class Pair:
    """A cross comparison: this round's ``own`` side with the other side of round 1."""

    name: str
    own: Side


#: Pre-registered pairs by round (protocol section 2): the same expectation on both sides.
PAIRS: dict[int, tuple[Pair, ...]] = {2: (Pair("pairE", "reference"), Pair("pairR", "ajax"))}


def has_side(root: Path, side: Side) -> bool:
    """Whether ``root`` holds evaluations of at least one seed of ``side``."""
    run = RunLayout(root)
    paths = [run.seed_dir(side, seed) / layout.EVALUATIONS for seed in run.seeds(side)]
    return any(path.is_file() for path in paths)


def comparisons(chosen: Round, places: Places, *, other_seeds: bool) -> tuple[Comparison, ...]:
    """The round's own comparison, then its pairs; a smoke has its own only.

    ``other_seeds`` says that the seeds are not the protocol's, so that the analysis is told them.
    """
    common = [*("--round", str(chosen.number)), *(["--smoke"] if chosen.tiny else [])]
    if other_seeds:
        common += ["--seeds", *map(str, chosen.seeds)]
    own = _comparison("comparison", places, [*common, "--root", str(places.out)], {})
    pairs = () if chosen.tiny else PAIRS.get(chosen.number, ())
    return (own, *(_pair(pair, common, places) for pair in pairs))


def scan(places: Places) -> Command:
    """The search for absolute paths, user and host names; logs are a program's own output."""
    argv = (str(places.launcher_python), "-m", "shared.scan", str(places.out), "--skip", ".log")
    return Command("scan", argv, _environment(places))


def _pair(pair: Pair, common: list[str], places: Places) -> Comparison:
    roots = {side: places.out if side == pair.own else places.against for side in SIDES}
    options = [
        *common,
        *("--ref-root", str(roots["reference"]), "--ajax-root", str(roots["ajax"])),
        *("--out", str(places.out / pair.name)),
    ]
    return _comparison(pair.name, places, options, roots)


def _comparison(
    name: str, places: Places, options: list[str], roots: Mapping[Side, Path]
) -> Comparison:
    return Comparison(
        name,
        (str(places.analysis_python), "-m", "analysis.compare", *options),
        _environment(places),
        roots or dict.fromkeys(SIDES, places.out),
    )


def _environment(places: Places) -> dict[str, str]:
    return {"PYTHONPATH": str(places.repo), "PYTHONDONTWRITEBYTECODE": "1"}

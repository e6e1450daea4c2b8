"""What follows a round's processes: comparisons, and the scan of what is kept. Nothing is run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launch.places import Places
from shared import layout
from shared.layout import RunLayout
from shared.protocol import SIDES, Round, Side

#: The round that is analysed as cross pairs with round 1.
PAIRED_ROUND = 2


@dataclass(frozen=True)
class Command:
    """A command that runs in the foreground when the processes have ended."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Comparison(Command):
    """A comparison of two sides; ``sides`` says which of them must be in which directory."""

    sides: tuple[tuple[Side, Path], ...]
    #: Whether both sides are the round's own; the others are run when all they need is there.
    own: bool

    def lacks(self) -> tuple[tuple[Side, Path], ...]:
        """The sides that must be there before this comparison can say all it has to say."""
        return tuple((side, root) for side, root in self.sides if not has_side(root, side))


def has_side(root: Path, side: Side) -> bool:
    """Whether ``root`` holds evaluations of at least one seed of ``side``."""
    run = RunLayout(root)
    paths = [run.seed_dir(side, seed) / layout.EVALUATIONS for seed in run.seeds(side)]
    return any(path.is_file() for path in paths)


def comparisons(chosen: Round, places: Places, *, other_seeds: bool) -> tuple[Comparison, ...]:
    """The round's own comparison, then round 2's cross pairs; a smoke has its own only.

    ``other_seeds`` says that the seeds are not the protocol's, so that the analysis is told them.
    """
    options = ["--round", chosen.name, "--root", str(places.out)]
    if chosen.tiny:
        options.append("--smoke")
    if other_seeds:
        options += ["--seeds", *map(str, chosen.seeds)]
    if places.ajax_source is not None:
        # Else the pinned release is expected to have run.
        options += ["--ajax-src", str(places.ajax_source)]
    own = tuple((side, places.out) for side in SIDES)
    found = [_comparison("comparison", places, options, own, own=True)]
    if chosen.number == PAIRED_ROUND and not chosen.tiny:
        # Pre-registered (protocol section 2): each side of round 2 with round 1's other side.
        options += ["--against", str(places.against)]
        needed = (*own, *((side, places.against) for side in SIDES))
        found.append(_comparison("pairs E and R", places, options, needed, own=False))
    return tuple(found)


def scan(places: Places) -> Command:
    """The search for absolute paths, user and host names; logs are a program's own output."""
    argv = (str(places.launcher_python), "-m", "shared.scan", str(places.out), "--skip", ".log")
    return Command("scan", argv, _environment(places))


def _comparison(
    name: str,
    places: Places,
    options: list[str],
    sides: tuple[tuple[Side, Path], ...],
    *,
    own: bool,
) -> Comparison:
    argv = (str(places.analysis_python), "-m", "analysis.compare", *options)
    return Comparison(name, argv, _environment(places), sides, own)


def _environment(places: Places) -> dict[str, str]:
    return {"PYTHONPATH": str(places.repo), "PYTHONDONTWRITEBYTECODE": "1"}

"""What follows a round's processes: comparisons, and the scan of what is kept. Nothing is run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from launch.finished import has_finished_side
from launch.places import Places
from shared.protocol import ROUNDS, SERIES, SIDES, Round, Side
from shared.records import layout
from shared.records.layout import RunLayout

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
    #: Directory -> the round whose processes must have finished there, on the sides in ``sides``;
    #: evaluations of any seed are enough elsewhere.
    rounds: Mapping[Path, Round] = field(default_factory=dict)
    #: What else a user can do who has not all that it needs.
    hint: str = ""

    def lacks(self) -> tuple[tuple[Side, Path], ...]:
        """The sides that must be there before this comparison can say all it has to say."""
        return tuple((side, root) for side, root in self.sides if not self._has(root, side))

    def _has(self, root: Path, side: Side) -> bool:
        if root in self.rounds:
            return has_finished_side(self.rounds[root], side, RunLayout(root))
        return has_side(root, side)

    @property
    def lacking(self) -> str:
        """What a side lacks, in words that take its name."""
        return "finished {}" if self.rounds else "{} evaluations"


def has_side(root: Path, side: Side) -> bool:
    """Whether ``root`` holds evaluations of at least one seed of ``side``."""
    run = RunLayout(root)
    paths = [run.seed_dir(side, seed) / layout.EVALUATIONS for seed in run.seeds(side)]
    return any(path.is_file() for path in paths)


def comparisons(chosen: Round, places: Places, *, other_seeds: bool) -> tuple[Comparison, ...]:
    """The round's own comparison, then what it is compared with; a smoke has its own only.

    ``other_seeds`` says that the seeds are not the protocol's, so that the analysis is told them.
    """
    options = ["--seeds", *map(str, chosen.seeds)] if other_seeds else []
    if places.ajax_source is not None:
        # Else the pinned release is expected to have run.
        options += ["--ajax-src", str(places.ajax_source)]
    sides = tuple((side, places.out) for side in SIDES)
    what = ["--round", chosen.name, "--root", str(places.out)]
    smoke = ["--smoke"] if chosen.tiny else []
    own = _comparison("comparison", places, [*what, *smoke, *options], sides, own=True)
    if chosen.tiny:
        return (own,)
    return (
        own,
        *_pairs(chosen, places, [*what, *options], sides),
        *_series(chosen, places, options),
    )


def _pairs(
    chosen: Round, places: Places, options: list[str], own: tuple[tuple[Side, Path], ...]
) -> Iterator[Comparison]:
    """Pre-registered (protocol section 2): each side of round 2 with round 1's other side."""
    if chosen.number == PAIRED_ROUND:
        yield _comparison(
            "pairs E and R",
            places,
            [*options, "--against", str(places.against)],
            (*own, *((side, places.against) for side in SIDES)),
            hint="--against published compares with the published round 1",
        )


def _series(chosen: Round, places: Places, options: list[str]) -> Iterator[Comparison]:
    """The parts of a round together, if this directory is where the series has this part."""
    for series, parts in SERIES.items():
        if chosen.name in parts and places.out.name == chosen.part:
            root = places.out.parent
            rounds = {
                root / ROUNDS[name].part: replace(ROUNDS[name], seeds=chosen.seeds)
                for name in parts
            }
            yield _comparison(
                f"round {series}",
                places,
                ["--round", series, "--root", str(root), *options],
                tuple((side, place) for place in rounds for side in SIDES),
                rounds=rounds,
            )


def scan(places: Places) -> Command:
    """The search for absolute paths, user and host names; logs are a program's own output."""
    argv = (str(places.study_python), "-m", "shared.scan", str(places.out), "--skip", ".log")
    return Command("scan", argv, _environment(places))


def _comparison(
    name: str,
    places: Places,
    options: list[str],
    sides: tuple[tuple[Side, Path], ...],
    *,
    own: bool = False,
    rounds: Mapping[Path, Round] | None = None,
    hint: str = "",
) -> Comparison:
    argv = (str(places.study_python), "-m", "analysis.compare", *options)
    return Comparison(name, argv, _environment(places), sides, own, rounds or {}, hint)


def _environment(places: Places) -> dict[str, str]:
    return {"PYTHONPATH": str(places.repo), "PYTHONDONTWRITEBYTECODE": "1"}

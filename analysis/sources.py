"""Where the figures of both sides come from, of which sizes they are, and loading them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.checks import ExpectedAjax, Sizes
from analysis.data import SideData
from analysis.load import (
    launches,
    load_side,
    recorded_arguments,
    require_run,
    seeds_with_evaluations,
)
from analysis.published import published_side
from shared.errors import UserError, shown
from shared.protocol import AJAX_RELEASE, PUBLISHED_ROUNDS, ROUNDS, SIDES, Round, Side
from shared.provenance.distributions import AJAX_RELEASE_DIGEST
from shared.records.layout import RunLayout
from shared.records.rows import LARGEST_COUNT

#: Of a run; their rows are listed.
MOST_EVALUATIONS = 100_000

#: The Ajax that must have run unless the user names another: the pinned release, unchanged.
PINNED_AJAX = ExpectedAjax(version=AJAX_RELEASE, digest=AJAX_RELEASE_DIGEST)


@dataclass(frozen=True)
class Source:
    """Where one side's figures come from: a run directory, or a published round."""

    directory: Path | None = None
    published_round: int | None = None
    #: What tables call the directory, where that is not its own location.
    name: str | None = None

    @classmethod
    def parse(cls, text: str, round_name: str) -> "Source":
        """``published`` (of the round compared), ``published:N``, or a directory."""
        word, _, number = text.partition(":")
        if word != "published":
            return cls(directory=Path(text))
        if (chosen := number or round_name) not in PUBLISHED_ROUNDS:
            raise UserError(
                f"{text}: there are no published figures of round {chosen}; write 'published:N' "
                "with 1, 2 or 3"
            )
        return cls(published_round=int(chosen))


@dataclass(frozen=True)
class Request:
    """What to compare. ``seeds`` None takes the round's, or a smoke run's own."""

    #: As ``--round`` takes it.
    round_name: str
    sources: dict[Side, Source]
    smoke: bool = False
    seeds: tuple[int, ...] | None = None
    ajax: ExpectedAjax = PINNED_AJAX
    #: The round whose arm each side must have run; None for a cross pair of the user's own.
    rounds: Mapping[Side, str] | None = None


@dataclass(frozen=True)
class Loaded:
    """Both sides as they were read, with their sizes; nothing is computed yet."""

    request: Request
    #: The round, or its smoke.
    chosen: Round
    sizes: Mapping[Side, Sizes]
    sides: Mapping[Side, SideData]

    @property
    def directories(self) -> set[Path]:
        """Where sides were read that are no published figures."""
        sources = self.request.sources.values()
        return {source.directory for source in sources if source.directory}


def load(request: Request) -> Loaded:
    """Read both sides. Raises :class:`UserError` for bad input."""
    chosen = ROUNDS[request.round_name]
    chosen = chosen.smoke() if request.smoke else chosen
    for directory in {each.directory for each in request.sources.values() if each.directory}:
        require_run(directory)
    sizes = _selected(request, {side: _sizes(request, chosen, side) for side in SIDES})
    sides = {side: _load(request, side, sizes[side]) for side in SIDES}
    if not any(data.seeds for data in sides.values()):
        raise UserError(f"{request.sources['reference'].directory}: no side has records there")
    return Loaded(request, chosen, sizes, sides)


def _sizes(request: Request, chosen: Round, side: Side) -> Sizes:
    """The run's own sizes where it records them, else the round's."""
    source = request.sources[side]
    default = Sizes(chosen.seeds, chosen.rows, chosen.every, chosen.episodes, chosen.tiny)
    if source.directory is None:
        published = ROUNDS[str(source.published_round or chosen.number)]
        sizes = Sizes(published.seeds, published.rows, published.every, published.episodes, False)
    else:
        own = _own_arguments(source.directory, side)
        known = {key: value for key, value in own.items() if value is not None}
        seeds = {*known.get("seeds", ()), *seeds_with_evaluations(source.directory, side)}
        known["seeds"] = tuple(sorted(seeds)) or default.seeds
        recorded = {"rows", "every", "episodes"} <= set(known)
        sizes = replace(default, recorded=recorded, **known)
        if sizes.every < 1 or sizes.rows // sizes.every > MOST_EVALUATIONS:
            raise UserError(
                f"{source.directory}: recorded are {sizes.rows} rows with an evaluation every "
                f"{sizes.every}, which no run has; restore what it recorded"
            )
    return sizes


def _selected(request: Request, sizes: dict[Side, Sizes]) -> dict[Side, Sizes]:
    """Of each side the seeds that the user names; one that a side does not have is refused.

    Unless the other side has it: the statistics are unpaired, so that sides may have other seeds.
    """
    if not request.seeds:
        return sizes
    somewhere = {seed for each in sizes.values() for seed in each.seeds}
    if not set(request.seeds) <= somewhere:
        return {side: replace(each, seeds=request.seeds) for side, each in sizes.items()}
    return {
        side: replace(each, seeds=found if found else request.seeds)
        for side, each in sizes.items()
        for found in [tuple(seed for seed in request.seeds if seed in each.seeds)]
    }


def _own_arguments(root: Path, side: Side) -> dict[str, Any]:
    """What the processes of ``side`` recorded of their arguments, else what the launch did."""
    own: dict[str, Any] = {}
    for launch in launches(root):
        if side in launch.sides:
            own["seeds"] = launch.seeds
            own |= {name: launch.number(name) for name in ("rows", "every", "episodes")}
    path, found = recorded_arguments(RunLayout(root), side)
    every = "log_every" if side == "ajax" else "eval_every"
    for name, key in {"rows": "rows", "every": every, "episodes": "eval_episodes"}.items():
        if key in found:
            own[name] = found[key]
            if type(own[name]) is not int or not 1 <= own[name] <= LARGEST_COUNT:
                value = shown(own[name])
                raise UserError(f"{path}: {key} is {value}, expected a positive whole number")
    return own | ({"tiny": found["tiny"] is True} if "tiny" in found else {})


def _load(request: Request, side: Side, sizes: Sizes) -> SideData:
    source = request.sources[side]
    if source.directory is not None:
        data = load_side(source.directory, side, sizes.seeds)
        return data if source.name is None else replace(data, source=source.name)
    data = published_side(side, published_round_of(request, source))
    kept = tuple(each for each in data.seeds if each.seed in sizes.seeds)
    if lacking := sorted(set(sizes.seeds) - set(data.seed_numbers)):
        raise UserError(
            f"{data.source}: has no seed {lacking[0]}; published are "
            f"{' '.join(map(str, data.seed_numbers))}"
        )
    # The published windows are ranges over all seeds: of a part of them nothing is known.
    windows = data.carried_windows if len(kept) == len(data.seeds) else None
    return replace(data, seeds=kept, carried_windows=windows)


def published_round_of(request: Request, source: Source) -> int:
    """Number of the published round from which ``source`` is."""
    return source.published_round or ROUNDS[request.round_name].number

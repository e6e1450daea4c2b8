"""From two sources to a finished comparison: load, size, compute, check. Writes nothing."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.checks import Check, ExpectedAjax, Sizes, absent, identity, record_checks, twin_checks
from analysis.checks_ajax import S2Audit, ajax_checks, audit_check, identity_check, s2_audit
from analysis.checks_reference import reference_checks
from analysis.comparison import Comparison, compare_sides, withhold
from analysis.data import SideData
from analysis.evidence import Evidence, gather, started_here
from analysis.load import (
    PATCHED,
    launches,
    load_side,
    recorded_arguments,
    require_run,
    seeds_with_evaluations,
)
from analysis.published import load_round, load_statistics, published_side
from shared.distributions import AJAX_RELEASE_DIGEST
from shared.errors import UserError, shown
from shared.launch_info import Revision
from shared.layout import RunLayout
from shared.preregistration import KEY as REGISTRATION
from shared.preregistration import registration_line
from shared.protocol import (
    AJAX_PUBLISHED_COMMIT,
    AJAX_RELEASE,
    PAIRINGS,
    PUBLISHED_ROUNDS,
    REFERENCE_COMMIT,
    ROUNDS,
    SIDE_KEY,
    SIDE_LABEL,
    SIDES,
    Round,
    Side,
)
from shared.records import LARGEST_COUNT

#: (reference arm, Ajax arm) -> what the comparison is called.
TITLES: dict[tuple[str, str], str] = {
    ("stock", "stock"): "Round 1: both sides as they are",
    ("exact", "literal"): "Round 2's own two sides (pre-registered are the pairs E and R)",
    ("exact", "stock"): "Pair E: the exact expectation on both sides",
    ("stock", "literal"): "Pair R: the literal expectation on both sides",
    ("exact-seeded", "stock"): "Round 3: exact expectation on both sides, seeded sampler",
}


#: Name of a round's part -> the same; its arms alone could be a pair's.
PART_TITLES: dict[str, str] = {
    "4-literal": "Round 4: the literal expectation on both sides",
    "4-exact": "Round 4: the exact expectation on both sides",
}

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
class Study:
    """A comparison with its checks and audits, ready to be written."""

    comparison: Comparison
    checks: tuple[Check, ...]
    audits: dict[int, S2Audit]
    #: Where the sides were read; ``None`` for published figures.
    directories: tuple[Path | None, ...] = ()

    @property
    def failed(self) -> list[Check]:
        """The checks that failed, first those that say that the data cannot be right."""
        found = [check for check in self.checks if check.ok is False]
        return sorted(found, key=lambda check: not check.impossible)


def study(request: Request, *, recompute: bool = False) -> Study:
    """Load both sides and compute everything. Raises :class:`UserError` for bad input.

    No rule is applied to data that cannot be right, but to ``recompute`` what is on record: there
    a changed figure has to show as a difference.
    """
    chosen = ROUNDS[request.round_name]
    chosen = chosen.smoke() if request.smoke else chosen
    directories = {source.directory for source in request.sources.values() if source.directory}
    for directory in directories:
        require_run(directory)
    sizes = _selected(request, {side: _sizes(request, chosen, side) for side in SIDES})
    sides = {side: _load(request, side, sizes[side]) for side in SIDES}
    if not any(data.seeds for data in sides.values()):
        raise UserError(f"{request.sources['reference'].directory}: no side has records there")
    title = _title(chosen, sides)
    shared_sizes = sizes["reference" if sides["reference"].seeds else "ajax"]
    with warnings.catch_warnings():
        # A side whose seeds are all at the cap has no spread, which is no loss of precision.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        comparison = compare_sides(
            f"{title} (smoke)" if request.smoke else title,
            chosen.number,
            shared_sizes,
            sides["reference"],
            sides["ajax"],
            smoke=request.smoke,
        )
    checks: list[Check] = list(_size_checks(sizes, sides, chosen, request.smoke))
    checks += _arm_checks(request, sides, {side: _own(request, side) for side in SIDES})
    checks += _registration_checks(chosen, directories)
    checks += twin_checks(sides.values())
    audits: dict[int, S2Audit] = {}
    for side, data in sides.items():
        found, side_audits = _side_checks(request, data, sizes[side])
        checks += found
        audits |= side_audits
    read = tuple(request.sources[side].directory for side in SIDES)
    result = Study(comparison, tuple(checks), audits, read)
    first = next(iter(result.failed), None)
    if first is not None and first.impossible and not recompute:
        return replace(result, comparison=withhold(comparison, f"{first.name}: {first.detail}"))
    return result


def _title(chosen: Round, sides: Mapping[Side, SideData]) -> str:
    """What the comparison is called, by the arms that ran."""
    arms = sides["reference"].arm or "", sides["ajax"].arm or ""
    if chosen.name in PART_TITLES and all(
        data.arm == chosen.arm(side).name for side, data in sides.items() if data.seeds
    ):
        return PART_TITLES[chosen.name]
    if arms in TITLES or not all(data.seeds for data in sides.values()):
        return TITLES.get(arms, f"Round {chosen.name}")
    named = (f"{SIDE_LABEL[side]} ({data.arm_label})" for side, data in sides.items())
    return f"Round {chosen.name}: {' and '.join(named)}"


def _own(request: Request, side: Side) -> bool:
    directory = request.sources[side].directory
    return directory is not None and started_here(launches(directory), side)


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
    data = published_side(side, _published_round(request, source))
    kept = tuple(each for each in data.seeds if each.seed in sizes.seeds)
    if lacking := sorted(set(sizes.seeds) - set(data.seed_numbers)):
        raise UserError(
            f"{data.source}: has no seed {lacking[0]}; published are "
            f"{' '.join(map(str, data.seed_numbers))}"
        )
    # The published windows are ranges over all seeds: of a part of them nothing is known.
    windows = data.carried_windows if len(kept) == len(data.seeds) else None
    return replace(data, seeds=kept, carried_windows=windows)


def _size_checks(
    sizes: dict[Side, Sizes], sides: dict[Side, SideData], chosen: Round, smoke: bool
) -> Iterator[Check]:
    for side, data in sides.items():
        if not data.seeds:
            yield Check(f"{SIDE_KEY[side]} side", False, "there is none")
            continue
        own = sizes[side]
        faults = [
            f"{name} {found}, the protocol's is {wanted}"
            for name, found, wanted in (
                ("rows", own.rows, chosen.rows),
                ("evaluation every", own.every, chosen.every),
                ("episodes", own.episodes, chosen.episodes),
                ("seeds", own.seeds, chosen.seeds),
            )
            if found != wanted
        ] + (["tiny widths"] if own.tiny and not chosen.tiny else [])
        if side == "ajax" and own.seeds != chosen.seeds:
            faults.append("the vmap layout over the seeds departs from the protocol")
        good = f"{own.rows} rows, every {own.every}, {own.episodes} episodes, seeds {own.seeds}"
        # A smoke run is held against its own arguments (protocol section 9).
        name = f"{SIDE_KEY[side]} sizes"
        if faults and not smoke:
            yield Check(name, False, "; ".join(faults))
        elif not own.recorded:
            yield Check(name, None, f"only its seeds are on record: {own.seeds}")
        else:
            yield Check(name, True, good)
    present = [side for side in SIDES if sides[side].seeds]
    if len(present) == len(SIDES) and sizes["reference"] != sizes["ajax"]:
        first, second = (vars(sizes[side]) for side in SIDES)
        names = [key for key in first if first[key] != second[key] and key != "recorded"]
        detail = "; ".join(f"{name} {first[name]} and {second[name]}" for name in names)
        yield Check("sizes of both sides", False, f"the sides ran with different sizes: {detail}")


def _arm_checks(
    request: Request, sides: Mapping[Side, SideData], own: Mapping[Side, bool]
) -> Iterator[Check]:
    """Each side must have run its round's arm; older records only say whether it was patched."""
    for side, name in (request.rounds or {}).items():
        data, wanted = sides[side], ROUNDS[name].arm(side)
        if not data.seeds:
            continue
        key, found = f"{SIDE_KEY[side]} arm", data.arm
        if found is None:
            yield absent(key, f"not recorded; round {name} has {wanted.name}", own=own[side])
            continue
        right = wanted.patched if found == PATCHED else found == wanted.name
        yield Check(key, right, found if right else f"{found}, round {name} has {wanted.name}")


def _registration_checks(chosen: Round, directories: set[Path]) -> Iterator[Check]:
    """What was fixed before the runs must be what is fixed now.

    Of rounds 1 to 3 it is older than its record; a part of a series has none but by this line.
    """
    now = registration_line(chosen.preregistration)
    for directory in sorted(directories):
        starts = launches(directory)
        found = {each.fields.get(REGISTRATION, "none recorded") for each in starts}
        if not starts:
            found = {"none recorded"}
        if not chosen.part or chosen.tiny:
            found.discard("none recorded")
        if found:
            same = found == {now}
            detail = "; ".join(sorted(found)) + ("" if same else f", now it is {now}")
            yield Check(REGISTRATION, same, detail)


def _side_checks(
    request: Request, data: SideData, sizes: Sizes
) -> tuple[list[Check], dict[int, S2Audit]]:
    checks = list(record_checks(data, sizes, own=_own(request, data.side)))
    source = request.sources[data.side]
    if source.directory is None:
        number = _published_round(request, source)
        audits = _published_audits(data, number)
        checks += _published_checks(data, number)
        return checks + [audit_check(seed, audit) for seed, audit in audits.items()], audits
    evidence: Evidence = gather(source.directory, data)
    if data.side == "reference":
        return checks + list(reference_checks(evidence, sizes)), {}
    return checks + list(ajax_checks(evidence, sizes, request.ajax)), s2_audit(evidence)


def _published_round(request: Request, source: Source) -> int:
    return source.published_round or ROUNDS[request.round_name].number


def _published_checks(data: SideData, number: int) -> Iterator[Check]:
    header = load_round(number).header
    commit = header[f"{data.side}_revision"]
    if data.side == "reference":
        revision = Revision(commit)
        yield identity("ref identity", revision, REFERENCE_COMMIT, recorded=False, own=False)
    else:
        revision = Revision(commit, dirty=False)  # its diff sha1 is that of nothing
        yield identity_check({}, revision, ExpectedAjax(commit=AJAX_PUBLISHED_COMMIT), own=False)
    yield Check(
        f"{SIDE_KEY[data.side]} processes",
        None,
        "exit codes, configurations, updates, episodes and final states were not published",
    )


def _published_audits(data: SideData, number: int) -> dict[int, S2Audit]:
    """The audit as published, of the first comparison that used this side of this round."""
    if data.side != "ajax":
        return {}
    names = (name for name, pairing in PAIRINGS.items() if pairing.rounds["ajax"] == number)
    stated = load_statistics()[next(names)].s2_audit
    return {
        seed: S2Audit(row["logged"], row["audited"])
        for seed, row in stated.items()
        if seed in data.seed_numbers
    }

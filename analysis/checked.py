"""The checks of both sides of a comparison, and what they are held against. Nothing is compared."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.checks import (
    Check,
    ExpectedAjax,
    Sizes,
    absent,
    failed_checks,
    identity,
    record_checks,
    twin_checks,
)
from analysis.checks_ajax import S2Audit, ajax_checks, audit_check, identity_check, s2_audit
from analysis.checks_reference import reference_checks
from analysis.data import SideData
from analysis.evidence import Evidence, gather, started_here
from analysis.load import PATCHED, launches
from analysis.published import load_round, load_statistics
from analysis.registered import block_checks
from analysis.sources import Loaded, Request, load, published_round_of
from shared.preregistration import KEY as REGISTRATION
from shared.preregistration import registration_line
from shared.protocol import (
    AJAX_PUBLISHED_COMMIT,
    PAIRINGS,
    REFERENCE_COMMIT,
    ROUNDS,
    SIDE_KEY,
    SIDES,
    Round,
    Side,
)
from shared.records.launch_info import Revision


@dataclass(frozen=True)
class Checked:
    """Both sides with their checks and audits: no statistic is computed for it."""

    loaded: Loaded
    checks: tuple[Check, ...]
    audits: dict[int, S2Audit]

    @property
    def failed(self) -> list[Check]:
        """The checks that failed, first those that say that the data cannot be right."""
        return failed_checks(self.checks)


def check(request: Request) -> Checked:
    """Load both sides and check the runs. Raises :class:`UserError` for bad input."""
    loaded = load(request)
    sizes, sides = loaded.sizes, loaded.sides
    checks: list[Check] = list(_size_checks(sizes, sides, loaded.chosen, request.smoke))
    checks += _arm_checks(request, sides, {side: _own(request, side) for side in SIDES})
    checks += _registration_checks(loaded.chosen, loaded.directories)
    checks += twin_checks(sides.values())
    if loaded.chosen.whole and not loaded.chosen.tiny:
        for directory in loaded.directories:
            checks += block_checks(directory, loaded.chosen)
    audits: dict[int, S2Audit] = {}
    for side, data in sides.items():
        found, side_audits = _side_checks(request, data, sizes[side])
        checks += found
        audits |= side_audits
    return Checked(loaded, tuple(checks), audits)


def _own(request: Request, side: Side) -> bool:
    directory = request.sources[side].directory
    return directory is not None and started_here(launches(directory), side)


def _size_checks(
    sizes: Mapping[Side, Sizes], sides: Mapping[Side, SideData], chosen: Round, smoke: bool
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
        number = published_round_of(request, source)
        audits = _published_audits(data, number)
        checks += _published_checks(data, number)
        return checks + [audit_check(seed, audit) for seed, audit in audits.items()], audits
    evidence: Evidence = gather(source.directory, data)
    if data.side == "reference":
        return checks + list(reference_checks(evidence, sizes)), {}
    return checks + list(ajax_checks(evidence, sizes, request.ajax)), s2_audit(evidence)


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

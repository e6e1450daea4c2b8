"""Which comparison the options of ``nox -s compare`` ask for, of which runs, by which round."""

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from analysis.checks import ExpectedAjax
from analysis.load import round_launch
from analysis.sources import PINNED_AJAX, Request, Source
from shared.errors import UserError
from shared.protocol import AJAX_RELEASE, ROUNDS, SIDE_LABEL, SIDES, Side
from shared.provenance.roots import git_state
from shared.records.launch_info import Launch
from shared.variables import AJAX_VARIABLE

#: What to do about a part in another one's place.
PART_PLACE = "each part lies under its own name"


def request_of(options: argparse.Namespace) -> Request:
    """The request that the options describe. Raises :class:`UserError`."""
    given: dict[Side, str | None] = {
        "reference": options.ref_root or options.root,
        "ajax": options.ajax_root or options.root,
    }
    for side, value in given.items():
        if value is None:
            flag = "--ref-root" if side == "reference" else "--ajax-root"
            raise UserError(
                f"no directory for the {SIDE_LABEL[side]} side; give --root DIR, or {flag} DIR "
                f"({flag} published for the published figures)"
            )
    # A side taken from elsewhere makes a cross pair, and of such a pair the round is a choice.
    whole = Path(given["reference"] or "") == Path(given["ajax"] or "")
    root = given["reference"] if whole else options.root
    launched = round_launch(Path(root)) if root is not None else None
    name = options.round or (launched and launched.fields["round"]) or "1"
    if whole:
        require_round(launched, str(root), name, "")
    # Two roots without --round are a cross pair of the user's own: any arms may meet.
    same_round = options.round is not None or whole
    sources = {side: Source.parse(value, name) for side, value in given.items() if value}
    return _request(options, name, sources, launched, same_round=same_round)


def pairs_request(options: argparse.Namespace) -> tuple[Request, dict[int, Source]]:
    """Of round 2's pairs: what both share, and where rounds 1 and 2 lie."""
    given = {1: ("--against", options.against), 2: ("--root", options.root)}
    sources = {number: Source.parse(root, str(number)) for number, (_, root) in given.items()}
    launched = {number: round_launch(Path(root)) for number, (_, root) in given.items()}
    smoke = options.smoke or any(each is not None and _is_smoke(each) for each in launched.values())
    if smoke:
        _refuse_published(sources.values(), "--smoke" if options.smoke else options.root)
    for number, (option, root) in given.items():
        remedy = f"{option} takes the directory of round {number}"
        require_round(launched[number], root, str(number), remedy)
    return Request("2", {}, smoke, _seeds(options), _expected(options)), sources


def part_requests(
    options: argparse.Namespace, directories: Mapping[str, Path]
) -> dict[str, Request]:
    """Of the parts of a series, by their rounds' names, both sides of each in one directory.

    All parts are looked at before one is computed.
    """
    launched = {name: round_launch(path) for name, path in directories.items()}
    for name, path in directories.items():
        require_round(launched[name], str(path), name, PART_PLACE)
    return {
        name: _request(
            options,
            name,
            dict.fromkeys(SIDES, Source(directory=path)),
            launched[name],
            same_round=True,
        )
        for name, path in directories.items()
    }


def require_round(launched: Launch | None, root: str, asked: str, remedy: str) -> None:
    """Raise :class:`UserError` where ``root`` says that it holds another round than ``asked``.

    ``remedy`` says what to do; if empty, to compare it as what it is.
    """
    there = asked if launched is None else launched.fields["round"]
    if there != asked:
        raise UserError(
            f"{root}: holds round {there}, not round {asked}; "
            f"{remedy or f'give --round {there}, or leave --round out'}"
        )


def _request(
    options: argparse.Namespace,
    name: str,
    sources: dict[Side, Source],
    launched: Launch | None,
    *,
    same_round: bool,
) -> Request:
    smoke = options.smoke or (launched is not None and _is_smoke(launched))
    if smoke:
        _refuse_published(sources.values(), "--smoke" if options.smoke else options.root)
    return Request(
        round_name=name,
        sources=sources,
        rounds=dict.fromkeys(SIDES, name) if same_round else None,
        smoke=smoke,
        seeds=_seeds(options),
        ajax=_expected(options),
    )


def _refuse_published(sources: Iterable[Source], where: str) -> None:
    if any(each.published_round is not None for each in sources):
        raise UserError(
            f"{where}: is about a smoke, and the published runs are of full size; give the "
            "directories of smokes alone"
        )


def _is_smoke(launch: Launch) -> bool:
    """Whether the start says that it was a smoke, of a smoke's size."""
    sizes = {each.smoke().rows for each in ROUNDS.values()}
    return launch.fields.get("smoke") == "yes" and launch.number("rows") in sizes


def _seeds(options: argparse.Namespace) -> tuple[int, ...] | None:
    if not options.seeds:
        return None
    if len(set(options.seeds)) != len(options.seeds):
        raise UserError(f"--seeds {' '.join(map(str, options.seeds))}: give different seeds")
    return tuple(sorted(options.seeds))


def _expected(options: argparse.Namespace) -> ExpectedAjax:
    if options.ajax_src:
        return _expected_checkout(options.ajax_src, "--ajax-src")
    if options.ajax_commit:
        return ExpectedAjax(commit=options.ajax_commit)
    if options.ajax_version not in (None, AJAX_RELEASE):
        return ExpectedAjax(version=options.ajax_version)
    named = os.environ.get(AJAX_VARIABLE)
    if named and options.ajax_version is None:
        variable = f"${AJAX_VARIABLE}"
        return replace(_expected_checkout(Path(named), variable), named_by=variable)
    return PINNED_AJAX


def _expected_checkout(source: Path, named_by: str) -> ExpectedAjax:
    if not source.is_dir():
        raise UserError(f"{named_by} {source}: no such directory; name a checkout's src")
    return ExpectedAjax(commit=git_state(source).commit)

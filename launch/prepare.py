"""From what a user asks to a plan whose parts are in place: code obtained, environments built."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launch import options as asked
from launch.cache import find_caches
from launch.environments import ENVIRONMENTS, ensure
from launch.info import collect_revisions, launch_fields
from launch.lock import inspect, refuse
from launch.options import Options
from launch.places import Places
from launch.plan import Plan, plan_round
from launch.preflight import check_output, check_room, inspect_python, verified_release
from launch.registration import check_registered
from launch.resume import remaining
from shared.errors import UserError
from shared.protocol import SIDES
from shared.provenance.installed import verify_search_path
from shared.provenance.named_python import check_pythons
from shared.provenance.obtain import DEFAULT_CHECKOUT, named_checkout, obtain_checkout
from shared.provenance.roots import REPO
from shared.variables import xla_flags


@dataclass(frozen=True)
class Prepared:
    """A plan whose parts are in place, and what ``launch_info.txt`` is to say of them."""

    plan: Plan
    #: The processes that are still to be run: all of a new round.
    left: Plan
    limit: int
    fields: Mapping[str, str]


def find_places(options: Options) -> Places:
    """Where the parts are or will be; nothing is cloned or built."""
    chosen = asked.chosen_round(options)
    named = f"{'smoke-' if chosen.tiny else ''}{chosen.directory}"
    checkout = named_checkout(options.reference_checkout) or DEFAULT_CHECKOUT
    if options.against is not None and not options.against.is_dir():
        raise UserError(f"--against {options.against}: no such directory; name round 1's")
    return Places(
        repo=REPO,
        out=(options.out or REPO / ".work" / named).resolve(),
        against=(options.against or REPO / ".work" / "round1").resolve(),
        checkout=checkout.resolve(),
        reference_python=options.reference_python or ENVIRONMENTS["reference"].python,
        ajax_python=options.ajax_python or ENVIRONMENTS["ajax"].python,
        study_python=Path(sys.executable),
        ajax_root=options.ajax_root.resolve() if options.ajax_root else None,
        ajax_src=asked.ajax_source(options, os.environ),
    )


def make_plan(options: Options, found: Places) -> Plan:
    """The plan that the options ask for, with its parts at ``found``."""
    sides = [side for side in SIDES if options.side in (None, side)]
    return plan_round(
        asked.chosen_round(options),
        found,
        sides=sides,
        xla_flags=xla_flags(),
        caches=None if options.no_compile_cache else find_caches(found, sides),
        compare=not options.no_compare,
        callbacks=not options.no_callbacks,
    )


def check_start(options: Options, draft: Plan) -> None:
    """Raise ``UserError`` where the directory can take no start, or another launcher has it.

    Nor can a round start whose pre-registration is not committed, or with a Python that is none
    for a side that has something left to run.
    """
    given = {"reference": options.reference_python, "ajax": options.ajax_python}
    check_pythons({side: given[side] for side in remaining(draft).sides})
    check_registered(draft)
    check_output(draft)
    refuse(draft.out, inspect(draft.out))


def prepare(options: Options, draft: Plan, limit: int) -> Prepared:
    """Obtain and verify the code, make sure of the environments, and collect what is recorded.

    Raises ``UserError``, with nothing written below the output directory.
    """
    left = remaining(draft)
    found = find_places(options)
    check_room(found.out, len(left.jobs), found.code)
    if "reference" in left.sides:
        obtain_checkout(options.reference_checkout, options.reference_remote)
    for name in environments(options, left):
        ensure(name)
    inspect_python.cache_clear()  # an earlier part of a series may have looked at it hours ago
    plan = make_plan(options, found)
    return Prepared(plan, remaining(plan), limit, start_fields(options, found, left, limit))


def environments(options: Options, left: Plan) -> list[str]:
    """The project's environments that a start of ``left`` needs; for a Python given, none."""
    return [side for side in left.sides if getattr(options, f"{side}_python") is None]


def start_fields(options: Options, found: Places, left: Plan, limit: int) -> dict[str, str]:
    """What ``launch_info.txt`` is to say of a start that runs ``left``; its parts are in place.

    Raises ``UserError`` for an environment that is unfit, and for a release with changed files.
    """
    facts = {side: inspect_python(found.python(side), side) for side in left.sides}
    for side in left.sides:
        if getattr(options, f"{side}_python") is not None:
            remedy = f"reinstall that package, or leave --{side}-python out"
            verify_search_path(facts[side].search_path, remedy)
    released = "ajax" in left.sides and found.ajax_source is None
    release = verified_release(facts["ajax"]) if released else None
    return launch_fields(
        left,
        collect_revisions(found, release, left.sides),
        facts,
        xla_flags=xla_flags(),
        limit=limit,
        command=asked.command_line(options, found.roots()),
    )

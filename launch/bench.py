"""``nox -s bench``: how fast this machine is, and what that makes of the rounds.

The file that it writes below ``.work/bench`` is what ``--dry-run`` of a round estimates from.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from launch.environments import ensure
from launch.estimate import rounds_table, this_bench
from launch.lab import Lab
from launch.limits import OBSERVER_RATIO, OBSERVER_SHARE, WARM_START, verdicts
from launch.measure import Effort, measure
from launch.measured import DIRECTORY, Bench, save
from launch.options import Options, ajax_source, usable_cores
from launch.places import Places
from launch.plan import Plan, plan_round
from launch.prepare import find_places
from launch.programs import SideCache
from launch.tell import say
from shared.errors import UserError, end_at_sigterm, run_command
from shared.obtain import obtain_checkout
from shared.protocol import ROUNDS, SERIES, SIDES
from shared.provenance import REPO
from shared.variables import xla_flags

#: A busy machine is slower than it is: above this load a note is printed.
BUSY = 0.5


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    # An ended launcher must take its processes along: both signals unwind.
    end_at_sigterm()
    found = prepare_sides(options)
    cores = usable_cores()
    place = REPO / DIRECTORY
    place.mkdir(parents=True, exist_ok=True)
    busy = os.getloadavg()[0]
    if busy > BUSY:
        say(f"note: load average {busy:.1f}; whatever else runs makes these figures worse")
    with tempfile.TemporaryDirectory(dir=place, prefix=".processes-") as scratch:
        lab = Lab(found, Path(scratch), tiny=options.tiny)
        effort = Effort(options.ticks, options.pairs, most_processes(cores))
        bench = measure(lab, effort, cores, say)
    path = this_bench(found, cores, tiny=options.tiny)
    said = verdicts(bench)
    save(path, bench, [each.to_json() for each in said])
    print(f"\n{describe_rounds(found, bench)}\n", *said, sep="\n")
    print(f"\nwritten to {path.relative_to(REPO)}")
    return 0


def prepare_sides(options: argparse.Namespace) -> Places:
    """Make sure of the environments and of the checkout; where everything is."""
    asked = Options(
        round="1",
        reference_checkout=options.reference_checkout,
        ajax_root=options.ajax_root,
    )
    ajax_source(asked, os.environ)
    obtain_checkout(options.reference_checkout)
    for side in SIDES:
        ensure(side)
    return find_places(asked)


def most_processes(cores: int) -> int:
    """Processes that can be of use at a time: as many as cores, and as the largest round has."""
    return min(cores, max(len(each.seeds) + 1 for each in ROUNDS.values()))


def describe_rounds(found: Places, bench: Bench) -> str:
    """The expected wall time of every round, or of every smoke by a bench at tiny widths."""
    # Blocks of the same size take the same time: the first stands for all.
    blocks = {name for parts in SERIES.values() for name in parts[1:] if ROUNDS[name].whole}
    kept = [each for name, each in ROUNDS.items() if name not in blocks]
    rounds = [each.smoke() if bench.tiny else each for each in kept]
    caches = {side: SideCache(REPO, "expected to be warm") for side in SIDES}
    plans: list[Plan] = [
        plan_round(each, found, xla_flags=xla_flags(), caches=caches) for each in rounds
    ]
    return (
        "expected wall time with a warm cache, * at the best --jobs, and its memory:\n"
        f"{rounds_table(plans, bench)}"
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options. Raises ``UserError`` for numbers that measure nothing."""
    parser = argparse.ArgumentParser(
        prog="nox -s bench --",
        description="Measure both sides at full width on this machine, which should be idle: "
        "start-up with a cold and a warm compilation cache, seconds per update alone and side by "
        "side, memory, and what observing costs the reference. Prints the expected wall time of "
        "every round, and of three limits whether they hold (yes or NO; the exit status does not "
        f"depend on them): observers take at most {OBSERVER_SHARE:.0%} of training time; observed "
        f"to bare, the ratio's interval holds 1 or lies below {OBSERVER_RATIO}; a warm reference "
        f"process starts within {WARM_START:.0%} of its cold start-up. Writes {DIRECTORY}/, which "
        "--dry-run reads. About 11 minutes on two cores.",
    )
    parser.add_argument(
        "--ticks", type=int, default=2, metavar="N", help="ticks of 8 updates per figure (2)"
    )
    parser.add_argument(
        "--pairs", type=int, default=12, metavar="N", help="pairs of blocks per ratio (12)"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny widths: the smokes' figures")
    parser.add_argument(
        "--reference-checkout", type=Path, metavar="DIR", help="as of a round (default: cloned)"
    )
    parser.add_argument("--ajax-root", type=Path, metavar="DIR", help="a checkout of Ajax")
    options = parser.parse_args(arguments)
    for name in ("ticks", "pairs"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} {getattr(options, name)}: give a positive number")
    return options


if __name__ == "__main__":
    run_command(main)

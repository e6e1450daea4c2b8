"""``nox -s bench``: how fast this machine is, and whether it keeps the project's limits.

The file that it writes below ``.work/bench`` is what ``--dry-run`` of a round estimates from.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from launch.announcements import say
from launch.bench_file import DIRECTORY, save
from launch.bench_measurements import Effort, measure
from launch.bench_process import ProcessStarter
from launch.environments import ensure
from launch.estimate import this_bench
from launch.limits import OBSERVER_RATIO, OBSERVER_SHARE, WARM_START, limits
from launch.options import Options, ajax_source, usable_cores
from launch.places import Places
from launch.prepare import find_places
from shared.errors import UserError, end_at_sigterm, run_command
from shared.protocol import ROUNDS, SIDES
from shared.provenance.obtain import obtain_checkout
from shared.provenance.roots import REPO

#: A busy machine is slower than it is: above this load a note is printed.
BUSY = 0.5


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    # An ended launcher must take its processes along: both signals unwind.
    end_at_sigterm()
    places, cores = prepare_sides(options), usable_cores()
    scratch_root = REPO / DIRECTORY
    scratch_root.mkdir(parents=True, exist_ok=True)
    busy = os.getloadavg()[0]
    if busy > BUSY:
        say(f"note: load average {busy:.1f}; whatever else runs makes these figures worse")
    with tempfile.TemporaryDirectory(dir=scratch_root, prefix=".processes-") as scratch:
        starter = ProcessStarter(places, Path(scratch), tiny=options.tiny)
        bench = measure(starter, Effort(options.ticks, options.pairs, most_processes(cores)), cores)
    path, kept = this_bench(places, cores, tiny=options.tiny), limits(bench)
    save(path, bench, [asdict(limit) for limit in kept])
    print("", *kept, f"written to {path.relative_to(REPO)}", sep="\n")
    print("what a round takes by it: nox -s NAME -- --dry-run, of a round or the smoke")
    return 0


def prepare_sides(options: argparse.Namespace) -> Places:
    """Make sure of the environments and of the checkout; where everything is."""
    round_options = Options(
        round="1",
        reference_checkout=options.reference_checkout,
        ajax_root=options.ajax_root,
    )
    ajax_source(round_options, os.environ)
    obtain_checkout(options.reference_checkout)
    for side in SIDES:
        ensure(side)
    return find_places(round_options)


def most_processes(cores: int) -> int:
    """Processes that can be of use at a time: as many as cores, and as the largest round has."""
    return min(cores, max(len(chosen.seeds) + 1 for chosen in ROUNDS.values()))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options. Raises ``UserError`` for numbers that measure nothing."""
    parser = argparse.ArgumentParser(
        prog="nox -s bench --",
        description="Measure both sides at full width on this machine, which should be idle: "
        "start-up with a cold and a warm compilation cache, seconds per update alone and side by "
        "side, memory, and what observing costs the reference. Says whether three limits hold (yes "
        "or NO; the exit status does not depend on them): observers take at most "
        f"{OBSERVER_SHARE:.0%} of training time; observed to bare, the ratio's interval holds 1 or "
        f"lies below {OBSERVER_RATIO}; a warm reference process starts within {WARM_START:.0%} of "
        f"its cold start-up. Writes {DIRECTORY}/, from which --dry-run says how long a round "
        "takes. About 11 minutes on two cores.",
    )
    parser.add_argument(
        "--ticks", type=int, default=2, metavar="N", help="ticks of 8 updates per figure (2)"
    )
    parser.add_argument(
        "--pairs", type=int, default=12, metavar="N", help="pairs of blocks per ratio (12)"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny widths: the smokes' figures")
    parser.add_argument(
        "--reference-checkout", type=Path, metavar="DIR", help="the reference (default: cloned)"
    )
    parser.add_argument("--ajax-root", type=Path, metavar="DIR", help="a checkout of Ajax")
    options = parser.parse_args(arguments)
    for name in ("ticks", "pairs"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} {getattr(options, name)}: give a positive number")
    return options


if __name__ == "__main__":
    run_command(main)

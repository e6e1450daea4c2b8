"""``python -m ref_side.run``: one seed of the reference, recorded as protocol section 7 says."""

import argparse
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ref_side.arms import PATCHES, patch_text
from ref_side.imports import import_reference
from ref_side.interrupt import end_at_once
from shared.errors import UserError, run_command
from shared.protocol import LARGEST_SEED, N_ENVS, REFERENCE_REMOTE, ROUNDS
from shared.provenance.checkout import Checkout, verify_checkout
from shared.provenance.obtain import DEFAULT_CHECKOUT, obtain_checkout
from shared.provenance.roots import OUT_ROOT, REFERENCE_ROOT, REPO, Roots, package_versions
from shared.records.digests import finish
from shared.records.files import write_atomic, write_json
from shared.records.layout import PATCH, REFERENCE_ARGUMENTS, REFERENCE_CONFIG, TIMING, RunLayout
from shared.records.own_directory import OwnDirectories
from shared.variables import CHECKOUT_VARIABLE, XLA_FLAGS_VARIABLE, set_jax_environment

if TYPE_CHECKING:  # it imports the reference, which must be verified first
    from ref_side.session import Settings


def main() -> int:
    """Run the command; the exit status."""
    began = time.time()
    options = parse()
    check(options)
    set_jax_environment("reference")
    layout = RunLayout(options.out.resolve())
    directory = layout.reference_dir(options.seed)
    if directory.exists():
        raise UserError(f"{directory} exists already; choose another --out, or move it away")
    own = OwnDirectories.existing(layout.root)
    checkout = obtain_checkout(options.checkout, options.remote)
    import_reference(checkout)
    from ref_side.session import Settings

    settings = Settings(
        arm=options.arm,
        seed=options.seed,
        rows=options.rows,
        every=options.every,
        episodes=options.episodes,
        progress_every=options.progress_every,
        tiny=options.tiny,
        directory=directory,
        began=began,
        round=options.round,
    )
    run(settings, checkout, own)
    # What was imported late must have been the pinned code too.
    verify_checkout(checkout.root, checkout.commit)
    finish(layout, directory.name, own)
    return 0


def run(settings: "Settings", checkout: Checkout, own: OwnDirectories) -> None:
    """Write what is known beforehand, train, and write the timing."""
    from ref_side.recorder import Recorder
    from ref_side.session import Session

    directory = settings.directory
    own.make(directory)
    end_at_once()  # until the loop starts
    describe(settings, checkout)
    print(f"{directory.name}: arm {settings.arm}, building and compiling", flush=True)
    recorder = Recorder(
        directory,
        settings.seed,
        settings.rows,
        settings.began,
        arm=settings.arm,
        round=settings.round,
    )
    session = Session(settings, recorder)
    try:
        session.run()
    finally:
        recorder.close()
    own.check()
    write_json(directory / TIMING, session.timing)
    print(f"{directory.name}: done after {session.timing['total_s']:.0f} s", flush=True)


def describe(settings: "Settings", checkout: Checkout) -> None:
    """Write ``config.yaml``, ``run_args.json`` and the arm's ``PATCH.txt``."""
    from ref_side.session import resolve

    roots = Roots(**{REFERENCE_ROOT: checkout.root, OUT_ROOT: settings.directory.parent})
    logdir = roots.record(settings.directory)
    resolve(settings.overrides(logdir)).save(settings.directory / REFERENCE_CONFIG)
    write_json(settings.directory / REFERENCE_ARGUMENTS, arguments(settings, checkout, roots))
    patch = patch_text(settings.arm)
    if patch is not None:
        write_atomic(settings.directory / PATCH, patch)


def arguments(settings: "Settings", checkout: Checkout, roots: Roots) -> Mapping[str, Any]:
    """Content of ``run_args.json``: the command's arguments, and what ran."""
    import dreamerv3.agent
    import embodied
    import jax

    out = roots.record(settings.directory)
    return {
        "seed": settings.seed,
        "arm": settings.arm,
        "round": settings.round,
        "rows": settings.rows,
        "eval_every": settings.every,
        "eval_episodes": settings.episodes,
        "progress_every": settings.progress_every,
        "out": out,
        "tiny": settings.tiny,
        "overrides": settings.overrides(out),
        "jax": jax.__version__,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "agent_file": roots.record(Path(dreamerv3.agent.__file__)),
        "embodied_file": roots.record(Path(embodied.__file__)),
        "reference_commit": checkout.commit,
        # Its files were compared with the commit, one by one, before the first import.
        "reference_dirty": False,
        "python": platform.python_version(),
        "packages": package_versions(),
    }


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m ref_side.run",
        description="Train the reference DreamerV3 on CartPole, one seed, and write OUT/ref_s<S> "
        "as protocol section 7 has it. Runs inside the reference environment; the checkout is "
        "verified against its pinned commit first and never written to.",
        epilog=f"Environment: {XLA_FLAGS_VARIABLE['reference']} becomes XLA_FLAGS; variables "
        "of jax's compilation cache count. To run from inside the checkout, set PYTHONSAFEPATH=1: "
        "python would import from it at once.",
    )
    _add_code(parser)
    _add_sizes(parser)
    parser.add_argument(
        "--out", required=True, type=Path, metavar="OUT", help="output directory of the round"
    )
    return parser.parse_args(given)


def _add_code(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkout",
        "--reference-checkout",
        type=Path,
        metavar="DIR",
        help=f"the reference checkout (default: ${CHECKOUT_VARIABLE}, else "
        f"{DEFAULT_CHECKOUT.relative_to(REPO)} of this project, cloned if missing)",
    )
    parser.add_argument(
        "--remote",
        "--reference-remote",
        default=REFERENCE_REMOTE,
        metavar="URL",
        help="where to clone from (default: %(default)s)",
    )
    parser.add_argument("--arm", required=True, choices=PATCHES, help="what is patched")
    parser.add_argument("--round", choices=ROUNDS, help="the round that the records name")


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", required=True, type=int, metavar="S", help="seed of the run")
    parser.add_argument(
        "--rows", required=True, type=int, metavar="N", help="rows of all 16 environments together"
    )
    parser.add_argument(
        "--every", required=True, type=int, metavar="K", help="rows between evaluations"
    )
    parser.add_argument(
        "--episodes", type=int, default=10, metavar="E", help="episodes of an evaluation (10)"
    )
    parser.add_argument(
        "--progress-every", type=int, default=160, metavar="K", help="rows between progress (160)"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny widths (smoke)")


def check(options: argparse.Namespace) -> None:
    """Raise ``UserError`` for sizes that would end in another run than asked."""
    if not 0 <= options.seed <= LARGEST_SEED:
        raise UserError(f"--seed {options.seed}: give a number from 0 to {LARGEST_SEED}")
    if options.episodes < 1:
        raise UserError(f"--episodes {options.episodes}: give a positive number")
    for name in ("rows", "every", "progress_every"):
        value = getattr(options, name)
        if value < 1 or value % N_ENVS:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} {value}: give a positive multiple of {N_ENVS} environments")
    if options.rows % options.every:
        raise UserError(
            f"--rows {options.rows}: give a multiple of --every {options.every}, so that the run "
            "ends at a checkpoint"
        )


if __name__ == "__main__":
    run_command(main)

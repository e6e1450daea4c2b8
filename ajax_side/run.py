"""``python -m ajax_side.run``: one Ajax run, all seeds in one vmapped call (protocol section 3)."""

import argparse
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ajax_side.arms import PATCHES, apply_arm
from ajax_side.identity import Source, find_source, import_ajax
from ajax_side.interrupt import end_on_signals
from ajax_side.recorder import Recorder
from shared.errors import EXIT_NO, NotLearningError, UserError, run_command
from shared.protocol import AJAX_RELEASE, LARGEST_SEED, N_ENVS, ROUNDS, checkpoints
from shared.provenance.roots import OUT_ROOT, REPO, package_versions
from shared.records.digests import finish
from shared.records.files import write_atomic, write_json
from shared.records.layout import AJAX_CONFIG, AJAX_FINAL, AJAX_NAME, PATCH, TIMING, RunLayout
from shared.records.own_directory import OwnDirectories
from shared.variables import AJAX_VARIABLE, XLA_FLAGS_VARIABLE, set_jax_environment

if TYPE_CHECKING:  # it loads jax and Ajax, which must wait for their environment
    from ajax_side.training import Plan

#: Where Ajax and matplotlib would otherwise write into the user's home.
_CACHES = REPO / ".work" / "cache"


def main() -> int:
    """Run the command; the exit status."""
    started = time.time()
    options = parse()
    check(options)
    layout = RunLayout(options.out.resolve())
    if layout.ajax_dir.exists():
        raise UserError(f"{layout.ajax_dir} exists already: choose another --out, or move it away")
    set_environment()
    own = OwnDirectories.existing(layout.root)
    source = find_source(options.ajax_root, options.ajax_version)
    print(f"ajax: {source}, arm {options.arm}, seeds {options.seeds}", flush=True)
    import_ajax(source)
    patch = apply_arm(options.arm)
    status = run(options, layout, source, patch, started, own)
    if status == 0:
        finish(layout, AJAX_NAME, own)
    return status


def run(
    options: argparse.Namespace,
    layout: RunLayout,
    source: Source,
    patch: str | None,
    started: float,
    own: OwnDirectories,
) -> int:
    """Train with everything in place; files are written as their content becomes known."""
    from ajax_side import observers, training

    plan = training.Plan(
        tuple(options.seeds), options.rows, options.every, options.episodes, options.tiny
    )
    agent = training.build_agent(plan)
    own.make(layout.ajax_dir)
    recorder = Recorder(
        layout, plan.seeds, plan.rows, started, arm=options.arm, round=options.round
    )
    stored = options.no_callbacks
    observed = observers.observe(recorder.log, recorder.beat, stored=stored)
    config = training.describe(agent, plan)
    config["run"] = describe_run(options, plan, source, observed)
    write_json(layout.ajax_dir / AJAX_CONFIG, config)
    if patch is not None:
        write_atomic(layout.ajax_dir / PATCH, patch)
    end_on_signals(recorder)
    when = "when it has ended" if stored else "at every log point"
    print(f"ajax: compiling, then training; lines follow {when}", flush=True)
    began = time.time()
    try:
        state, metrics = training.train(agent, plan, config["ring_rows"])
    except Exception:
        raise_failure(recorder)
        raise
    ended = time.time()
    own.check()
    write_atomic(layout.ajax_dir / AJAX_FINAL, training.final_state(state, plan.seeds))
    timing = {"t_start": started, "t_train": began, "t_end": ended, "train_wall_s": ended - began}
    write_json(layout.ajax_dir / TIMING, timing)
    if stored:
        recorder.take(metrics)
    return conclude(recorder, metrics, plan, ended - began)


def conclude(
    recorder: Recorder, metrics: Mapping[str, Any], plan: "Plan", train_wall_s: float
) -> int:
    """Close the records and compare them with what the call returned; the exit status."""
    recorder.close()
    raise_failure(recorder)
    faults = recorder.faults(metrics, checkpoints(plan.rows, plan.every))
    for fault in faults:
        print(f"ajax: {fault}", flush=True)
    print(f"ajax: done, {train_wall_s:.0f} s of training", flush=True)
    return EXIT_NO if faults else 0


def raise_failure(recorder: Recorder) -> None:
    """What went wrong in a callback, which Ajax's run reports as some failure or not at all."""
    if isinstance(recorder.failure, NotLearningError | UserError | OSError):
        raise recorder.failure from None
    if recorder.failure is not None:
        raise UserError(f"recording failed: {recorder.failure}") from None


def describe_run(
    options: argparse.Namespace, plan: "Plan", source: Source, observed: list[str]
) -> dict[str, Any]:
    """``run`` of ``config.json``: the command's arguments, and what ran."""
    import jax

    return {
        "arm": options.arm,
        "round": options.round,
        "seeds": list(plan.seeds),
        "rows": plan.rows,
        "log_every": plan.every,
        "eval_episodes": plan.episodes,
        "out": f"<{OUT_ROOT}>/{AJAX_NAME}",
        "tiny": plan.tiny,
        # One vmapped call over all seeds: part of the protocol, it changes early numerics.
        "mode": "vmap",
        "jax": jax.__version__,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        **source.record(),
        "observers": observed,
        "packages": package_versions(),
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m ajax_side.run",
        description="Train Ajax's DreamerV3 on CartPole, all seeds in one vmapped call, and write "
        "OUT/ajax as protocol section 7 describes it. Runs inside the Ajax environment.",
        epilog=f"Environment: {AJAX_VARIABLE} names a src directory (as --ajax-root DIR does with "
        f"DIR/src); {XLA_FLAGS_VARIABLE['ajax']} becomes XLA_FLAGS; AJAX_JAX_COMPILE_CACHE_DIR "
        "moves Ajax's compilation cache from .work/cache/ajax of this project, "
        "AJAX_NO_COMPILE_CACHE=1 turns it off.",
    )
    parser.add_argument("--arm", required=True, choices=PATCHES, help="what is patched")
    parser.add_argument("--round", choices=ROUNDS, help="the round that the records name")
    parser.add_argument("--seeds", required=True, type=int, nargs="+", metavar="S")
    parser.add_argument("--rows", required=True, type=int, help="rows of all 16 environments")
    parser.add_argument("--every", required=True, type=int, help="rows between log points")
    parser.add_argument("--episodes", required=True, type=int, help="episodes of an evaluation")
    parser.add_argument("--out", required=True, type=Path, help="output directory of the round")
    parser.add_argument("--tiny", action="store_true", help="tiny widths (smoke)")
    parser.add_argument("--ajax-root", type=Path, metavar="DIR", help="run DIR/src of a checkout")
    parser.add_argument(
        "--ajax-version",
        default=AJAX_RELEASE,
        metavar="V",
        help="the installed release to expect (default: %(default)s)",
    )
    parser.add_argument(
        "--no-callbacks",
        action="store_true",
        help="train without host callbacks, so that jax's compilation cache can store the "
        "program; records are written when training has ended",
    )
    return parser.parse_args(arguments)


def check(options: argparse.Namespace) -> None:
    """Raise :class:`UserError` for sizes that would end in another run than asked."""
    in_range = all(0 <= seed <= LARGEST_SEED for seed in options.seeds)
    if len(set(options.seeds)) != len(options.seeds) or not in_range:
        raise UserError(f"--seeds {options.seeds}: give different seeds from 0 to {LARGEST_SEED}")
    for name in ("every", "rows", "episodes"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} {getattr(options, name)}: give a positive number")
    if options.every % N_ENVS:
        raise UserError(f"--every {options.every}: give a multiple of the {N_ENVS} environments")
    if options.rows % options.every:
        raise UserError(
            f"--rows {options.rows}: give a multiple of --every {options.every}, so that the run "
            "ends at a log point"
        )


def set_environment() -> None:
    """Set what jax, Ajax and matplotlib read when they are imported (protocol section 1)."""
    set_jax_environment("ajax")
    if not os.environ.get("AJAX_NO_COMPILE_CACHE"):
        os.environ.setdefault("AJAX_JAX_COMPILE_CACHE_DIR", str(_CACHES / "ajax"))
    os.environ.setdefault("MPLCONFIGDIR", str(_CACHES / "matplotlib"))


if __name__ == "__main__":
    run_command(main)

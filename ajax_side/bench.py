"""``python -m ajax_side.bench``: the compiled call of Ajax, paced (:mod:`shared.probes.pace`).

The program is that of a full run of round 1 or 2; it stands still inside its heartbeat, between
two ticks.
"""

import argparse
from pathlib import Path

from ajax_side.arms import apply_arm
from ajax_side.identity import find_source, import_ajax
from ajax_side.run import set_environment
from shared.errors import run_command
from shared.probes.pace import Pace, take_stdout
from shared.protocol import N_ENVS

#: Sizes of rounds 1 and 2: they decide the program, and how large its replay ring is.
ROWS, EVERY, EPISODES = 20_000, 2_000, 10
#: Of the tick that follows a pause a part may be computed before.
SKIPPED_TICKS = 1


def main() -> int:
    """Train until the bench asks for no more; the process ends inside."""
    options = parse()
    replies = take_stdout()
    set_environment()
    import_ajax(find_source(options.ajax_root))
    apply_arm("stock")
    from ajax_side import observers, training

    plan = training.Plan(tuple(options.seeds), ROWS, EVERY, EPISODES, options.tiny)
    pace = Pace(replies, skip=SKIPPED_TICKS)
    observers.observe(lambda *_: None, lambda rows: pace.tick(rows // N_ENVS), stored=False)
    agent = training.build_agent(plan)
    training.train(agent, plan, agent._ring_rows(plan.rows))
    return 0


def parse() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m ajax_side.bench",
        description="Train Ajax tick by tick as commands on stdin ask; replies on stdout. "
        "nox -s bench runs this inside the Ajax environment.",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="S")
    parser.add_argument("--ajax-root", type=Path, metavar="DIR", help="run DIR/src of a checkout")
    parser.add_argument("--tiny", action="store_true", help="tiny widths")
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)

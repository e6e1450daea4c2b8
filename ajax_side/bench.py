"""``python -m ajax_side.bench``: Ajax's one compiled call, paced by the bench (``shared.pace``).

The program is that of a full run of round 1 or 2; it stands still inside its heartbeat, between
two ticks.
"""

import argparse
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ajax_side.arms import apply_arm
from ajax_side.identity import find_source, import_ajax
from ajax_side.run import set_environment
from shared.errors import run_command
from shared.pace import Pace, take_stdout
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
    sums = Sums(len(options.seeds))
    pace = Pace(replies, skip=SKIPPED_TICKS, report=sums.report)
    observers.observe(lambda *_: None, lambda rows: pace.tick(rows // N_ENVS), stored=False)
    if options.digest:
        add_sums(sums)
    agent = training.build_agent(plan)
    training.train(agent, plan, agent._ring_rows(plan.rows))
    return 0


class Sums:
    """A number for every tick that the parameters of all ``seeds`` decide, in whatever order."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._numbers: dict[int, list[int]] = {}

    def add(self, tick: Any, number: Any) -> None:
        """Take in one seed's number at the start of ``tick``."""
        self._numbers.setdefault(int(tick), []).append(int(number))

    def report(self) -> Mapping[str, Any]:
        """The digest: ``tick:number`` of every tick that all seeds have reported so far.

        Host callbacks arrive late and in any order: of the last ticks some seeds may be missing.
        """
        whole = {
            tick: sum(numbers) % 2**32
            for tick, numbers in sorted(self._numbers.items())
            if len(numbers) == self._seeds
        }
        return {"digest": " ".join(f"{tick}:{total}" for tick, total in whole.items()) or None}


def add_sums(sums: Sums) -> None:
    """Have ``sums`` told at the start of every tick what the parameters are.

    A seed's number is the sum of their bits as whole numbers, modulo 2**32: in any order the same.
    """
    import jax
    from jax import numpy as jnp

    module = importlib.import_module("ajax.agents.DreamerV3.train_DreamerV3")
    stock = module.collect

    def observed(agent_state: Any, tick: Any, **options: Any) -> Any:
        states = (
            agent_state.world_model_state,
            agent_state.actor_state,
            agent_state.critic_state,
        )
        leaves = jax.tree.leaves([each.params for each in states])
        bits = [jax.lax.bitcast_convert_type(each, jnp.int32).sum() for each in leaves]
        jax.debug.callback(sums.add, tick, sum(bits))
        return stock(agent_state, tick, **options)

    module.collect = observed  # type: ignore[attr-defined]


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
    parser.add_argument(
        "--digest", action="store_true", help="also tell what the parameters are at every tick"
    )
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)

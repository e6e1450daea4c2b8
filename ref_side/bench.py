"""``python -m ref_side.bench``: the stock loop, paced by bench (:mod:`shared.probes.pace`).

A command's ``observed`` attaches or detaches the observers of a run. Attached, they do at every
tick what they do in a run at every tenth (progress) or later (checkpoint, evaluation).
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ref_side.imports import import_reference
from shared.errors import run_command
from shared.probes.pace import Pace, take_stdout
from shared.protocol import N_ENVS
from shared.provenance.obtain import obtain_checkout

if TYPE_CHECKING:  # it imports the reference, which must be verified first
    from ref_side.environment import FinishedEpisode

#: Long enough for every block that a bench asks for, and the replay of a real run.
ROWS, SEED = 20_000, 0


def main() -> int:
    """Train until the bench asks for no more; the process ends inside."""
    options = parse()
    began = time.time()
    replies = take_stdout()
    import_reference(obtain_checkout(options.checkout))
    from ref_side.recorder import Recorder
    from ref_side.session import Settings

    directory = options.out.resolve()
    directory.mkdir(parents=True)
    settings = Settings(
        arm="stock",
        seed=SEED,
        rows=ROWS,
        every=N_ENVS,
        episodes=10,
        progress_every=N_ENVS,
        tiny=options.tiny,
        directory=directory,
        began=began,
    )
    paced = paced_session()(settings, Recorder(directory, SEED, ROWS, began))
    paced.pace = Pace(replies, settle=paced.settle, prepare=paced.prepare, report=paced.report)
    paced.run()
    return 0


def paced_session() -> Any:
    """A session that is held at the end of each vector step, with observers that can be detached.

    Made by a function because its base imports the reference, which must be verified first.
    """
    import jax

    from ref_side.session import Session

    class PacedSession(Session):
        pace: Pace
        #: Detached until the bench asks: start-up is that of training alone.
        _observed = False

        def _make_agent(self) -> Any:
            agent = super()._make_agent()
            self._observed_train = agent.train
            self._attach(observed=False)
            return agent

        def _attach(self, *, observed: bool) -> None:
            self._observed = observed
            if observed:
                self._agent.train = self._observed_train
            else:
                # What stands on the instance hides the class's own method.
                vars(self._agent).pop("train", None)

        def _finished(self, worker: int, episode: "FinishedEpisode") -> None:
            if self._observed:
                super()._finished(worker, episode)

        def _vector_step(self) -> None:
            if self._observed:
                super()._vector_step()
            self.pace.tick(int(self._step) // N_ENVS)

        def settle(self) -> None:
            jax.block_until_ready(self._agent.params)

        def prepare(self, command: Mapping[str, Any]) -> None:
            self._attach(observed=bool(command.get("observed", False)))

        def report(self) -> dict[str, Any]:
            return {
                "observer_s": self._observing.seconds,
                "evaluation_s": self._evaluating.seconds,
            }

    return PacedSession


def parse() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m ref_side.bench",
        description="Train the reference tick by tick as commands on stdin ask; replies on stdout. "
        "nox -s bench runs this inside the reference environment.",
    )
    parser.add_argument("--checkout", required=True, type=Path, metavar="DIR")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="must not exist")
    parser.add_argument("--tiny", action="store_true", help="tiny widths")
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)

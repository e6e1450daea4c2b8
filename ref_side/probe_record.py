"""Parameters and batches of a reference run: those of its first updates, as its step gets them.

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
from dreamerv3 import ninjax as nj

from ref_side.recorder import Recorder
from ref_side.session import Session, Settings
from shared.probes.matched_case import CONTEXT, FIELDS, LOGITS_AT, networks_of
from shared.probes.probing import Progress
from shared.protocol import FIRST_UPDATE_ROW, N_ENVS, ROWS_PER_UPDATE
from shared.records.arrays import Arrays, above


def rows_for(updates: int) -> int:
    """Rows after which a run has done at least this many updates; whole vector steps."""
    rows = FIRST_UPDATE_ROW + (updates - 1) * ROWS_PER_UPDATE
    return -(-rows // N_ENVS) * N_ENVS


class RecordedSession(Session):
    """A stock run without evaluations or progress lines that keeps what its updates are given."""

    def __init__(self, settings: Settings, recorder: Recorder, updates: int) -> None:
        super().__init__(settings, recorder)
        self._wanted = updates
        self._progress = Progress("recording", updates)
        self._batches: list[Arrays] = []
        self._parameters: Arrays = {}
        self._logits: Arrays = {}

    def _make_agent(self) -> Any:
        agent = super()._make_agent()
        self._parameters = networks_of(agent.params)
        stock = agent.train

        def train(data: Any, carry: Any) -> Any:
            # What this call is given: the loop has drawn the next batch already, and the metrics
            # that it returns are those of the call before (D1).
            if len(self._batches) < self._wanted:
                if len(self._batches) in LOGITS_AT:
                    self._logits |= above(head_logits(agent, data), str(len(self._batches)))
                self._batches.append(kept(data))
                self._progress.tell(len(self._batches))
            return stock(data, carry)

        agent.train = train
        return agent

    def recorded(self) -> Arrays:
        """``parameters/<name>`` before the first update, ``batches/<field> [updates, 16, ...]``.

        And ``logits/<updates>/<head> [16, 65, bins]`` after as many updates as LOGITS_AT names.
        """
        whole = {
            name: np.stack([each[name] for each in self._batches])
            for name in (*FIELDS, *CONTEXT)
        }  # fmt: skip
        return {
            **above(self._parameters, "parameters"),
            **above(whole, "batches"),
            **above(self._logits, "logits"),
        }


def kept(data: Any) -> Arrays:
    """Of one batch what a training step reads: every field, and the latents of row 0."""
    fields = {name: np.array(data[name]) for name in FIELDS}
    return fields | {name: np.array(data[name][:, 0]) for name in CONTEXT}


def head_logits(agent: Any, data: Any) -> Arrays:
    """Logits ``[16, 65, bins]`` of both two-hot heads for the latents that a batch came with."""
    inner = agent.agent
    classes = agent.config.dyn.rssm.classes
    feature = {"deter": data["deter"], "stoch": jax.nn.one_hot(data["stoch"], classes)}
    heads = {"reward": inner.rew, "critic": inner.critic}
    return {
        name: np.array(nj.pure(head)(agent.params, feature)[1].logits)
        for name, head in heads.items()
    }


def probe(arrays: Arrays) -> Arrays:
    """See :meth:`RecordedSession.recorded`. Reads ``seed []``, ``tiny []`` and ``updates []``."""
    updates = int(arrays["updates"])
    rows = rows_for(updates)
    with TemporaryDirectory() as place:
        directory = Path(place) / "run"
        directory.mkdir()
        settings = Settings(
            arm="stock",
            seed=int(arrays["seed"]),
            rows=rows,
            # Neither comes to pass.
            every=2 * rows,
            progress_every=2 * rows,
            episodes=1,
            tiny=bool(arrays["tiny"]),
            directory=directory,
            began=time.time(),
        )
        recorder = Recorder(directory, settings.seed, rows, settings.began)
        session = RecordedSession(settings, recorder, updates)
        try:
            session.run()
        finally:
            recorder.close()
    return session.recorded()

"""What the probes of both sides do alike, whatever library computes it."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shared.records.arrays import Arrays

#: A head of the size of the protocol's reward head, fed a few features.
HEAD_UNITS, HEAD_FEATURES = 64, 8
#: Logits arrays with this prefix hold zeros only: a head with its initial parameters gives them.
ZERO = "zero"

Programs = Mapping[str, Callable[[Any], Any]]

#: A line of a probe's stdout that starts so is shown to the user, without it.
TELLING = "progress: "
#: Seconds between two such lines.
_QUIET_SECONDS = 20.0


class Progress:
    """Tells now and then how far a probe of many updates is."""

    def __init__(self, name: str, updates: int) -> None:
        self._name, self._updates = name, updates
        self._told = self._began = time.monotonic()

    def tell(self, done: int) -> None:
        """``done`` updates are behind; a line is printed if the last one is old, and at the end."""
        now = time.monotonic()
        if now - self._told >= _QUIET_SECONDS or done == self._updates:
            self._told = now
            seconds = now - self._began
            text = f"{self._name}: update {done} of {self._updates}, {seconds:.0f} s"
            print(f"{TELLING}{text}", flush=True)


def apply_forms(
    logits: Arrays, *, eager: Programs, jit: Programs, head: Programs, bins: Any
) -> Arrays:
    """``<form>/<mode>/<case>`` -> expectations ``[...]`` of every case's logits ``[..., bins]``.

    ``eager`` runs operation by operation, ``jit`` as one program with the bins a constant of it;
    ``head`` maps features ``[rows, HEAD_FEATURES]`` to expectations in one program that starts
    with the head's layers, so that it runs for the flat zero cases only. ``bins`` go along.
    """
    found = {"bins": np.asarray(bins)}
    for case, each in logits.items():
        given = np.asarray(each, np.float32)
        for mode, programs in (("eager", eager), ("jit", jit)):
            for form, program in programs.items():
                found[f"{form}/{mode}/{case}"] = np.asarray(program(given))
        if case.startswith(ZERO) and given.ndim == 2:
            features = np.random.default_rng(0).normal(size=(len(given), HEAD_FEATURES))
            for form, program in head.items():
                found[f"{form}/head/{case}"] = np.asarray(program(features.astype(np.float32)))
    return found

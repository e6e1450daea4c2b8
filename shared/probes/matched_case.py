"""What the ``matched`` instrument gives both sides, what they answer, and the noise they share.

A *recording* holds the parameters of a reference run before its first update, and the batches of
its first updates as its training step was given them. A *run* trains on a recording: no
environment, no replay, and in place of every random draw the noise of :func:`draw_noise`.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from shared.probes.parameter_map import is_network
from shared.probes.probing import Progress
from shared.protocol import ARMS, Form, Side
from shared.records.arrays import Arrays, above, below

#: Fields of a batch, each ``[16, 65, ...]``; row 0 is replay context.
FIELDS = ("vector", "action", "reward", "is_first", "is_last", "is_terminal")
#: Latent state of row 0, the only one that a training step reads.
CONTEXT = ("deter", "stoch")

#: Numbers of updates after which a recording holds logits of the two-hot heads.
LOGITS_AT = (10, 100)

#: State after an update, beside the metrics: norm of critic minus slow critic, return normaliser.
SLOW_DISTANCE = "slow_critic/distance"
NORMALISER = ("retnorm/low", "retnorm/high")
FIGURES = (SLOW_DISTANCE, *NORMALISER)

#: Quantiles of the Gumbel distribution that noise is drawn from.
LEVELS = 1 << 16


@dataclass(frozen=True)
class Sizes:
    """Axes of a training step: ``batch`` x ``length`` trained rows, ``horizon`` imagined steps."""

    batch: int
    length: int
    horizon: int
    stoch: int
    classes: int
    actions: int


@dataclass(frozen=True)
class Run:
    """One training run of a side. ``shaken``: from parameters moved by :data:`SHAKE`."""

    name: str
    form: Form
    shaken: bool = False


#: Relative step by which a shaken run moves every parameter up or down at random before its first
#: update: by one or two float32, as if it had been rounded otherwise. Zeros stay zeros.
SHAKE = 2.0**-23


@dataclass(frozen=True)
class Case:
    """What a side is asked: ``runs`` over ``updates``, with ``changes`` of its configuration."""

    tiny: bool
    updates: int
    noise_seed: int
    runs: Sequence[Run]
    #: Key of the side's own configuration -> new value as text.
    changes: Mapping[str, str]
    #: Reference name -> tensor, and field -> ``[updates, 16, ...]``.
    parameters: Arrays
    batches: Arrays

    def arrays(self) -> Arrays:
        """As arrays, for a probe."""
        settings = {
            "tiny": self.tiny,
            "updates": self.updates,
            "noise_seed": self.noise_seed,
            "runs": [asdict(run) for run in self.runs],
            "changes": dict(self.changes),
        }
        whole = {name: each[: self.updates] for name, each in self.batches.items()}
        return {
            "settings": as_text(settings),
            **above(self.parameters, "parameters"),
            **above(whole, "batches"),
        }

    @classmethod
    def of(cls, arrays: Arrays) -> "Case":
        """The case that :meth:`arrays` wrote."""
        settings = of_text(arrays["settings"])
        settings["runs"] = [Run(**each) for each in settings["runs"]]
        return cls(
            parameters=below(arrays, "parameters"), batches=below(arrays, "batches"), **settings
        )

    def start_of(self, run: Run) -> Arrays:
        """The parameters that a run starts from."""
        if not run.shaken:
            return self.parameters
        rng = np.random.default_rng(self.noise_seed)
        moved = {}
        for name, each in sorted(self.parameters.items()):
            steps = SHAKE * rng.choice((-1, 1), each.shape)
            moved[name] = (each * (1 + steps)).astype(each.dtype)
        return moved

    def batch(self, update: int) -> Arrays:
        """Fields and context of the batch of ``update``, counted from 0."""
        return {name: each[update] for name, each in self.batches.items()}


def arm_of(side: Side, form: Form) -> str:
    """The side's arm that computes this form and changes nothing else."""
    return next(
        each.name
        for each in ARMS
        if (each.side, each.expectation, each.seeded_sampler) == (side, form, False)
    )


def as_text(value: Any) -> np.ndarray:
    """JSON data as an array of one string."""
    return np.asarray(json.dumps(value))


def of_text(array: np.ndarray) -> Any:
    """The JSON data of :func:`as_text`."""
    return json.loads(str(array))


def networks_of(parameters: Mapping[str, Any]) -> Arrays:
    """The networks' tensors among a reference agent's parameters, copied."""
    return {name: np.array(each) for name, each in parameters.items() if is_network(name)}


# --- noise ------------------------------------------------------------------------------------


@cache
def _gumbel() -> Any:
    # Of the C library, which the interpreters of a machine share: two releases of numpy need not
    # round their own logarithms alike.
    middles = ((level + 0.5) / LEVELS for level in range(LEVELS))
    return np.array([-math.log(-math.log(middle)) for middle in middles], np.float32)


def draw_noise(seed: int, update: int, sizes: Sizes) -> Arrays:
    """Standard Gumbel noise of one training step, float32, the same wherever it is drawn.

    ``posterior [batch, length, stoch, classes]``; ``prior [batch x length, horizon, stoch,
    classes]`` and ``action [batch x length, horizon + 1, actions]``, starts batch-major. Every
    element is one of :data:`LEVELS` equally probable quantiles.
    """
    starts = sizes.batch * sizes.length
    latent = (sizes.stoch, sizes.classes)
    shapes = {
        "posterior": (sizes.batch, sizes.length, *latent),
        "prior": (starts, sizes.horizon, *latent),
        "action": (starts, sizes.horizon + 1, sizes.actions),
    }
    rng = np.random.default_rng([seed, update])

    def draw(shape: tuple[int, ...]) -> Any:
        levels = np.frombuffer(rng.bytes(2 * math.prod(shape)), "<u2")
        return _gumbel()[levels].reshape(shape)

    return {name: draw(shape) for name, shape in shapes.items()}


class Digests:
    """SHA-256 over all noise and all batches that a run was given, so that equality is checked."""

    def __init__(self) -> None:
        self._noise, self._batches = hashlib.sha256(), hashlib.sha256()

    def add(self, noise: Arrays, batch: Arrays) -> None:
        """Take in what one update is given."""
        for digest, arrays in ((self._noise, noise), (self._batches, batch)):
            for name, each in sorted(arrays.items()):
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(each).data)

    def arrays(self) -> Arrays:
        """``digest/noise`` and ``digest/batches``, hexadecimal."""
        return {
            "digest/noise": np.asarray(self._noise.hexdigest()),
            "digest/batches": np.asarray(self._batches.hexdigest()),
        }


#: A side's training step: ``(state, batch, noise) -> (state, metrics by their reference names)``.
Step = Callable[[Any, Arrays, Arrays], tuple[Any, Mapping[str, Any]]]


def follow(case: Case, run: Run, sizes: Sizes, state: Any, step: Step) -> Arrays:
    """Take a side's own step over every update of the case, from ``state``.

    Metrics ``[updates]``, and ``digest/...`` of what the run was given.
    """
    progress, digests = Progress(run.name, case.updates), Digests()
    history = []
    for update in range(case.updates):
        batch, noise = case.batch(update), draw_noise(case.noise_seed, update, sizes)
        digests.add(noise, batch)
        state, metrics = step(state, batch, noise)
        history.append(metrics)
        progress.tell(update + 1)
    metrics = {name: np.array([each[name] for each in history]) for name in history[0]}
    return metrics | digests.arrays()

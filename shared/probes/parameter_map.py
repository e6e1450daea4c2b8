"""Which parameter tensor of the reference is which of Ajax's (protocol section 3).

Names are the reference's flat keys (``agent/enc/mlp0/kernel``) and Ajax's paths below one of its
parameter groups (``world_model/enc/Dense_0/kernel``; groups ``world_model``, ``actor``,
``critic``, ``slow_critic``). Tensors have the same layout on both sides but one: each of the
reference's two-hot heads computes 256 logits and drops the last, Ajax's computes the 255 in use.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from shared.errors import UserError
from shared.records.arrays import Arrays

#: Logits of a two-hot head that are used.
BINS = 255


@dataclass(frozen=True)
class Pair:
    """One tensor: its name on each side; of its last axis ``kept`` are used (``None``: all)."""

    reference: str
    ajax: str
    kept: int | None = None


def _linear(reference: str, ajax: str, kept: int | None = None) -> Iterator[Pair]:
    for name in ("kernel", "bias"):
        yield Pair(f"{reference}/{name}", f"{ajax}/{name}", kept)


def _normed(reference: str, ajax: str, layers: int) -> Iterator[Pair]:
    """Hidden layers: ``reference`` + index against ``ajax``/Dense_<index>, RMSNorm_<index>."""
    for layer in range(layers):
        yield from _linear(f"{reference}{layer}", f"{ajax}/Dense_{layer}")
        yield Pair(f"{reference}{layer}/norm/scale", f"{ajax}/RMSNorm_{layer}/scale")


def _dynamics() -> Iterator[Pair]:
    here, there = "agent/dyn", "world_model/rssm"
    for index in range(3):  # of deter, stoch and action
        yield from _linear(f"{here}/dynin{index}", f"{there}/dynin{index}/Dense_0")
        yield Pair(f"{here}/dynin{index}/norm/scale", f"{there}/dynin{index}/RMSNorm_0/scale")
    yield from _linear(f"{here}/dyn0", f"{there}/dynhid0")
    yield Pair(f"{here}/dyn0/norm/scale", f"{there}/dynhid0_norm/scale")
    yield from _linear(f"{here}/dyncore", f"{there}/dyngru")
    yield from _normed(f"{here}/obs", f"{there}/obs", 1)
    yield from _linear(f"{here}/obslogit", f"{there}/obslogit")
    yield from _normed(f"{here}/img", f"{there}/prior", 2)
    yield from _linear(f"{here}/imglogit", f"{there}/priorlogit")


def _critic(reference: str, ajax: str) -> Iterator[Pair]:
    yield from _normed(f"{reference}/h", f"{ajax}/mlp", 3)
    yield from _linear(f"{reference}/dist/out", f"{ajax}/out", BINS)


def _pairs() -> Iterator[Pair]:
    world = "world_model"
    yield from _normed("agent/enc/mlp", f"{world}/enc", 3)
    yield from _dynamics()
    yield from _normed("agent/dec/mlp", f"{world}/dec/mlp", 3)
    yield from _linear("agent/dec/out_vector/out", f"{world}/dec/out")
    yield from _normed("agent/rew/h", f"{world}/rew/mlp", 1)
    yield from _linear("agent/rew/dist/out", f"{world}/rew/out", BINS)
    yield from _normed("agent/con/h", f"{world}/con/mlp", 1)
    yield from _linear("agent/con/dist/out", f"{world}/con/out")
    yield from _normed("agent/actor/h", "actor/mlp", 3)
    yield from _linear("agent/actor/action/out", "actor/logits")
    yield from _critic("agent/critic", "critic")
    yield from _critic("agent/slowcritic", "slow_critic")


#: Every tensor of the networks, the slow critic's included.
PAIRS = tuple(_pairs())
#: Where the reference keeps what the optimiser trains; the slow critic follows the critic.
NETWORKS = tuple(
    f"agent/{name}/" for name in ("enc", "dyn", "dec", "rew", "con", "actor", "critic")
)
SLOW_CRITIC = "agent/slowcritic/"


def is_network(name: str) -> bool:
    """Whether a key of the reference's parameters is a tensor of a network."""
    return name.startswith((*NETWORKS, SLOW_CRITIC))


def to_ajax(reference: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Ajax's tensors, filled from the reference's; ``shapes`` is what Ajax's modules have.

    Other entries of ``reference`` (optimiser, normalisers) are left out. Raises ``UserError``
    where a tensor of either side is left over or missing, or a shape does not fit.
    """
    given = {name for name in reference if is_network(name)}
    _same_names("reference", {pair.reference for pair in PAIRS}, given)
    _same_names("Ajax", {pair.ajax for pair in PAIRS}, set(shapes))
    filled = {}
    for pair in PAIRS:
        tensor = np.asarray(reference[pair.reference])
        value = tensor if pair.kept is None else tensor[..., : pair.kept]
        if value.shape != tuple(shapes[pair.ajax]):
            raise UserError(
                f"{pair.reference} {tensor.shape} does not fit Ajax's {pair.ajax} "
                f"{tuple(shapes[pair.ajax])}: shared/probes/parameter_map.py is for another version"
            )
        filled[pair.ajax] = value
    return filled


def _same_names(side: str, expected: set[str], found: set[str]) -> None:
    missing, extra = sorted(expected - found), sorted(found - expected)
    if missing or extra:
        raise UserError(
            f"the {side} parameters are not those of shared/probes/parameter_map.py: "
            f"missing {missing[:3]}, unknown {extra[:3]}; it is for another version"
        )

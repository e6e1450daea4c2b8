"""The reference's arms: which methods of the imported code each one replaces, and why.

Nothing here imports the checkout; a patch is given the imported module or the built object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.protocol import SAMPLER_TAG


def exact_mean(distribution: Any) -> Any:
    """Expectation of a two-hot head as the sum of (p_j - p_i) b_j over its upper half of bins.

    Bin i mirrors bin j (b_i = -b_j), so equal probabilities of a pair cancel exactly, however the
    compiler fuses the product with the sum (protocol section 8). Stands in for
    ``TwoHotDist.mean``: reads ``probs [..., n]``, ``bins [n]`` and ``transbwd``.
    """
    probabilities, bins = distribution.probs, distribution.bins
    half = bins.shape[-1] // 2
    mirrored = probabilities[..., :half][..., ::-1]
    expectation = ((probabilities[..., -half:] - mirrored) * bins[-half:]).sum(-1)
    return distribution.transbwd(expectation)


def _install_exact_mean(jaxutils: Any) -> None:
    jaxutils.TwoHotDist.mean = exact_mean


def _seed_sampler(replay: Any, seed: int) -> None:
    uniform = type(replay.sampler)
    if uniform.__name__ != "Uniform" or len(replay):
        raise RuntimeError(f"expected an empty replay with a uniform selector, found {uniform}")
    # The selector hands its seed to numpy.random.default_rng.
    replay.sampler = uniform([seed, SAMPLER_TAG])


@dataclass(frozen=True)
class Patch:
    """One replacement; ``text`` is what PATCH.txt says of it."""

    text: str
    #: Applied to the imported module ``dreamerv3.jaxutils``.
    to_jaxutils: Callable[[Any], None] | None = None
    #: Applied to the replay that the stock factory built, with the run's seed.
    to_replay: Callable[[Any, int], None] | None = None


EXACT_EXPECTATION = Patch(
    "dreamerv3.jaxutils.TwoHotDist.mean is replaced when the code is imported: the expectation is "
    "the sum over the upper half of the bins of (p_j - p_i) b_j, i the mirror of j, instead of the "
    "sum over mirror pairs of p_i b_i + p_j b_j.",
    to_jaxutils=_install_exact_mean,
)
SEEDED_SAMPLER = Patch(
    "The uniform selector of the training replay draws from "
    f"numpy.random.default_rng([seed, {SAMPLER_TAG:#x}]) instead of default_rng(0).",
    to_replay=_seed_sampler,
)

#: Arm name -> its patches; what each arm is for stands in ``shared.protocol.ARMS``.
PATCHES: dict[str, tuple[Patch, ...]] = {
    "stock": (),
    # Round 2, pair E: Ajax's form, so that the expectation (D22) differs no more.
    "exact": (EXACT_EXPECTATION,),
    # Round 3: besides, the runs of a round draw independent batches (D2 removed).
    "exact-seeded": (EXACT_EXPECTATION, SEEDED_SAMPLER),
}


def patch_code(arm: str, jaxutils: Any) -> None:
    """Apply the arm to ``dreamerv3.jaxutils``, before an agent is built."""
    for patch in PATCHES[arm]:
        if patch.to_jaxutils is not None:
            patch.to_jaxutils(jaxutils)


def patch_replay(arm: str, replay: Any, seed: int) -> None:
    """Apply the arm to the training replay, before anything is in it.

    Raises ``RuntimeError`` where it is not the stock replay with a uniform selector.
    """
    for patch in PATCHES[arm]:
        if patch.to_replay is not None:
            patch.to_replay(replay, seed)


def patch_text(arm: str) -> str | None:
    """Content of the arm's PATCH.txt; ``None`` for the stock arm, which has none."""
    patches = PATCHES[arm]
    return "".join(f"{patch.text}\n" for patch in patches) or None

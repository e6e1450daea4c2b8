"""Both forms of the two-hot expectation, as the reference's own head computes them (section 8).

Importing this module imports the reference: verify the checkout and put it on the path first.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dreamerv3 import jaxutils, nets
from dreamerv3 import ninjax as nj

from ref_side.arms import exact_mean
from shared.probes.parameter_map import BINS
from shared.probes.probing import HEAD_FEATURES, HEAD_UNITS, apply_forms
from shared.records.arrays import Arrays

#: Form -> the method that computes it from a distribution of the head.
FORMS: dict[str, Callable[[Any], Any]] = {
    "literal": jaxutils.TwoHotDist.mean,
    "exact": exact_mean,
}


def head(features: Any) -> Any:
    """The reference's reward head on ``[rows, features]``; its last kernel starts at zero."""
    settings = {"layers": 1, "units": HEAD_UNITS, "act": "silu", "norm": "rms", "outscale": 0.0}
    built = nets.MLP((), dist="symexp_twohot", bins=BINS, **settings, name="head")
    return built(features, bdims=1)


def head_bins() -> Any:
    """The head's bins ``[BINS]``, from the head itself."""
    features = jnp.zeros((1, HEAD_FEATURES))
    return _with_head(lambda distribution: distribution.bins)(features)


def _with_head(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``features -> read(head's distribution)``, parameters an argument of the program."""

    def output(features: Any) -> Any:
        return read(head(features))

    seed = np.zeros(2, np.uint32)
    parameters = nj.init(output)({}, jnp.zeros((1, HEAD_FEATURES)), seed=seed)
    compiled = jax.jit(lambda given, features: nj.pure(output)(given, features, seed=seed)[1])
    return lambda features: compiled(parameters, features)


def probe(arrays: Arrays) -> Arrays:
    """Expectations of every logits array (``shared.probes.probing.apply_forms``), and ``bins``."""
    bins = head_bins()

    def of_logits(form: str) -> Callable[[Any], Any]:
        return lambda logits: FORMS[form](jaxutils.TwoHotDist(logits, bins))

    return apply_forms(
        arrays,
        eager={form: of_logits(form) for form in FORMS},
        jit={form: jax.jit(of_logits(form)) for form in FORMS},
        head={form: _with_head(mean) for form, mean in FORMS.items()},
        bins=bins,
    )

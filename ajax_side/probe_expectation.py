"""Both forms of the two-hot expectation, as Ajax's own head computes them (section 8)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from ajax.agents.DreamerV3.networks import MLPHead
from ajax.distributional import TwoHot

from ajax_side.expectation import literal_decode
from shared.probes.parameter_map import BINS
from shared.probes.probing import HEAD_FEATURES, HEAD_UNITS, apply_forms
from shared.records.arrays import Arrays

#: Form -> the method that computes it from the head's logits.
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "literal": literal_decode,
    "exact": TwoHot.decode,
}


def probe(arrays: Arrays) -> Arrays:
    """Expectations of every logits array (``shared.probes.probing.apply_forms``), and ``bins``."""
    two_hot = TwoHot.dreamerv3(BINS)
    head = MLPHead(1, HEAD_UNITS, BINS, 0.0)  # its last kernel starts at zero
    parameters = head.init(jax.random.PRNGKey(0), jnp.zeros((1, HEAD_FEATURES)))

    def of_logits(form: str) -> Callable[[Any], Any]:
        return lambda logits: FORMS[form](two_hot, logits)

    def of_features(form: str) -> Callable[[Any], Any]:
        compiled = jax.jit(lambda given, x: FORMS[form](two_hot, head.apply(given, x)))
        return lambda features: compiled(parameters, features)

    return apply_forms(
        arrays,
        eager={form: of_logits(form) for form in FORMS},
        jit={form: jax.jit(of_logits(form)) for form in FORMS},
        head={form: of_features(form) for form in FORMS},
        bins=two_hot.bins(),
    )

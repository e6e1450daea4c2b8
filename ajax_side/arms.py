"""What each Ajax arm replaces, and how (protocol sections 2 and 8)."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import UserError
from shared.protocol import arm


@dataclass(frozen=True)
class Patch:
    """One replacement at import time; ``text`` goes to PATCH.txt."""

    apply: Callable[[], None]
    text: str


def _literal_expectation() -> None:
    # Imported here: jax must not be loaded before the command has set its environment.
    from ajax_side.expectation import literal_decode

    module = importlib.import_module("ajax.distributional")
    if not callable(getattr(module.TwoHot, "decode", None)):
        raise UserError("ajax.distributional.TwoHot has no decode: this Ajax has no literal arm")
    module.TwoHot.decode = literal_decode


#: The patch of each arm; ``None`` leaves Ajax as it is.
PATCHES: dict[str, Patch | None] = {
    # Ajax's own form is the exact one.
    "stock": None,
    # Brings the reference's noise (D22) to Ajax, so that pair R has it on both sides.
    "literal": Patch(
        _literal_expectation,
        "ajax.distributional.TwoHot.decode is replaced at import time by\n"
        "ajax_side.expectation.literal_decode: the middle term plus the sum over mirror pairs of\n"
        "p_i b_i + p_j b_j, the reference's form (protocol section 8, D22). Bins, encoding and\n"
        "loss are Ajax's own.\n",
    ),
}


def apply_arm(name: str) -> str | None:
    """Patch the imported ``ajax`` for the arm ``name``; the text of its PATCH.txt, if any."""
    if (patch := PATCHES[arm("ajax", name).name]) is None:
        return None
    patch.apply()
    return patch.text

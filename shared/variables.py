"""Environment variables that users set, and what a side's process inherits of a user's shell."""

import os
from collections.abc import Mapping

from shared.protocol import Side

#: Sets one side's XLA flags (protocol section 1).
XLA_FLAGS_VARIABLE: dict[Side, str] = {"reference": "REF_XLA_FLAGS", "ajax": "AJAX_XLA_FLAGS"}
#: Names a checkout of the reference, and the ``src`` of one of Ajax.
CHECKOUT_VARIABLE, AJAX_VARIABLE = "DREAMERV3_REF", "AJAX_SRC"

#: Inherited variables that could change what a process computes, as a user's JAX_ENABLE_X64 or
#: PYTHONOPTIMIZE would, by prefix. Who starts a process sets what it needs of them.
_DROPPED_PREFIXES = ("JAX_", "XLA_", "PYTHON")
#: Variables that a command has read already: their values are in what it gives its processes.
_READ = (CHECKOUT_VARIABLE, AJAX_VARIABLE, *XLA_FLAGS_VARIABLE.values())


def xla_flags(environment: Mapping[str, str] = os.environ) -> dict[Side, str]:
    """Each side's XLA flags, from the user's environment (protocol section 1)."""
    return {side: environment.get(name, "") for side, name in XLA_FLAGS_VARIABLE.items()}


def child_environment(own: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process: what the user's shell has, cleaned, and ``own`` of it."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(_DROPPED_PREFIXES) and name not in _READ
    }
    return kept | dict(own)


def set_jax_environment(side: Side) -> None:
    """Set what jax reads when it is imported, in a process of this side (protocol section 1)."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if (flags := os.environ.get(XLA_FLAGS_VARIABLE[side])) is not None:
        os.environ["XLA_FLAGS"] = flags

"""Environment variables: what users set, and what of their shell reaches a process of the project.

A command of the project depends on no setting of a library, of git, of uv or of jax that belongs to
its user. What reaches it is decided here; what git and uv are given is decided where they are
called (:mod:`shared.provenance.git`, ``launch.uv``).
"""

import os
import sys
from collections.abc import Mapping

from shared.protocol import Side
from shared.provenance.roots import REPO

#: Sets one side's XLA flags (protocol section 1).
XLA_FLAGS_VARIABLE: dict[Side, str] = {"reference": "REF_XLA_FLAGS", "ajax": "AJAX_XLA_FLAGS"}
#: Names a checkout of the reference, and the ``src`` of one of Ajax.
CHECKOUT_VARIABLE, AJAX_VARIABLE = "DREAMERV3_REF", "AJAX_SRC"

#: Inherited variables that could change what a process computes or prints, by prefix. Who starts
#: a process sets what it needs of them. Not here: threads and memory (OMP_, MALLOC_ and others),
#: which are a matter of the machine and are recorded (``launch.info``).
DROPPED = {
    "PYTHON": "the interpreter: PYTHONOPTIMIZE, PYTHONWARNINGS, modules from PYTHONPATH",
    "JAX_": "settings of jax, as JAX_ENABLE_X64",
    "XLA_": "settings of XLA; those that are meant come as REF_XLA_FLAGS and AJAX_XLA_FLAGS",
    "TF_": "settings of TensorFlow, some of which XLA reads too",
    "LIBTPU_": "an accelerator's",
    "TPU_": "an accelerator's",
    "PJRT_": "an accelerator's",
    "CUDA_": "an accelerator's",
    "NPY_": "numpy's choice of instructions, which round otherwise, and of its rules",
    "NUMPY_": "numpy's experiments",
    "OPENBLAS_CORETYPE": "instructions of another processor, which round otherwise",
    "MPL": "Matplotlib's backend, and where its settings lie",
    "MATPLOTLIBRC": "Matplotlib's settings",
}
#: Of these, what changes no answer.
_KEPT = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER")
#: Variables that a command has read already: their values are in what it gives its processes.
_READ = (CHECKOUT_VARIABLE, AJAX_VARIABLE, *XLA_FLAGS_VARIABLE.values())

_CACHES = REPO / ".work" / "cache"
#: Says that an environment was made here.
_MADE = "COMPARISON_ENVIRONMENT"
#: What every process of the project has.
FIXED = {
    _MADE: "made",
    "PYTHONNOUSERSITE": "1",
    # Whatever the locale: files and messages are UTF-8.
    "PYTHONUTF8": "1",
    # Bytecode beside the sources of an environment is neither verified nor read.
    "PYTHONPYCACHEPREFIX": str(_CACHES / "bytecode"),
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": str(_CACHES / "matplotlib"),
}


def xla_flags(environment: Mapping[str, str] = os.environ) -> dict[Side, str]:
    """Each side's XLA flags, from the user's environment (protocol section 1)."""
    return {side: environment.get(name, "") for side, name in XLA_FLAGS_VARIABLE.items()}


def command_environment(own: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command of the project: the user's, cleaned, and ``own``."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name in _KEPT or not name.startswith(tuple(DROPPED))
    }
    return kept | FIXED | {"PYTHONPATH": str(REPO)} | dict(own)


def child_environment(own: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """As :func:`command_environment`, for a process that is told what its command has read."""
    unread = {name: value for name, value in inherited.items() if name not in _READ}
    return command_environment(own, unread)


def leave_users_shell() -> None:
    """Begin this command anew without the settings of the user's shell, unless that was done.

    For who calls ``python -m MODULE`` directly: some of them have worked by then. A package that
    holds commands calls this before its other imports. Where it is imported otherwise than by
    ``python -m``, nothing happens.
    """
    # "-m": Python's name for the command until it has found its module.
    if sys.argv[:1] == ["-m"] and _MADE not in os.environ:
        environment = command_environment({}, os.environ)
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def set_jax_environment(side: Side) -> None:
    """Set what jax reads when it is imported, in a process of this side (protocol section 1)."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if (flags := os.environ.get(XLA_FLAGS_VARIABLE[side])) is not None:
        os.environ["XLA_FLAGS"] = flags

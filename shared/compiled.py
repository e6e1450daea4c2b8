"""Where jax keeps the programs that it has compiled: named by CPU, Python, jax and jaxlib.

``python -m shared.compiled`` prints the name for the interpreter that runs it.
"""

import hashlib
import platform
from pathlib import Path

from shared.cpu import describe_cpu
from shared.provenance.roots import package_versions

#: Below the repository.
DIRECTORY = Path(".work") / "cache" / "jax"


def cache_name(cpu: str, python: str, jax: str, jaxlib: str) -> str:
    """Name of the directory for programs of this CPU, compiled by these versions."""
    readable = f"py{python}-jax{jax}"
    digest = hashlib.sha256("\n".join((cpu, readable, jaxlib)).encode()).hexdigest()
    return f"{readable}-{digest[:8]}"


def cache_variables(directory: Path) -> dict[str, str]:
    """Variables with which jax keeps every program of a process in ``directory``."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(directory),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


if __name__ == "__main__":
    installed = package_versions()
    versions = (installed.get(name, "none") for name in ("jax", "jaxlib"))
    print(cache_name(describe_cpu(), platform.python_version(), *versions))

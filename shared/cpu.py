"""Which CPU this is, as far as compiled code cares; never its clock or the host's name."""

import platform
import subprocess
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
#: Lines of ``/proc/cpuinfo`` that name the model and its instructions, on x86 and on ARM.
_IDENTIFYING = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
        *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
    }
)
#: What ``sysctl`` calls them on macOS; the last two exist on Intel only.
_SYSCTL = ("machdep.cpu.brand_string", "machdep.cpu.features", "machdep.cpu.leaf7_features")


def describe_cpu() -> str:
    """Architecture, model and instruction set of this machine's CPU, a line each."""
    try:
        found = identifying_lines(CPUINFO.read_text(errors="replace"))
    except OSError:
        found = _sysctl() or platform.processor()
    return f"{platform.machine()}\n{found}"


def identifying_lines(cpuinfo: str) -> str:
    """The distinct identifying lines of ``/proc/cpuinfo``, cores of several kinds included."""
    pairs = [line.partition(":") for line in cpuinfo.splitlines()]
    lines = {
        f"{key.strip()}: {value.strip()}" for key, _, value in pairs if key.strip() in _IDENTIFYING
    }
    return "\n".join(sorted(lines))


def _sysctl() -> str:
    found = []
    for name in _SYSCTL:
        try:
            done = subprocess.run(
                ["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.SubprocessError):
            continue
        found.append(done.stdout.strip())
    return "\n".join(filter(None, found))

"""The check of a process's files: are they what it left when it ended, and what it can leave?"""

import math
from collections.abc import Iterator

from analysis.checks import Check, outcome
from analysis.evidence import AjaxProcess, ReferenceProcess
from shared.errors import shown
from shared.records.layout import PATCH, TIMING

#: Keys of ``timing.json``: unix times and seconds.
_SECONDS = (
    *("t_start", "t_loop_start", "t_first_update", "t_train", "t_end"),
    *("build_and_compile_s", "total_s", "observer_s", "evaluation_s", "train_wall_s"),
)


def files_check(name: str, process: ReferenceProcess | AjaxProcess, arm: str | None) -> Check:
    """A file changed afterwards: what is computed from it says nothing of the run.

    Where the process left no digests, only what no process leaves is found.
    """
    name, changes, odd = f"{name} files", process.files, [*_odd_times(process)]
    if arm == "stock" and process.patched:
        odd.append(f"{PATCH} is there, and the stock arm has no patch")
    if changes is not None:
        good = f"{changes.left} files as they were when the process ended"
        return outcome(name, [*changes.misplaced, *odd], good, changes.changed)
    if odd:
        return outcome(name, odd, "")
    return Check(name, None, "the process left no digests of its files")


def _odd_times(process: ReferenceProcess | AjaxProcess) -> Iterator[str]:
    for key, value in (process.timing or {}).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key in _SECONDS and not (number and math.isfinite(value) and value >= 0):
            yield f"{key} of {TIMING} is {shown(value)}, not seconds"

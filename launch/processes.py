"""What is on record of a process beside its own files: who it was, and how it ended."""

import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from launch.identity import Identity, identify
from launch.plan import Job
from shared.errors import RecordError, printable
from shared.provenance.roots import REPO, Roots
from shared.records.files import read_json_object, read_tail, write_json
from shared.records.layout import RunLayout

FORMAT = 1
#: Of a log, enough for its last line.
_LAST_BYTES = 4096


def describe_exit(code: int) -> str:
    """``exit code 1``, or ``ended by SIGKILL (exit code 137)``."""
    with suppress(ValueError):
        if code > 128:
            return f"ended by {signal.Signals(code - 128).name} (exit code {code})"
    return f"exit code {code}"


def problem(code: int, missing: Sequence[str], log: Path) -> str | None:
    """What was wrong with a process that ended with ``code``; ``None`` if nothing was."""
    if code:
        said = last_error(log)
        return f"{describe_exit(code)}, {said}" if said else describe_exit(code)
    return f"ended with 0 but left no {', '.join(missing)}" if missing else None


def last_error(log: Path) -> str | None:
    """The ``error:`` line with which a command of this project ended, or ``None``."""
    said = last_line(log)
    return said if said is not None and said.startswith("error: ") else None


def last_line(log: Path) -> str | None:
    """The last line of a log that says something, or ``None``."""
    try:
        lines = read_tail(log, _LAST_BYTES).decode(errors="replace").strip().splitlines()
    except (OSError, RecordError):
        return None
    return printable(lines[-1].strip()) if lines else None


def record_process(job: Job, pid: int, run: RunLayout) -> None:
    """Write ``<name>.json``: which process ``pid`` is, and its command. May raise ``OSError``."""
    named = {"reference_checkout": job.cwd} if job.side == "reference" else {}
    roots = Roots(out=run.root, repo=REPO, **named)
    words = [roots.record(Path(word)) if word.startswith("/") else word for word in job.argv]
    row = {"format": FORMAT, **identify(pid, run.root).to_json(), "argv": words}
    write_json(run.process(job.name), row)


def read_process(name: str, run: RunLayout) -> Identity | None:
    """Which process ``name`` was started as; ``None`` if it never was."""
    try:
        return Identity.from_json(read_json_object(run.process(name)))
    except (OSError, RecordError):
        return None

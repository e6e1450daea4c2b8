"""One launcher at a time works for an output directory; and what is known of the last one.

The kernel holds a lock on ``launch.lock`` for as long as the launcher lives, however it ends;
``launcher.json`` says who that is, for messages, for file systems without locks, and for those who
look later.
"""

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from launch.identity import Fate, Identity, identify
from shared.errors import RecordError, UserError
from shared.records.files import read_json_object, write_json
from shared.records.layout import RunLayout
from shared.records.own_directory import OwnDirectories

FORMAT = 1
#: Who only looks holds the lock for an instant; a launcher tries for this many seconds.
PATIENCE_S = 0.5
#: No launcher was started after this many seconds since 1970, the year 5138.
_LATEST = 1e11


@dataclass(frozen=True)
class Launcher:
    """The last launcher of a directory; ``exit_code`` is ``None`` unless it came to its end."""

    fate: Fate
    pid: int | None = None
    since: float | None = None
    exit_code: int | None = None

    @property
    def runs(self) -> bool:
        """Whether it works for the directory at this moment, as far as can be known."""
        return self.fate is Fate.RUNS

    @property
    def broken(self) -> bool:
        """Whether it went away before it came to its end."""
        return self.exit_code is None and self.fate in (Fate.GONE, Fate.REBOOTED)

    @property
    def age_s(self) -> float | None:
        """Seconds since it was started, at least 0 whatever the clock did since."""
        return None if self.since is None else max(0.0, time.time() - self.since)


class RoundLock:
    """Held while a launcher works for the directory ``out``, which must exist."""

    def __init__(self, out: Path) -> None:
        self._out, self._layout = out, RunLayout(out)
        self._handle: int | None = None
        self._since = time.time()
        #: What the launcher works for: nothing is written once its path names something else.
        self.own = OwnDirectories()
        #: The launcher that had the directory before and did not come to its end, if any.
        self.broken: Launcher | None = None

    def __enter__(self) -> Self:
        """Take the lock. Raises ``UserError`` naming the launcher that has it."""
        try:
            self.own = OwnDirectories(self._out)
            handle = os.open(self._layout.launch_lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UserError(f"{self._layout.launch_lock}: {_unwritable(error)}") from None
        try:
            held = not _lock(handle, PATIENCE_S)
            before = read_launcher(self._out)
            refuse(self._out, before, held=held)
            self.record()
        except BaseException:
            os.close(handle)
            self.own.close()
            raise
        self._handle = handle
        self.broken = before if before is not None and before.exit_code is None else None
        return self

    def record(self, exit_code: int | None = None) -> None:
        """Say that this process is the launcher, and with ``exit_code`` that it has ended.

        Raises ``UserError`` where that cannot be written.
        """
        self.own.check()
        row: dict[str, Any] = {"format": FORMAT, "since": self._since, "exit_code": exit_code}
        try:
            write_json(self._layout.launcher, row | identify(os.getpid(), self._out).to_json())
        except OSError as error:
            raise UserError(f"{self._layout.launcher}: {_unwritable(error)}") from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self.own.close()


def inspect(out: Path) -> Launcher | None:
    """The last launcher of the directory ``out``; ``None`` where none is recorded.

    Nothing is written. A lock that is held proves that it runs, even where its pid means nothing,
    as outside of its container.
    """
    recorded = read_launcher(out)
    with suppress(OSError):
        handle = os.open(RunLayout(out).launch_lock, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not _lock(handle, 0.0, fcntl.LOCK_SH):
                found = recorded or Launcher(Fate.RUNS)
                return Launcher(Fate.RUNS, found.pid, found.since)
        finally:
            os.close(handle)
    return recorded


def read_launcher(out: Path) -> Launcher | None:
    """What ``launcher.json`` says, and whether the process that it names still runs."""
    row = _read(out)
    identity = Identity.from_json(row)
    if identity is None:
        return None
    code, since = row.get("exit_code"), row.get("since")
    ended = code if isinstance(code, int) else None
    fate = identity.fate(out) if ended is None else Fate.GONE
    known = isinstance(since, int | float) and abs(since) < _LATEST
    return Launcher(fate, identity.pid, since if known else None, ended)


def is_alive(out: Path) -> bool:
    """Whether the process of the last launcher still runs: it may have gone on to another part."""
    identity = Identity.from_json(_read(out))
    return identity is not None and identity.fate(out) is Fate.RUNS


def _read(out: Path) -> dict[str, Any]:
    try:
        return read_json_object(RunLayout(out).launcher)
    except (OSError, RecordError):
        return {}


def refuse(out: Path, launcher: Launcher | None, *, held: bool = False) -> None:
    """Raise ``UserError`` where another launcher has the directory, or may have it.

    ``held`` says that the lock is another's.
    """
    runs = launcher is not None and launcher.runs
    if held or runs:
        raise UserError(_refusal(out, launcher.pid if launcher is not None and runs else None))
    if launcher is not None and launcher.fate is Fate.ELSEWHERE and launcher.exit_code is None:
        raise UserError(
            f"{out}: another machine that shares this directory started pid {launcher.pid} on it; "
            f"see that it has ended, then delete {RunLayout(out).launcher}"
        )


def _refusal(out: Path, pid: int | None) -> str:
    """One line: who has the directory, and what to do."""
    who = "another launcher, whose pid is not on record," if pid is None else f"pid {pid}"
    stop = "stop it" if pid is None else f"stop it (kill {pid})"
    return (
        f"{out}: {who} is running this round; watch it with nox -s status -- --root {out}, "
        f"{stop}, or name another directory with --out"
    )


def _unwritable(error: OSError) -> str:
    return f"cannot be written ({error.strerror}); make room or name another directory with --out"


def _lock(handle: int, patience_s: float, kind: int = fcntl.LOCK_EX) -> bool:
    """Whether the lock was taken; where a file system knows no locks, it is said to be."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        except OSError:
            return True
        else:
            return True

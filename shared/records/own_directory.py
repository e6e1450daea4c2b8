"""The directories that a process works for: it writes into these, whatever their paths name later.

Somebody may remove the output of a round and start the round again while a process runs, move it
aside, or put a link in its place.
"""

import os
from pathlib import Path
from typing import Self

from shared.records.files import require_same


class OwnDirectories:
    """Directories held open for as long as the process runs, by path."""

    def __init__(self, *paths: Path) -> None:
        self._held: dict[Path, int] = {}
        self._hold(*paths)

    @classmethod
    def existing(cls, path: Path) -> Self:
        """Hold ``path`` if it is there: a launcher has made it, who starts a process may not."""
        return cls(*([path] if path.is_dir() else []))

    def make(self, path: Path) -> None:
        """Make a directory and hold it, its parents too where none is held. Raises as check."""
        self.check()
        path.mkdir(parents=not self._held)
        self._hold(*([] if self._held else [path.parent]), path)

    def check(self) -> None:
        """Raise ``UserError`` where one was removed, moved or replaced: before whatever is written.

        It costs some microseconds.
        """
        for path, handle in self._held.items():
            require_same(path, handle)

    def close(self) -> None:
        """Hold nothing any more."""
        while self._held:
            os.close(self._held.popitem()[1])

    def _hold(self, *paths: Path) -> None:
        for path in paths:
            self._held[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

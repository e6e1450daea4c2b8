"""Ctrl-C, SIGTERM and a closed terminal, counted instead of interrupting whatever runs."""

import os
import signal
from types import FrameType, TracebackType
from typing import Any, Self

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """While entered, stop signals are counted; :attr:`first` is the first one, if any.

    A signal that is ignored on entry stays ignored: that is how ``nohup`` and a shell's ``&`` ask
    for a process that the terminal does not end. Main thread only, as Python demands.

    With ``parent``, its process id, the end of the parent counts as SIGTERM: nox ends at a SIGTERM
    or SIGKILL without a word to what it runs.
    """

    def __init__(self, parent: int | None = None) -> None:
        self._parent = parent
        self.count = 0
        self.first: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in _HANDLED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def look(self) -> None:
        """Count the end of the parent, once."""
        if self._parent is not None and os.getppid() != self._parent:
            self._parent = None
            self._count(signal.SIGTERM, None)

    def _count(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Nothing that takes a lock may stand here: the main thread could hold it.
        self.count += 1
        self.first = self.first or signal.Signals(number)

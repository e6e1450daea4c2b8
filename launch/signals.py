"""Ctrl-C, SIGTERM and a closed terminal, counted instead of interrupting whatever runs."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """While entered, stop signals are counted; :attr:`first` is the first one, if any.

    A signal that is ignored on entry stays ignored: that is how ``nohup`` and a shell's ``&`` ask
    for a process that the terminal does not end. Main thread only, as Python demands.
    """

    def __init__(self) -> None:
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

    def _count(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Nothing that takes a lock may stand here: the main thread could hold it.
        self.count += 1
        self.first = self.first or signal.Signals(number)

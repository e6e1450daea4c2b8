"""How the process ends on Ctrl-C and SIGTERM.

Python's handlers wait until compiled code returns: compiling takes minutes, an update a second.
"""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    print(f"error: ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
    sys.exit(128 + number)


def end_at_once() -> None:
    """From now on the signals end the process wherever it is: there is no record to spoil yet."""
    _handle(signal.SIG_DFL)


def end_between_writes() -> None:
    """From now on the signals end the process with status 128 + signal, every line whole."""
    _handle(_leave)


def _handle(handler: signal.Handlers | Callable[[int, FrameType | None], NoReturn]) -> None:
    for number in _SIGNALS:
        # What is ignored stays ignored: so nohup and a shell's & ask for it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)

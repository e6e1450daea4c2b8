"""Ending at once on Ctrl-C or SIGTERM, with every written line whole.

Python's own handlers wait for the main thread, which spends the run inside one compiled call that
may take hours. The wakeup descriptor is written by the C handler at once, whatever the main thread
does, so a thread that reads it can end the process.
"""

import os
import signal
import sys
import threading
from typing import NoReturn

from ajax_side.recorder import Recorder

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: A writer that holds the lock longer than this is stuck.
_PATIENCE_S = 10.0


def end_on_signals(recorder: Recorder) -> None:
    """From now on SIGINT and SIGTERM end the process with status 128 + signal. Main thread only."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for number in _SIGNALS:
        # What is ignored stays ignored: so nohup and a shell's & ask for it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Any Python handler will do: without one the C handler is not installed.
            signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(read, recorder), daemon=True).start()


def _wait(read: int, recorder: Recorder) -> NoReturn:
    number = 0
    while number not in _SIGNALS:
        number = os.read(read, 1)[0]
    recorder.lock.acquire(timeout=_PATIENCE_S)
    last = min((rows[-1] if rows else 0 for rows in recorder.rows().values()), default=0)
    name = signal.Signals(number).name
    print(f"error: ended by {name}; recorded up to row {last}", file=sys.stderr, flush=True)
    os._exit(128 + number)

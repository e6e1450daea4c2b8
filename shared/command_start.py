"""What a command does before it imports anything that a user's shell could change."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

from shared.errors import quiet_interrupts
from shared.variables import leave_users_shell

#: Set by nox's sessions: the name of the session that a command ends with.
SESSION_VARIABLE = "COMPARISON_SESSION"
_PR_SET_PDEATHSIG = 1


def begin_command() -> None:
    """To be called by a package that holds commands, before its other imports.

    Nothing happens where it is imported otherwise than by ``python -m``.
    """
    quiet_interrupts()
    leave_users_shell()
    if sys.argv[:1] == ["-m"] and SESSION_VARIABLE in os.environ:
        ending_with_parent(signal.SIGTERM)()


def ending_with_parent(number: signal.Signals) -> Callable[[], None]:
    """A function after which this process gets signal ``number`` when its parent ends.

    However the parent ends: nox, say, ends at SIGTERM and SIGKILL without a word to what it runs.
    It may serve as ``preexec_fn`` of a process. Elsewhere than on Linux it does nothing.
    """
    if sys.platform != "linux":
        return lambda: None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, number)

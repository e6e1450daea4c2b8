"""How commands fail: one line on stderr, and an exit status that says what kind of failure.

0  the command did what was asked, and the answer is yes
1  the command did what was asked, and the answer is no (a failed check, a difference, NaN)
2  bad input, a missing precondition or no room: what was written before stays as it is
128 + N stopped by signal N: 130 by Ctrl-C, 143 by SIGTERM
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import NoReturn

EXIT_NO = 1
EXIT_BAD_INPUT = 2
#: Characters of a value that a message quotes.
_QUOTED = 120

_ROOM = "make room there or name another place"
_PLACE = "name another place"
#: What to do where the system refuses a file; any other system error is a fault of this project.
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _ROOM),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _PLACE),
    **dict.fromkeys((errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ENOENT), _PLACE),
}


def printable(text: str) -> str:
    """``text`` as one line: line breaks and what a terminal would obey are escaped."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def shown(value: object) -> str:
    """``value`` as a message quotes it: of a long one the beginning."""
    text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]} (cut)"


class UserError(Exception):
    """Bad input. The message is one line: what is wrong, where, and what to do about it."""

    def __init__(self, message: str) -> None:
        # It may name a file that another put there.
        super().__init__(printable(message))


class NotLearningError(Exception):
    """Training that cannot go on: a loss is not a finite number. The message is one line."""


class RecordError(UserError):
    """A file of records that cannot be read; the message names the file and, if any, the line."""


def quiet_interrupts() -> None:
    """Ctrl-C while modules are still imported ends in one line too."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print("error: interrupted", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook


def end_at_sigterm() -> None:
    """SIGTERM ends the command as Ctrl-C does: what it has started is stopped, in one line."""

    def handler(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, handler)


def run_command(main: Callable[[], int]) -> NoReturn:
    """Run a command's ``main`` and leave the process with the right exit status."""
    _open_closed_streams()
    try:
        status = main()
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        status = EXIT_BAD_INPUT
    except NotLearningError as error:
        print(f"error: {error}", file=sys.stderr)
        status = EXIT_NO
    except BrokenPipeError:
        # The reader went away (a closed pager, `| head`): not a fault of this command.
        sys.stderr.close()
        status = EXIT_NO
    except OSError as error:
        if error.errno not in _REMEDIES:
            raise
        where = printable(str(error.filename or "output"))
        print(f"error: {where}: {error.strerror}; {_REMEDIES[error.errno]}", file=sys.stderr)
        status = EXIT_BAD_INPUT
        if error.filename is None:
            with suppress(OSError):  # what it still holds cannot be written at exit either
                sys.stdout.close()
    except KeyboardInterrupt as error:
        print("error: interrupted", file=sys.stderr)
        status = 128 + (error.args[0] if error.args else signal.SIGINT)
    sys.exit(status)


def _open_closed_streams() -> None:
    """A stream that the user has closed (``>&-``) takes what is written to it, and drops it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
            # Its number is most likely the closed one's, which processes started here expect.
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)

"""Leaves the terminal: the launcher goes on in a session of its own."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from shared.errors import UserError


def detach(log: Path, ready: Callable[[], None]) -> int:
    """Continue in a child process whose output is appended to ``log``.

    Returns the child's pid in the process that was called, which may end, and 0 in the child.
    ``ready`` is called in the child first. Raises ``UserError`` where it cannot begin.
    """
    try:
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(
            f"{log}: cannot be written ({error.strerror}); name another directory with --out"
        ) from None
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(output)
        os.close(writer)
        begun = os.read(reader, 1)
        os.close(reader)
        if not begun:
            os.waitpid(child, 0)
            raise UserError(f"the detached launcher did not begin; see {log}")
        return child
    # No terminal of its own: Ctrl-C and a closed terminal do not reach it.
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for handle in (nothing, output, reader):
        os.close(handle)
    ready()
    os.write(writer, b"1")
    os.close(writer)
    return 0

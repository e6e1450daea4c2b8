"""The Pythons that a user names for the sides: is each a program at all?"""

import os
from collections.abc import Mapping
from pathlib import Path

from shared.errors import UserError
from shared.protocol import Side


def check_pythons(given: Mapping[Side, Path | None]) -> None:
    """Raise ``UserError`` where a named Python is no file that may be executed; none is run."""
    for side, python in given.items():
        if python is None or (python.is_file() and os.access(python, os.X_OK)):
            continue
        what = "is no program" if python.exists() else "no such file"
        raise UserError(f"--{side}-python {python}: {what}; name a Python, or leave it out")

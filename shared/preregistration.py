"""The documents below ``prereg/``: which text a round was run under, as a digest.

What was fixed may not change once runs depend on it; dated amendments may follow it, below a
heading of their own, and do not change the digest.
"""

import hashlib
from pathlib import Path

from shared.provenance.roots import REPO
from shared.records.files import read_text

DIRECTORY = REPO / "prereg"
#: Key of the line in ``launch_info.txt``.
KEY = "pre-registration"
AMENDMENTS = "\n## Amendments\n"


def registered_digest(path: Path) -> str:
    """sha256 of the document, amendments left out. Raises ``UserError`` where it is missing."""
    return text_digest(read_text(path))


def text_digest(text: str) -> str:
    """The same of the document's text."""
    return hashlib.sha256(text.partition(AMENDMENTS)[0].encode()).hexdigest()


def registration_line(name: str, directory: Path = DIRECTORY) -> str:
    """What ``launch_info.txt`` says of the document ``name``."""
    return f"{DIRECTORY.name}/{name}; sha256: {registered_digest(directory / name)}"

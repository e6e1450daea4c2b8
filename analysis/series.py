"""Rounds of several parts, and whether all of one has run: before that nothing is computed of it.

So have it prereg/ROUND4.md and ROUND5.md: what one part shows must not decide how another is run or
read.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from analysis.load import launches, round_launch
from shared.preregistration import KEY
from shared.protocol import ROUNDS, SERIES, Round
from shared.records.files import read_exit_code
from shared.records.layout import AJAX_NAME, RunLayout, reference_name


def series_of(name: str) -> tuple[Round, ...]:
    """The parts of the series to which the round ``name`` belongs; none of any other round."""
    found = (parts for parts in SERIES.values() if name in parts)
    return tuple(ROUNDS[part] for part in next(found, ()))


def awaited(directories: Iterable[Path]) -> dict[Path, Round]:
    """The exit codes for which pre-registered series wait, of which ``directories`` hold parts.

    Each with its part. A part's siblings lie beside it, under their own names. A smoke, and runs of
    other sizes than the round's, are under no pre-registration and wait for nothing.
    """
    found: dict[Path, Round] = {}
    for directory in directories:
        launch = round_launch(directory)
        if launch is None or not any(KEY in each.fields for each in launches(directory)):
            continue
        for part in series_of(launch.fields["round"]):
            own = part.name == launch.fields["round"]
            layout = RunLayout(directory if own else directory.absolute().parent / part.part)
            names = (*map(reference_name, part.seeds), AJAX_NAME)
            found |= {layout.done(name): part for name in names}
    return {path: part for path, part in found.items() if read_exit_code(path) != 0}


def waiting_line(missing: Mapping[Path, Round]) -> str:
    """What a series waits for, in one line."""
    first, part = next(iter(missing.items()))
    several = len(missing) > 1
    unfinished = f"{len(missing)} processes have" if several else "1 process has"
    return (
        "nothing of a series is computed before all of its processes have finished, except the "
        f"checks (prereg/{part.preregistration}); {unfinished} not finished, "
        f"{'first ' if several else ''}{first.stem} ({first} is missing or not 0); finish "
        f"{'them' if several else 'it'}: nox -s round-{part.number}"
    )


def has_own_tables(part: Round) -> bool:
    """Whether a comparison of this round alone is written; a block's records are read together."""
    return part.tiny or not part.whole

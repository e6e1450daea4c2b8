"""Checks of a block against its siblings and its registration: one code, and the order of the two.

They depend on what lies beside the block and on git, and on no record of its runs.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from analysis.checks import Check
from analysis.load import launches
from shared.errors import UserError
from shared.preregistration import DIRECTORY, text_digest
from shared.preregistration import KEY as REGISTRATION
from shared.protocol import ROUNDS, SERIES, SIDES, Round
from shared.provenance.git import git
from shared.provenance.roots import REPO
from shared.records.launch_info import PROJECT, Launch, side_keys
from shared.records.layout import RunLayout

#: How ``launched`` is written.
_MOMENT = "%Y-%m-%d %H:%M:%S %z"


def block_checks(directory: Path, chosen: Round) -> Iterator[Check]:
    """The checks of the block ``chosen`` that lies in ``directory``, its siblings beside it."""
    yield same_code(directory, chosen)
    yield order(launches(directory), chosen)


def same_code(directory: Path, chosen: Round) -> Check:
    """Whether every start of the block had the code, packages and flags of the first block."""
    parts = SERIES[str(chosen.number)]
    places = [directory.absolute().parent / ROUNDS[name].part for name in parts]
    first = next((each for each in places if RunLayout(each).launch_info.exists()), directory)
    faults = []
    for side in SIDES:
        wanted = next((each for each in launches(first) if side in each.sides), None)
        for start in launches(directory):
            if wanted is not None and side in start.sides:
                faults += [
                    f"{key} is {start.fields.get(key) or 'not recorded'}, in {first.name} "
                    f"{wanted.fields.get(key) or 'not recorded'}"
                    for key in side_keys(side)
                    if key not in start.fields or start.fields[key] != wanted.fields.get(key)
                ]
    return Check("one code", not faults, faults[0] if faults else f"as in {first.name}")


def order(starts: tuple[Launch, ...], chosen: Round) -> Check:
    """Whether the document was committed before every start, by git and ``launch_info.txt``.

    Each start must have run from a commit that comes after the one that first had the document as
    it is registered, and later than that. Not possible outside a whole git checkout.
    """
    name, path = "registered before the start", f"{DIRECTORY.name}/{chosen.preregistration}"
    try:
        top = Path(git(REPO, "rev-parse", "--show-toplevel").strip()).resolve()
        shallow = git(REPO, "rev-parse", "--is-shallow-repository").strip() == "true"
        commits = git(REPO, "log", "--format=%H %ct", "--reverse", "--", path).splitlines()
    except UserError:
        return Check(name, None, "this is no git checkout")
    if top != REPO.resolve() or shallow:
        return Check(name, None, "this is no git checkout with its whole history")
    faults = []
    for start in starts:
        recorded = start.fields.get(REGISTRATION, "").rpartition("sha256: ")[2]
        found = next((each for each in commits if _digest(each.split()[0], path) == recorded), None)
        if found is None:
            faults.append(f"no commit has {path} with the digest {recorded or '(none)'}")
        else:
            faults += _late(start, *found.split())
    good = f"{path} committed, then started {starts[0].fields.get('launched')}" if starts else ""
    return Check(name, bool(starts) and not faults, faults[0] if faults else good or "no start")


def _digest(commit: str, path: str) -> str | None:
    try:
        return text_digest(git(REPO, "show", f"{commit}:{path}"))
    except UserError:  # it was removed there
        return None


def _late(start: Launch, commit: str, seconds: str) -> Iterator[str]:
    """In what the start does not come after the registering ``commit`` of that time."""
    launched, revision = start.fields.get("launched", ""), start.revision(PROJECT)
    ran = revision.commit if revision is not None else None
    try:
        git(REPO, "merge-base", "--is-ancestor", commit, ran or "")
    except UserError:
        yield f"it ran from commit {ran}, which does not come after {commit}"
    try:
        if datetime.strptime(launched, _MOMENT).timestamp() < int(seconds):
            yield f"it was started {launched}, before commit {commit}"
    except ValueError:
        yield f"when it was started is not recorded ({launched})"

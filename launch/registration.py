"""Whether what a round was fixed to be is committed: no run comes before it (prereg/)."""

from pathlib import Path

from launch.plan import Plan
from shared.errors import UserError
from shared.preregistration import DIRECTORY
from shared.provenance.git import NoCheckoutError, git


def is_governed(plan: Plan) -> bool:
    """Whether this is the pre-registered round itself, neither a smoke nor of other sizes."""
    return not plan.round.tiny and not plan.departures


def check_registered(plan: Plan, directory: Path = DIRECTORY) -> None:
    """Raise ``UserError`` unless the round's document is committed and unchanged since."""
    if not is_governed(plan):
        return
    path = directory / plan.round.preregistration
    place = f"{directory.name}/{path.name}"
    if not path.is_file():
        raise UserError(f"{place}: is missing; restore it with 'git restore {place}'")
    try:
        known = git(directory, "log", "--format=%H", "-1", "--", path.name).strip()
        changed = git(directory, "status", "--porcelain", "--", path.name).strip()
    except NoCheckoutError:
        raise UserError(
            f"{place}: this is no git checkout, so that nothing shows that it came before the "
            "runs; start the round from a clone of the project"
        ) from None
    except UserError as error:
        raise UserError(f"{place}: whether it is committed is not known: {error}") from None
    if changed or not known:
        raise UserError(
            f"{place}: is not committed as it is; commit it before the first run of round "
            f"{plan.round.name}, or restore it"
        )

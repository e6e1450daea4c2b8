"""``nox -s reproduce``: recompute every table from recorded figures, compare it with results/."""

import argparse
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.compared import Compared, compare_documents
from analysis.documents import Documents, of_study
from analysis.formats import text_table, yes
from analysis.manifest import manifest_faults, write_manifest
from analysis.published_table import Row, published_rows
from analysis.replication import PUBLISHED_AJAX, which_ajax
from analysis.report import check_lines
from analysis.round4 import PARTS
from analysis.study import Study
from analysis.together import READING_JSON, READINGS
from analysis.trees import Target, find_targets, study_target
from shared.errors import EXIT_NO, UserError, run_command
from shared.protocol import PAIRINGS, ROUNDS, SERIES
from shared.provenance.roots import REPO
from shared.records.files import read_json_object

RESULTS = REPO / "results"
#: Directories with tables of their own in a tree of results.
PUBLISHED_LAYOUT = (
    *(each.directory for each in PAIRINGS.values()),
    *(ROUNDS[name].directory for name in SERIES["4"]),
    "round5",
)

DESCRIPTION = """\
Recompute every statistic of the three published rounds from the recorded figures in results/, and
of rounds 4 and 5 from their raw records there, draw the figures, and compare tables, and the
numbers behind the figures, with the recorded ones. Prints what was published or recorded beside
what was recomputed; a difference is printed as a unified diff. While a round has not finished, its
checks alone are computed.

With --results DIR the same for a tree of yours in the published layout (round1/, round2/pairE/,
round2/pairR/, round3/, round4/literal/, round4/exact/, or any directory of a run): every number of
its summary.json or analysis3.json that its raw files allow is recomputed and compared."""

EPILOG = """\
exit status: 0 everything is equal; 1 something differs; 2 bad input."""


@dataclass(frozen=True)
class Outcome:
    """One directory's recomputed documents, and how they differ from the recorded ones."""

    name: str
    documents: Documents
    compared: Compared
    notes: list[str]

    @property
    def differences(self) -> list[str]:
        """Lines that say what differs."""
        return self.compared.differences


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(
        prog="nox -s reproduce --",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--results", type=Path, metavar="DIR", help="a tree of your own")
    options.add_argument(
        "--update",
        action="store_true",
        help="write the recomputed tables, figures and digests into results/ "
        "(for developers: after changing how a table looks)",
    )
    options.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the recomputed tables and figures here"
    )
    return options


def recompute(target: Target, *, own: bool) -> tuple[Study, Outcome]:
    """Recompute one directory of a tree and compare it with what is recorded there."""
    result = study_target(target)
    documents = of_study(result)
    compared = compare_documents(documents.texts, target.directory, own=own)
    notes = [*map(str, result.comparison.out_of_reach), *compared.lacking]
    return result, Outcome(target.name, documents, compared, notes)


def recompute_tree(root: Path, *, own: bool) -> tuple[dict[str, Study], list[Outcome], list[str]]:
    """All directories of a tree, the readings whose parts are there, and what lacks."""
    studies: dict[str, Study] = {}
    outcomes: list[Outcome] = []
    targets, lacking = find_targets(root, own=own)
    for target in targets:
        if ROUNDS[target.request.round_name].whole:
            studies[target.name] = study_target(target)
            continue
        result, outcome = recompute(target, own=own)
        studies[target.name] = result
        outcomes.append(outcome)
    for reading in READINGS.values():
        absent = [name for name in reading.parts.values() if name not in studies]
        if absent:
            recorded = root / reading.directory / READING_JSON
            if recorded.exists():
                lacking.append(f"{recorded}: cannot be read without {', '.join(absent)}")
            continue
        documents = reading.documents({part: studies[at] for part, at in reading.parts.items()})
        compared = compare_documents(documents.texts, root / reading.directory, own=own)
        outcomes.append(Outcome(reading.directory, documents, compared, compared.lacking))
    return studies, outcomes, lacking


def _print_rows(rows: list[Row], first: str) -> None:
    words = {True: "yes", False: "NO", None: "carried"}
    cells = [[row.statistic, row.published, row.recomputed, words[row.equal]] for row in rows]
    print("\n".join(text_table(["statistic", first, "recomputed", "equal"], cells)))


def _print_tables(studies: Mapping[str, Study], outcomes: list[Outcome]) -> list[Row]:
    """Print what was published, and what is recorded of readings, beside what is recomputed."""
    published, recorded = published_rows(studies), _reading_rows(outcomes)
    print(f"Rounds 1 to 3, from the published figures (Ajax: {PUBLISHED_AJAX}).\n")
    _print_rows(published, "published")
    if recorded:
        ran = {which_ajax(studies[part.directory].checks): None for part in PARTS.values()}
        print(f"\nRound 4, from its raw records (Ajax: {'; '.join(ran)}).\n")
        _print_rows(recorded, "recorded")
    return [*published, *recorded]


def _reading_rows(outcomes: list[Outcome]) -> list[Row]:
    """What is recorded of the readings beside what is recomputed, where they have such lines."""
    made = {outcome.name: outcome.documents for outcome in outcomes}
    rows: list[Row] = []
    for reading in READINGS.values():
        if reading.rows is not None and reading.directory in made:
            path = RESULTS / reading.directory / READING_JSON
            recorded = read_json_object(path) if path.exists() else {}
            recomputed = json.loads(made[reading.directory].texts[READING_JSON])
            rows += reading.rows(recorded, recomputed)
    return rows


def _own(options: argparse.Namespace) -> int:
    faults = manifest_faults(RESULTS, recorded_only=options.update)
    for fault in faults.lines:
        print(f"error: {fault}")
    studies, outcomes, lacking = recompute_tree(RESULTS, own=True)
    if options.update:
        wrong = [row.statistic for row in published_rows(studies) if row.equal is False]
        if faults.changed or wrong:
            raise UserError(
                f"nothing was updated: {len(faults.changed)} recorded files changed, {len(wrong)} "
                "statistics differ from what was published; restore results/ first"
            )
        for outcome in outcomes:
            # Numbers that are equal stay as they are: last digits are another processor's.
            texts = {name: outcome.documents.texts[name] for name in outcome.compared.changed}
            replace(outcome.documents, texts=texts).write(RESULTS / outcome.name)
        write_manifest(RESULTS)
        print(f"wrote the tables and figures of {', '.join(each.name for each in outcomes)}")
        return 0
    _draw(outcomes, options.keep)
    rows = _print_tables(studies, outcomes)
    for name, each in studies.items():
        if each.checked.loaded.chosen.whole:  # its tables do not hold them
            print(f"{name}: {'; '.join(check_lines(each.checks))}")
    for line in lacking:
        print(f"not recomputed: {line}")
    differences = [line for outcome in outcomes for line in outcome.differences]
    print("\n".join(differences), end="\n" if differences else "")
    changed = [
        f"{outcome.name}/{name}" for outcome in outcomes for name in outcome.compared.changed
    ]
    if changed:
        print(f"documents that differ: {', '.join(changed)}")
    unequal = sum(row.equal is False for row in rows)
    equal, carried = (sum(row.equal is value for row in rows) for value in (True, None))
    compared = sum(outcome.compared.documents for outcome in outcomes)
    word = "compared, not all equal" if differences else "equal"
    print(f"{equal} statistics equal, {unequal} different, {carried} carried; "
          f"{compared} documents {word}; {faults}")  # fmt: skip
    return EXIT_NO if faults.lines or differences or unequal else 0


def _draw(outcomes: list[Outcome], keep: Path | None) -> None:
    """Write tables and figures where the user asked, else into a directory that goes away."""
    if keep is not None:
        for outcome in outcomes:
            outcome.documents.write(keep / outcome.name)
        return
    with tempfile.TemporaryDirectory(prefix="reproduce-") as temporary:
        for outcome in outcomes:
            # One format shows that they can be drawn; both would double the seconds.
            outcome.documents.write(Path(temporary) / outcome.name, formats=("svg",))


def _foreign(options: argparse.Namespace) -> int:
    root = options.results
    if not root.is_dir():
        raise UserError(f"{root}: no such directory; name a tree of results")
    _, outcomes, lacking = recompute_tree(root, own=False)
    if not outcomes:
        if lacking:
            more = f", and {len(lacking) - 1} more" if lacking[1:] else ""
            raise UserError(
                f"{root}: nothing of it can be recomputed ({lacking[0]}{more}); add what it needs"
            )
        raise UserError(
            f"{root}: holds no summary.json or analysis3.json with the raw files of its runs; "
            "name a tree in the published layout (round1/, round2/, round3/)"
        )
    _draw(outcomes, options.keep)
    cells = [
        [
            each.name,
            str(each.compared.documents),
            yes(not each.differences if each.compared.documents else None),
        ]
        for each in outcomes
    ]
    print("\n".join(text_table(["directory", "documents compared", "numbers equal"], cells)))
    absent = [name for name in PUBLISHED_LAYOUT if not (root / name).is_dir()]
    if absent:
        print(f"not in this tree: {', '.join(absent)}")
    for line in lacking:
        print(f"not recomputed: {line}")
    for outcome in outcomes:
        for note in outcome.notes:
            print(f"not recomputed in {outcome.name}: {note}")
        for line in outcome.differences:
            print(line)
    return EXIT_NO if any(outcome.differences for outcome in outcomes) else 0


def main() -> int:
    """Run the command; the exit status."""
    options = parser().parse_args()
    if options.results is not None and options.update:
        raise UserError("--update writes this project's own results/; it takes no --results")
    return _own(options) if options.results is None else _foreign(options)


if __name__ == "__main__":
    run_command(main)

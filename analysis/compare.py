"""``nox -s compare``: compare two sides, write tables and figures, print the verdict."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from analysis.checked import check
from analysis.documents import Documents, of_study
from analysis.pairs import PAIRS, study_pairs
from analysis.replacing import require_reading_replaceable, require_replaceable
from analysis.report import check_lines, report
from analysis.requests import pairs_request, part_requests, request_of
from analysis.series import awaited, has_own_tables, series_of, waiting_line
from analysis.sources import Source
from analysis.study import Study, compared, title_of
from analysis.together import READINGS, Reading, line_of
from shared.errors import EXIT_NO, UserError, run_command
from shared.protocol import AJAX_RELEASE, ROUNDS, SERIES
from shared.variables import AJAX_VARIABLE

DESCRIPTION = """\
Compare the reference and Ajax sides of a round: recompute its statistics from the recorded
figures, check the runs, write tables and figures, print the verdict."""

EPILOG = """\
examples (after 'nox -s compare --'):
  --round 3 --root .work/round3                     the two sides of one round
  --round 2 --root .work/round2 --against .work/round1
                                                    round 2's cross pairs E and R, and their reading
  --round 4 --root .work/round4                     both parts of round 4, and their reading
  --round 5 --root .work/round5                     all blocks of round 5; checks alone until
                                                    the last has finished
  --ref-root DIR1 --ajax-root DIR2 --out DIR3       any other cross pair
  --round 3 --ref-root published --ajax-root DIR    your Ajax against the published reference;
                                                    with --out, tables and figures too
  --round 1 --root .work/smoke-round1 --smoke       a smoke run

All seeds and all common checkpoints are compared. Where a check says that the data cannot be right
no rule is applied. Tables of another comparison, and a study's, are never replaced.

exit status: 0 no check failed; 1 a check failed (tables are still written), or, with
--fail-on-difference, the rule failed; 2 bad input (nothing was written)."""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = argparse.ArgumentParser(
        prog="nox -s compare --",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument(
        "--round",
        choices=[*ROUNDS, *SERIES],
        help="the round (default: the one that launch_info.txt names, else 1)",
    )
    options.add_argument("--root", metavar="DIR", help="directory of a run with both sides")
    options.add_argument(
        "--ref-root", metavar="DIR", help="take the reference side from here (or 'published[:N]')"
    )
    options.add_argument(
        "--ajax-root", metavar="DIR", help="take the Ajax side from here (or 'published[:N]')"
    )
    options.add_argument(
        "--against",
        metavar="DIR",
        help="with --round 2: round 1's directory (or 'published'); compares both cross pairs",
    )
    options.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write (default: --root; without --out, nothing is written where a side is "
        "taken from elsewhere or published)",
    )
    options.add_argument(
        "--smoke",
        action="store_true",
        help="a smoke run: hold it against its own arguments (known where launch_info.txt says so)",
    )
    options.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        metavar="S",
        help="compare these seeds, as far as a side has them (default: all)",
    )
    ajax = options.add_mutually_exclusive_group()
    ajax.add_argument("--ajax-commit", metavar="SHA", help="the Ajax commit that must have run")
    ajax.add_argument(
        "--ajax-src", type=Path, metavar="DIR", help="a checkout's src: its HEAD must have run"
    )
    ajax.add_argument(
        "--ajax-version",
        metavar="V",
        help=f"the Ajax release that must have run (default: {AJAX_RELEASE}, or the checkout "
        f"whose src {AJAX_VARIABLE} names)",
    )
    options.add_argument(
        "--fail-on-difference", action="store_true", help="exit 1 if the rule (LEARNS) fails"
    )
    return options


def output_directory(options: argparse.Namespace) -> Path | None:
    """Where to write: ``--out``, else ``--root`` where both sides are from there, else nowhere."""
    path: Path | None = options.out
    if path is None and not (options.ref_root or options.ajax_root):
        path = Source.parse(options.root, options.round or "1").directory
    if path is None:
        return None
    existing = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise UserError(f"{path}: cannot write there; give --out with a directory that you own")
    return path


def status(result: Study, fail_on_difference: bool) -> int:
    """Exit status: 1 for a failed check, or for a failed rule if that was asked for."""
    primary = result.comparison.primary
    rule_failed = primary is None or primary.rule is None or not primary.rule.learns
    return EXIT_NO if result.failed or (fail_on_difference and rule_failed) else 0


def _write(documents: Documents, directory: Path) -> None:
    names = ", ".join(path.name for path in documents.write(directory))
    print(f"wrote {names} in {directory}")


def compare_together(
    reading: Reading,
    studies: Mapping[str, Study],
    written: Mapping[str, Path],
    directory: Path,
) -> None:
    """Print and write the comparisons named in ``written``, then what is read from all of them."""
    parts = {name: of_study(studies[name]) for name in written}
    for name, place in written.items():
        require_replaceable(place, studies[name], parts[name].figures["curves"])
    require_reading_replaceable(directory, written, studies.values())
    for name, place in written.items():
        print("\n".join(report(studies[name])))
        _write(parts[name], place)
    made = reading.documents(studies)
    print(line_of(made))
    _write(made, directory)


def compare_pairs(options: argparse.Namespace) -> int:
    """Round 2's pairs E and R with round 1 in ``--against``, and their reading."""
    directory = output_directory(options)
    if directory is None:
        raise UserError("--root published: no place to write; give --out DIR")
    base, sources = pairs_request(options)
    studies = study_pairs(base, sources)
    written = {name: directory / name for name in PAIRS}
    compare_together(READINGS["2"], studies, written, directory)
    return max(status(studies[name], options.fail_on_difference) for name in PAIRS)


def compare_series(options: argparse.Namespace) -> int:
    """All parts of a series, which lie in ``--root`` under their names, and their reading."""
    _refuse_rule(options, options.round)
    parts = {ROUNDS[name].part: ROUNDS[name] for name in SERIES[options.round]}
    named = " and ".join(f"{part}/" for part in parts)
    if options.root is None or options.ref_root or options.ajax_root:
        raise UserError(f"--round {options.round} takes --root DIR alone; DIR holds {named}")
    found = {part: Path(options.root) / part for part in parts}
    if not any(path.is_dir() for path in found.values()):
        there = Path(options.root).is_dir()
        what = f"holds no part of round {options.round}" if there else "no such directory"
        raise UserError(f"{options.root}: {what}; name the directory that holds {named}")
    places = {each.name: found[part] for part, each in parts.items()}
    missing = awaited(path for path in places.values() if path.is_dir())
    unfinished = {each.name for each in missing.values()}
    finished = {name: path for name, path in places.items() if name not in unfinished}
    requests = part_requests(options, finished)
    checked = {ROUNDS[name].part: check(request) for name, request in requests.items()}
    failed = any(each.failed for each in checked.values())
    if missing:
        for each in checked.values():
            print("\n".join([title_of(each.loaded), *check_lines(each.checks)]))
        print(waiting_line(missing))
        return EXIT_NO if failed else 0
    studies = {part: compared(each) for part, each in checked.items()}
    directory = output_directory(options) or Path(options.root)
    written = {
        part: directory / part
        for part, each in checked.items()
        if has_own_tables(each.loaded.chosen)
    }
    compare_together(READINGS[options.round], studies, written, directory)
    return EXIT_NO if failed else 0


def _refuse_rule(options: argparse.Namespace, name: str) -> None:
    if options.fail_on_difference:
        raise UserError(
            f"--fail-on-difference: round {name} has no rule LEARNS; its reading is in reading.md"
        )


def compare_sources(options: argparse.Namespace) -> int:
    """One comparison; of a part of a series that has not finished its checks only."""
    request = request_of(options)
    if series_of(request.round_name):
        _refuse_rule(options, request.round_name)
    directory = output_directory(options)
    checked = check(request)
    missing = awaited(each.directory for each in request.sources.values() if each.directory)
    if missing or not has_own_tables(checked.loaded.chosen):
        print("\n".join([title_of(checked.loaded), *check_lines(checked.checks)]))
        number = checked.loaded.chosen.number
        print(waiting_line(missing) if missing else f"all blocks: compare --round {number}")
        return EXIT_NO if checked.failed else 0
    result = compared(checked)
    made = of_study(result)
    if directory is not None:
        require_replaceable(directory, result, made.figures["curves"])
    print("\n".join(report(result)))
    if directory is not None:
        _write(made, directory)
    else:
        print("nothing is written: give --out DIR for tables and figures")
    return status(result, options.fail_on_difference)


def main() -> int:
    """Run the command; the exit status."""
    options = parser().parse_args()
    elsewhere = options.ref_root or options.ajax_root
    if options.against and (options.round != "2" or not options.root or elsewhere):
        raise UserError("--against goes with --round 2 and --root, the directory of round 2, alone")
    if options.against:
        return compare_pairs(options)
    return compare_series(options) if options.round in SERIES else compare_sources(options)


if __name__ == "__main__":
    run_command(main)

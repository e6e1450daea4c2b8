"""Parts of round 4 before both have run: nothing but the checks; and runs that wait for nothing."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import compare
from tests.conftest import Command, Done, tree, whole
from tests.synthetic import write_run
from tests.synthetic_round4 import EXACT, LITERAL, TABLES

WAITING = "nothing of a series is computed before all of its processes have finished, except the"


def part(command: Command, root: Path, name: str) -> Done:
    return command(compare.main, "--round", f"4-{name}", "--root", root / name)


@pytest.mark.parametrize("code", [None, "1\n"], ids=["not there", "failed"])
def test_of_a_part_whose_sibling_has_not_finished_the_checks_only(
    code: str | None, round4: Path, command: Command
) -> None:
    done_file = round4 / "exact" / "ref_s11.DONE"
    done_file.unlink()
    if code:
        done_file.write_text(code)
    before = tree(round4)
    done = part(command, round4, "literal")
    assert (done.status, done.err, done.failed_checks) == (0, "", [])
    title, checks, waiting = done.out.splitlines()
    assert title == "Round 4: the literal expectation on both sides"
    assert re.fullmatch(r"checks: \d\d passed, 0 failed, 4 not possible", checks)
    assert waiting == (
        f"{WAITING} checks (prereg/ROUND4.md); 1 process has not finished, ref_s11 "
        f"({done_file} is missing or not 0); finish it: nox -s round-4"
    )
    done = part(command, round4, "exact")
    assert (done.status, done.failed_checks) == (1, ["ref s11 exit code"])
    for options in (("--root", round4 / "literal"), ("--root", round4 / "exact")):
        assert WAITING in command(compare.main, *options).out
    mixed = ("--ref-root", round4 / "literal", "--ajax-root", round4 / "exact")
    assert WAITING in command(compare.main, *mixed, "--out", round4 / "mixed").out
    done = whole(command, round4)
    assert (done.status, done.err, len(done.out.splitlines())) == (0, "", 3)
    assert done.out.splitlines()[-1].startswith(WAITING)
    assert tree(round4) == before


def test_of_the_first_part_alone_the_checks_only(round4: Path, command: Command) -> None:
    shutil.rmtree(round4 / "exact")
    before = tree(round4)
    done = part(command, round4, "literal")
    assert done.status == 0
    assert (
        "; 4 processes have not finished, first ref_s10 "
        f"({round4 / 'exact' / 'ref_s10.DONE'} is missing or not 0); finish them: nox -s round-4\n"
    ) in done.out
    done = whole(command, round4)
    assert (done.status, done.err, len(done.out.splitlines())) == (0, "", 3)
    assert tree(round4) == before


def test_a_directory_of_parts_is_told_from_a_part(round4: Path, command: Command) -> None:
    before = tree(round4)
    named = "name the directory that holds literal/ and exact/"
    for options, said in (
        (("--root", round4), "parts of round 4 (literal/, exact/); compare them with --round 4"),
        (("--round", 1, "--root", round4), "compare them with --round 4, or name one of them"),
        (("--round", 4, "--root", round4 / "literal"), f"holds no part of round 4; {named}"),
        (("--round", 4, "--root", round4 / "nowhere"), f"nowhere: no such directory; {named}"),
    ):
        done = command(compare.main, *options)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert said in done.err
    assert tree(round4) == before


@pytest.mark.usefixtures("undrawn")
def test_once_both_have_run_a_part_has_its_tables(round4: Path, command: Command) -> None:
    done = part(command, round4, "literal")
    assert done.status == 0
    assert WAITING not in done.out
    assert set(tree(round4 / "literal")) >= TABLES
    assert not (round4 / "exact" / "compare.md").exists()


@pytest.mark.usefixtures("undrawn")
def test_runs_under_no_pre_registration_wait_for_nothing(tmp_path: Path, command: Command) -> None:
    smoke = replace(LITERAL, seeds=(0, 1), rows=1_600, episodes=2, tiny=True, registered="")
    write_run(tmp_path / "literal", smoke)
    done = command(compare.main, "--root", tmp_path / "literal")
    assert (done.status, done.failed_checks) == (0, [])
    assert "No rule is about this part alone" in done.out
    assert (tmp_path / "literal" / "compare.md").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_smoke_of_both_parts_is_not_read(tmp_path: Path, command: Command) -> None:
    sizes = {"seeds": (0, 1), "rows": 1_600, "episodes": 2, "tiny": True, "registered": ""}
    write_run(tmp_path / "literal", replace(LITERAL, **sizes))
    write_run(tmp_path / "exact", replace(EXACT, **sizes))
    done = whole(command, tmp_path)
    assert (done.status, done.failed_checks) == (0, [])
    assert "Reading: out of reach (literal is a smoke" in done.out

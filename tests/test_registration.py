"""Rounds of several parts, and that no round starts before what fixes it is committed."""

import hashlib
import time
from dataclasses import replace
from pathlib import Path

import pytest

from launch import options
from launch.places import Places
from launch.plan import Plan, plan_round
from launch.registration import check_registered, is_governed
from launch.resume import remaining, set_aside
from shared.errors import UserError
from shared.preregistration import AMENDMENTS, KEY, registered_digest, registration_line
from shared.protocol import ROUNDS, Round
from shared.records.launch_info import read_launches
from tests.rounds import AJAX_ALONE, Launch, end, git

LITERAL = ROUNDS["4-literal"]


def plan(chosen: Round) -> Plan:
    return plan_round(chosen, Places(*[Path("/nowhere")] * 8))


@pytest.fixture
def prereg(tmp_path: Path) -> Path:
    """A repository with the document of round 4, not committed yet."""
    directory = tmp_path / "prereg"
    directory.mkdir()
    git(tmp_path, "init", "--quiet", ".")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "Nothing")
    (directory / "ROUND4.md").write_text("# Round 4\n")
    return directory


def commit(prereg: Path) -> None:
    git(prereg, "add", ".")
    git(prereg, "commit", "--quiet", "-m", "Round 4")


@pytest.mark.parametrize("name", ROUNDS)
def test_every_round_names_a_document_that_is_there(name: str) -> None:
    check_registered(plan(ROUNDS[name]))
    assert registration_line(ROUNDS[name].preregistration).startswith("prereg/")


def test_a_document_that_is_not_committed_is_refused(prereg: Path) -> None:
    with pytest.raises(UserError, match=r"prereg/ROUND4\.md: is not committed as it is; commit it"):
        check_registered(plan(LITERAL), prereg)
    git(prereg, "add", ".")
    with pytest.raises(UserError, match="is not committed as it is"):
        check_registered(plan(LITERAL), prereg)
    commit(prereg)
    check_registered(plan(LITERAL), prereg)


def test_a_document_that_changed_or_went_is_refused(prereg: Path) -> None:
    commit(prereg)
    path = prereg / "ROUND4.md"
    path.write_text(path.read_text() + "Another rule.\n")
    with pytest.raises(UserError, match="or restore it"):
        check_registered(plan(LITERAL), prereg)
    path.unlink()
    with pytest.raises(UserError, match=r"is missing; restore it with 'git restore"):
        check_registered(plan(LITERAL), prereg)


def test_outside_of_a_checkout_nothing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "ROUND4.md").write_text("# Round 4\n")
    with pytest.raises(UserError, match="this is no git checkout"):
        check_registered(plan(LITERAL), tmp_path)


@pytest.mark.parametrize(
    ("says", "remedy"),
    [
        (None, "git: command not found; install git"),
        (
            "fatal: detected dubious ownership in repository at 'x'\n"
            "To add an exception for this directory, call:\n\n\tgit config --global --add s x",
            "ownership in repository at 'x'); run git config --global --add s x",
        ),
        ("fatal: bad config line 1", "(fatal: bad config line 1); see that git -C "),
    ],
)
def test_another_failure_of_git_is_not_taken_for_a_missing_checkout(
    prereg: Path, monkeypatch: pytest.MonkeyPatch, says: str | None, remedy: str
) -> None:
    commit(prereg)
    program = prereg.parent / "bin" / "git"
    program.parent.mkdir()
    if says is not None:
        (program.parent / "said").write_text(f"{says}\n")
        program.write_text(f"#!/bin/sh\n/bin/cat '{program.parent}/said' >&2\nexit 128\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(UserError, match=r"prereg/ROUND4\.md: whether .* not known: ") as caught:
        check_registered(plan(LITERAL), prereg)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", [LITERAL.smoke(), replace(LITERAL, rows=2000)])
def test_a_smoke_and_other_sizes_are_governed_by_no_document(other: Round, tmp_path: Path) -> None:
    assert is_governed(plan(LITERAL))
    assert not is_governed(plan(other))
    check_registered(plan(other), tmp_path)


def test_amendments_do_not_change_the_digest_and_anything_else_does(tmp_path: Path) -> None:
    path = tmp_path / "ROUND4.md"
    path.write_text("# Round 4\n\nRules.\n")
    digest = registered_digest(path)
    assert digest == hashlib.sha256(b"# Round 4\n\nRules.\n").hexdigest()
    path.write_text(f"# Round 4\n\nRules.\n{AMENDMENTS}\n**2026-12-01**: a word was missing.\n")
    assert registered_digest(path) == digest
    path.write_text("# Round 4\n\nOther rules.\n")
    assert registered_digest(path) != digest


# --- a series -------------------------------------------------------------------------------


def test_each_part_of_a_series_has_a_directory_of_its_own() -> None:
    parts = options.series(options.parse(["--round", "4", "--out", "/OUT", "--smoke"]))
    assert [(each.round, str(each.out), each.smoke) for each in parts] == [
        ("4-literal", "/OUT/literal", True),
        ("4-exact", "/OUT/exact", True),
    ]
    assert options.series(options.parse(["--round", "1"])) == [options.parse(["--round", "1"])]


SERIES_SMOKE = ("--round", "4", "--smoke")


def test_a_series_runs_its_parts_and_goes_on_after_a_failed_process(
    tmp_path: Path, launch: Launch
) -> None:
    code, output = end(launch(*AJAX_ALONE, of=SERIES_SMOKE, actions="ajax:fail"))
    assert code == 1, output
    for part in ("literal", "exact"):
        assert (tmp_path / "out" / part / "ajax.DONE").read_text() == "3\n"
    code, output = end(launch(*AJAX_ALONE, of=SERIES_SMOKE))
    assert code == 0, output
    for part, arm in (("literal", "literal"), ("exact", "stock")):
        launches = read_launches(tmp_path / "out" / part / "launch_info.txt")
        assert [each.fields["round"] for each in launches] == [f"4-{part}"] * 2
        assert launches[-1].fields["ajax arm"] == arm
        assert KEY not in launches[-1].fields, "a smoke is not the pre-registered round"
    code, output = end(launch(*AJAX_ALONE, of=SERIES_SMOKE))
    assert code == 0
    assert output.count("finished already, not run again: ajax") == 1


def test_the_round_itself_records_the_digest_of_its_document(
    tmp_path: Path, launch: Launch
) -> None:
    code, output = end(launch("--side", "ajax", "--no-compare", of=("--round", "4")))
    assert code == 0, output
    for part in ("literal", "exact"):
        (launched,) = read_launches(tmp_path / "out" / part / "launch_info.txt")
        assert launched.fields[KEY] == registration_line("ROUND4.md")


def test_a_detached_series_goes_on_by_itself(tmp_path: Path, launch: Launch) -> None:
    code, output = end(launch(*AJAX_ALONE, "--detach", of=SERIES_SMOKE))
    assert code == 0
    log = tmp_path / "out" / "literal" / "launch.log"
    assert output.count("detached: launcher pid") == 1
    assert f"output of all parts in {log}\n" in output
    assert f"nox -s status -- --root {tmp_path / 'out'} --watch, stop it" in output
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "exact" / "ajax.DONE").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "4-exact" in log.read_text()


BLOCKS_SMOKE = ("--round", "5", "--smoke", "--parts", "1")


def test_blocks_run_one_a_start_and_none_overtakes_a_lost_one(
    tmp_path: Path, launch: Launch
) -> None:
    out = tmp_path / "out"
    code, output = end(launch(*AJAX_ALONE, of=BLOCKS_SMOKE))
    assert code == 0, output
    assert sorted(path.name for path in out.iterdir()) == ["1-exact"]
    several = ("--round", "5", "--smoke")
    code, output = end(launch(*AJAX_ALONE, of=several, actions="ajax:fail"))
    assert code == 1, output
    assert sorted(path.name for path in out.iterdir()) == ["1-exact", "2-literal"]
    code, output = end(launch(*AJAX_ALONE, "--dry-run", of=several))
    assert code == 0, output
    assert "round 5-1-exact: has finished\n" in output
    assert "round 5-3-literal: 1 process left to run\n" in output
    assert "\nleft of 8 parts: 5-2-literal 5-3-literal 5-4-exact" in output


def test_a_block_has_finished_with_all_its_processes_or_runs_again_whole(tmp_path: Path) -> None:
    chosen = ROUNDS["5-1-exact"]
    plan = plan_round(chosen, replace(Places(*[Path("/nowhere")] * 8), out=tmp_path))
    for job in plan.jobs:
        (tmp_path / f"{job.name}.DONE").write_text("0\n")
        for path in job.expected_files:
            path.parent.mkdir(parents=True, exist_ok=True)
            # As it is committed: packed, and without lines of progress.
            packed = path.name in ("records.jsonl", "episodes.jsonl")
            if path.name != "progress.jsonl":
                (path.with_name(f"{path.name}.gz") if packed else path).touch()
    assert remaining(plan).jobs == ()
    (tmp_path / "ref_s21.DONE").write_text("137\n")
    assert remaining(plan).jobs == plan.jobs
    set_aside(plan, print)
    assert sorted(path.name for path in (tmp_path / "aside").iterdir()) == sorted(
        f"{job.name}.1" for job in plan.jobs
    )

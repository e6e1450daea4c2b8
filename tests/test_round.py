"""The command ``python -m launch.round``, with stand-ins for the two sides' environments."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from launch import info, options, preflight
from shared.errors import UserError
from shared.protocol import REFERENCE_COMMIT
from shared.provenance.roots import Roots
from shared.records.launch_info import EMPTY_DIFF, Revision, read_launches, side_revision
from tests.inside import ROOT
from tests.rounds import AJAX_ALONE, Launch, end, git, wait_for

# --- a round that goes well -----------------------------------------------------------------


def test_one_side_alone(tmp_path: Path, launch: Launch, ajax_root: Path) -> None:
    code, output = end(launch(*AJAX_ALONE, "--rows", "2000", "--seeds", "4", "2"))
    out = tmp_path / "out"
    assert code == 0, output
    assert "ajax: finished after" in output
    assert "1 of 1 process finished" in output
    assert "departs from the protocol: rows 2000 instead of 1600" in output
    assert "vmap layout" in output
    assert (out / "ajax.DONE").read_text() == "0\n"
    log = (out / "ajax.log").read_text()
    assert log.startswith(f"{out} "), "runs in the output directory"
    assert '"--seeds", "4", "2", "--rows", "2000"' in log
    assert log.endswith(" --a=b\n"), "AJAX_XLA_FLAGS is its XLA_FLAGS"
    (launched,) = read_launches(out / "launch_info.txt")
    assert launched.sides == ("ajax",)
    assert launched.revision("ajax") == Revision(
        git(ajax_root, "rev-parse", "HEAD"), dirty=False, diff_sha1=EMPTY_DIFF
    )
    assert launched.revision("reference") is None
    fields = launched.fields
    assert fields["command"] == (
        "python -m launch.round --round 1 --smoke --side ajax --seeds 4 2 --rows 2000 --out <out> "
        "--reference-python <elsewhere>/python --ajax-root <ajax-root> "
        "--ajax-python <elsewhere>/python --no-compare"
    )
    assert fields["ajax python"] == "3.99.1, jax 0.7.2"
    assert (fields["AJAX_XLA_FLAGS"], fields["seeds"], fields["smoke"]) == ("--a=b", "4 2", "yes")
    project = launched.revision("project")
    assert project is not None
    assert project.commit in (None, git(ROOT, "rev-parse", "HEAD"))


def test_a_smoke_in_a_hurry_goes_without_callbacks(tmp_path: Path, launch: Launch) -> None:
    assert end(launch(*AJAX_ALONE, "--no-callbacks"))[0] == 0
    assert '"--no-callbacks"' in (tmp_path / "out" / "ajax.log").read_text()
    code, output = end(launch(*AJAX_ALONE, "--no-callbacks", of=("--round", "1")))
    assert code == 2
    assert output.startswith("error: --no-callbacks: only a smoke does without them")


@pytest.mark.usefixtures("reference")
def test_two_machines_share_a_round(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    assert end(launch(*AJAX_ALONE))[0] == 0
    code, output = end(launch("--side", "reference", "--no-compare", "--rows", "1200"))
    assert code == 2
    assert "was started with rows 1600, this start asks for 1200; give it the same" in output
    assert not list(out.glob("ref_*"))
    before = (out / "launch_info.txt").read_text()
    code, output = end(launch("--side", "reference", "--no-compare"))
    assert code == 0, output
    assert (out / "launch_info.txt").read_text().startswith(before)
    launches = read_launches(out / "launch_info.txt")
    assert [each.sides for each in launches] == [("ajax",), ("reference",)]
    assert side_revision(launches, "reference") == Revision(REFERENCE_COMMIT, dirty=False)
    assert sorted(path.name for path in out.glob("*.DONE")) == [
        "ajax.DONE",
        "ref_s0.DONE",
        "ref_s1.DONE",
    ]


def test_pairs_are_left_for_later_where_round_1_is_absent(tmp_path: Path, launch: Launch) -> None:
    against = tmp_path / "round1"
    against.mkdir()
    arguments = ("--side", "ajax", "--against", str(against))
    code, output = end(launch(*arguments, of=("--round", "2")))
    assert code == 0, output
    assert "] comparison:" in output
    out = tmp_path / "out"
    assert f"comparison: not counted, no reference evaluations in {out}" in output
    assert f"pairs E and R: left for later, no reference evaluations in {out}, no " in output
    assert f"nox -s compare -- --round 2 --root {out} --ajax-src" in output
    assert f"--against {against}\n" in output


def test_a_round_of_two_parts_is_left_for_later_until_both_have_finished(
    tmp_path: Path, launch: Launch
) -> None:
    code, output = end(launch("--side", "ajax", of=("--round", "4")))
    assert code == 0, output
    out = tmp_path / "out"
    lacking = [("reference", "literal"), ("reference", "exact"), ("ajax", "exact")]
    missing = ", ".join(f"no finished {side} in {out / part}" for side, part in lacking)
    assert f"round 4: left for later, {missing}; when there are:" in output
    assert f"nox -s compare -- --round 4 --root {out} --ajax-src" in output


# --- a round that does not ------------------------------------------------------------------


@pytest.mark.usefixtures("reference")
def test_a_killed_process_is_named_and_the_rest_goes_on(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    process = launch("--jobs", "2", actions="ref_s0:wait")
    wait_for(out / "ref_s0" / "pid", process)
    os.kill(int((out / "ref_s0" / "pid").read_text()), signal.SIGKILL)
    code, output = end(process)
    assert code == 1
    assert "FAILED ref_s0: ended by SIGKILL (exit code 137); log: " in output
    assert "2 of 3 processes finished" in output
    assert "] comparison:" in output, "what is there is compared"
    done = {path.stem: path.read_text() for path in out.glob("*.DONE")}
    assert done == {"ref_s0": "137\n", "ref_s1": "0\n", "ajax": "0\n"}
    assert (out / "ref_s0" / "evals.jsonl").read_text().endswith("}\n")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("ajax:fail", "FAILED ajax: exit code 3; log: "),
        ("ajax:forget", "FAILED ajax: ended with 0 but left no ajax/s1/records.jsonl; log: "),
        (
            "ajax:leak",
            "FAILED scan: exit code 1; each line above names a file and what in it tells",
        ),
    ],
)
def test_what_went_wrong_is_said_at_the_end(launch: Launch, action: str, said: str) -> None:
    code, output = end(launch(*AJAX_ALONE, actions=action))
    assert code == 1
    assert said in output.splitlines()[-2]


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_the_launcher_stops_and_marks_its_processes(
    tmp_path: Path, launch: Launch, number: signal.Signals, status: int
) -> None:
    out = tmp_path / "out"
    process = launch("--jobs", "2", "--no-compile-cache", actions="ref_s0:wait,ref_s1:wait")
    for name in ("ref_s0", "ref_s1"):
        wait_for(out / name / "pid", process)
    process.send_signal(number)
    code, output = end(process)
    assert code == status
    assert f"{number.name}: SIGTERM to ref_s0, ref_s1" in output
    assert "STOPPED ref_s0: ended by SIGTERM (exit code 143); log: " in output
    assert "never started: ajax" in output
    assert "comparison:" not in output
    assert "scan:" not in output
    assert {path.name: path.read_text() for path in out.glob("*.DONE")} == {
        "ref_s0.DONE": "143\n",
        "ref_s1.DONE": "143\n",
    }
    for name in ("ref_s0", "ref_s1"):
        with pytest.raises(ProcessLookupError):
            os.kill(int((out / name / "pid").read_text()), 0)


def test_a_terminal_that_goes_away_ends_no_round(tmp_path: Path, launch: Launch) -> None:
    process = launch(*AJAX_ALONE, "--lines-every", "0.01", actions="ajax:wait")
    wait_for(tmp_path / "out" / "ajax" / "pid", process)
    assert process.stdout is not None
    process.stdout.close()  # as `| head` does
    time.sleep(1.0)
    assert process.poll() is None
    process.terminate()
    assert process.wait(60) == 143


# --- before anything is started -------------------------------------------------------------


def test_other_peoples_files_are_left_alone(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("dear")
    code, output = end(launch(*AJAX_ALONE))
    assert (code, output.count("\n")) == (2, 1)
    assert "is not empty and holds no run" in output
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_a_dry_run_creates_nothing(tmp_path: Path, launch: Launch) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, output = end(launch("--dry-run", "--reference-checkout", str(tmp_path / "absent")))
    assert code == 2, output
    assert sorted(tmp_path.rglob("*")) == before
    for part in (
        "3 processes",
        "ref_s1:",
        "--arm stock",
        "AJAX_XLA",
        "XLA_FLAGS=--a=b",
        "JAX_COMPILATION_CACHE_DIR=",
        "compile cache: on; ref_s1 waits until ref_s0 trains\n",
        "timing.json",
    ):
        assert (part in output) is (part != "AJAX_XLA")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ajax.DONE").write_text("0\n")
    code, output = end(launch("--dry-run"))
    assert code == 2
    assert "not possible as things are" in output


def test_a_dry_run_makes_nothing_of_what_is_named(tmp_path: Path, launch: Launch) -> None:
    absent = str(tmp_path / "absent")
    for option in ("--reference-checkout", "--reference-python"):
        code, output = end(launch("--dry-run", option, absent))
        assert code == 2
        assert f"\nnot possible as things are: {option} {absent}: " in output
        assert "made first" not in output


def test_a_dry_run_of_one_side_asks_nothing_of_the_other(tmp_path: Path, launch: Launch) -> None:
    code, output = end(launch(*AJAX_ALONE, "--dry-run", DREAMERV3_REF=str(tmp_path / "absent")))
    assert code == 0, output


def test_a_dry_run_of_a_new_round_looks_at_its_programs(tmp_path: Path, launch: Launch) -> None:
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\necho '[\"3.12\", [], []]'\n")
    bare.chmod(0o755)
    for words in ((), ("--dry-run",)):
        code, output = end(launch(*AJAX_ALONE, *words, "--ajax-python", str(bare)))
        assert code == 2
        assert f"{bare}: has no jax; name another one with --ajax-python" in output


def test_a_dry_run_says_that_a_named_python_is_none(launch: Launch) -> None:
    code, output = end(launch("--dry-run", "--reference-python", __file__))
    assert code == 2
    said = f"not possible as things are: --reference-python {__file__}: is no program; name a"
    assert said in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rows", "1000"], "--rows 1000: give a positive multiple of the 400 rows"),
        (["--rows", "0"], "--rows 0: give a positive multiple"),
        (["--every", "100"], "--every 100: give a positive multiple of 16"),
        (["--episodes", "0"], "--episodes 0: give a positive number"),
        (["--seeds", "1", "1"], "--seeds 1 1: give different seeds"),
        (["--seeds", "-1"], "--seeds -1: give different seeds from 0 to 4294967295"),
        (["--seeds", "0", "4294967296"], "--seeds 0 4294967296: give different seeds from 0"),
        (["--rows", "16", "--every", "16"], "--rows 16: nothing is trained before row 1040"),
        (["--lines-every", "0"], "--lines-every 0: give a positive number of seconds"),
        (["--lines-every", "-3"], "--lines-every -3: give a positive number of seconds"),
        (["--lines-every", "nan"], "--lines-every nan: give a positive number of seconds"),
        (["--jobs", "0"], "--jobs 0: give a positive number"),
        (["--against", "/nowhere"], "--against /nowhere: no such directory"),
        (["--ajax-root", "/nowhere"], "--ajax-root /nowhere: no ajax package in /nowhere/src"),
        (["--ajax-python", "/nowhere"], "--ajax-python /nowhere: no such file; name a Python"),
        (["--ajax-python", __file__], "test_round.py: is no program; name a Python, or"),
        (["--ajax-python", "/bin/sh"], "/bin/sh: cannot be run (is it a Python?)"),
        (["--ajax-python", sys.executable], "has no jax; name another one with --ajax-python"),
    ],
)
def test_bad_input_is_one_line_and_starts_nothing(
    tmp_path: Path, launch: Launch, arguments: list[str], said: str
) -> None:
    code, output = end(launch(*AJAX_ALONE, *arguments))
    assert (code, output.count("\n")) == (2, 1), output
    assert output.startswith("error: ")
    assert said in output
    assert not (tmp_path / "out").exists()


def test_a_missing_reference_checkout_is_one_line(tmp_path: Path, launch: Launch) -> None:
    code, output = end(launch("--reference-checkout", str(tmp_path / "absent")))
    assert (code, output.count("\n")) == (2, 1), output
    assert "--reference-checkout" in output
    assert not (tmp_path / "out").exists()


def test_the_output_never_lies_in_the_code_that_runs(launch: Launch, ajax_root: Path) -> None:
    code, output = end(launch(*AJAX_ALONE, "--out", str(ajax_root / "src" / "out")))
    assert (code, output.count("\n")) == (2, 1), output
    assert "lies in the code that runs" in output
    assert not (ajax_root / "src" / "out").exists()


def test_too_little_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preflight.check_room(tmp_path / "a" / "b", 1, [])
    monkeypatch.setattr(preflight, "BYTES_PER_PROCESS", 2**60)
    with pytest.raises(UserError, match=r"MiB are free, 3 processes need about"):
        preflight.check_room(tmp_path / "a" / "b", 3, [])
    assert not list(tmp_path.iterdir())


def test_an_interpreter_is_asked_once_by_a_dry_run_and_anew_by_a_start(
    tmp_path: Path, launch: Launch, python: Path
) -> None:
    asked = tmp_path / "asked"
    script = python.read_text().replace("\nexec", f"\necho >> '{asked}'\nexec")
    python.write_text(script)
    assert end(launch("--dry-run"))[0] == 0
    assert asked.read_text().count("\n") == 2, "for each side once"
    asked.unlink()
    assert end(launch(*AJAX_ALONE))[0] == 0
    assert asked.read_text().count("\n") == 3, "for the plan, for the record, and to run"


# --- what is recorded -----------------------------------------------------------------------


def test_uncommitted_changes_of_ajax_are_recorded(ajax_root: Path) -> None:
    clean = info.checkout(ajax_root / "src")
    (ajax_root / "notes.txt").write_text("outside src")
    assert info.checkout(ajax_root / "src") == clean
    (ajax_root / "src" / "ajax" / "__init__.py").write_text("x = 1\n")
    changed = info.checkout(ajax_root / "src")
    assert (clean.dirty, clean.diff_sha1, changed.dirty) == (False, EMPTY_DIFF, True)
    assert changed.diff_sha1 not in (None, EMPTY_DIFF)


def test_a_tree_that_is_no_checkout_says_so(tmp_path: Path, ajax_root: Path) -> None:
    assert info.project_revision(tmp_path).line("project") == "<repo>; no git checkout"
    # An archive unpacked inside another project's checkout is not that project's commit.
    assert info.project_revision(ajax_root / "src").commit is None
    assert info.project_revision(ajax_root).dirty is False
    (ajax_root / "new.py").write_text("")
    assert info.project_revision(ajax_root).line("project").endswith("; dirty: yes")


def test_inherited_settings_are_recorded_without_places() -> None:
    assert info.inherited_settings({"HOME": "/home/me", "PATH": "/bin", "JAX_ENABLE_X64": "1"}) == (
        "none"
    )
    given = {
        "OMP_NUM_THREADS": "1",
        "LD_PRELOAD": "/usr/lib/a/libjemalloc.so.2:/opt/other.so  libplain.so",
        "MALLOC_CONF": "prof_prefix:/home/me/heap,\nnarenas:2",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
    assert info.inherited_settings(given) == (
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "
        "LD_PRELOAD=<elsewhere>/libjemalloc.so.2:<elsewhere>/other.so libplain.so "
        "MALLOC_CONF=prof_prefix:<elsewhere>, narenas:2 OMP_NUM_THREADS=1"
    )


def test_a_round_continues_with_other_settings_and_records_both(
    tmp_path: Path, launch: Launch
) -> None:
    info_file = tmp_path / "out" / "launch_info.txt"
    assert end(launch(*AJAX_ALONE, actions="ajax:fail", MALLOC_ARENA_MAX="2"))[0] == 1
    before = info_file.read_text()
    assert "\nenvironment: MALLOC_ARENA_MAX=2" in before
    # As a version of this project left it that did not record them.
    info_file.write_text("".join(x for x in before.splitlines(True) if "environment:" not in x))
    code, output = end(launch(*AJAX_ALONE, OMP_NUM_THREADS="3"))
    assert code == 0, output
    assert "OMP_NUM_THREADS=3" in read_launches(info_file)[1].fields["environment"]


def test_a_remote_is_not_recorded() -> None:
    given = options.parse(["--round", "2", "--reference-remote", "https://git.example.invalid/x"])
    assert options.command_line(given, Roots()) == (
        "python -m launch.round --round 2 --reference-remote <elsewhere>/x"
    )


def release(site: Path, version: str) -> preflight.PythonFacts:
    """An installed ``ajax-rl`` whose files are those of its RECORD."""
    (site / f"ajax_rl-{version}.dist-info").mkdir(parents=True)
    (site / f"ajax_rl-{version}.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: ajax-rl\nVersion: {version}\n"
    )
    (site / f"ajax_rl-{version}.dist-info" / "RECORD").write_text("")
    return preflight.PythonFacts("3.12.1", "0.7.2", (str(site),))


def test_only_the_pinned_release_is_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ajax-rl is not installed"):
        preflight.verified_release(preflight.PythonFacts("3.12.1", "0.7.2", (str(tmp_path),)))
    with pytest.raises(UserError, match=r"ajax-rl 0\.3\.0 is installed, 0\.4\.0 expected"):
        preflight.verified_release(release(tmp_path / "old", "0.3.0"))
    with pytest.raises(UserError, match="its RECORD is not the release's"):
        preflight.verified_release(release(tmp_path / "forged", "0.4.0"))

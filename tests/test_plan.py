"""Plans of all rounds and their smokes, and what of the user's shell reaches a process.

The files in tests/test_plan/ are the plans as --dry-run prints them; after a deliberate change,
``nox -s tests -- tests/test_plan.py --force-regen`` writes them anew for review.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from launch.describe import describe_cache, describe_plan
from launch.places import Places
from launch.plan import Plan, departures, plan_round
from launch.programs import SideCache, mark_warm
from shared.protocol import ROUNDS, SERIES, SIDES, Round, Side, updates
from shared.variables import FIXED, child_environment

PLACES = Places(
    repo=Path("/REPO"),
    out=Path("/OUT"),
    against=Path("/ROUND1"),
    checkout=Path("/CHECKOUT"),
    reference_python=Path("/REFERENCE/bin/python"),
    ajax_python=Path("/AJAX/bin/python"),
    study_python=Path("/STUDY/bin/python"),
)


CACHES: dict[Side, SideCache] = {
    side: SideCache(Path(f"/REPO/.work/cache/jax/{side.upper()}"), "c0de") for side in SIDES
}


def plan(chosen: Round, places: Places = PLACES) -> Plan:
    return plan_round(chosen, places, caches=CACHES)


@pytest.mark.parametrize("smoke", [False, True], ids=["full", "smoke"])
@pytest.mark.parametrize("number", [name for name in ROUNDS if name[:2] != "5-"] + ["5-1-exact"])
def test_plan_of_every_round(
    number: str, smoke: bool, file_regression: FileRegressionFixture
) -> None:
    chosen = ROUNDS[number].smoke() if smoke else ROUNDS[number]
    name = f"round{number}{'_smoke' if smoke else ''}"
    file_regression.check(describe_plan(plan(chosen), limit=2), basename=name)


def test_a_part_of_a_series_says_when_it_is_compared() -> None:
    out = PLACES.out / "literal"
    text = describe_plan(plan(ROUNDS["4-literal"], replace(PLACES, out=out)), limit=2)
    assert "\nthen comparison, before all parts have finished of the checks alone:\n" in text
    assert "\nthen round 4, once all parts have finished:\n" in text


@pytest.mark.parametrize("number", ROUNDS)
def test_every_seed_runs_once_on_each_side_with_the_rounds_arms(number: int) -> None:
    chosen = ROUNDS[number]
    jobs = plan(chosen).jobs
    assert sorted(job.seeds for job in jobs if job.side == "reference") == [
        (seed,) for seed in chosen.seeds
    ]
    assert [job.seeds for job in jobs if job.side == "ajax"] == [chosen.seeds]
    for job in jobs:
        assert job.argv[job.argv.index("--arm") + 1] == chosen.arm(job.side).name
        patched = any(path.name == "PATCH.txt" for path in job.expected_files)
        assert patched is chosen.arm(job.side).patched


def test_processes_are_sorted_longest_first() -> None:
    for chosen in ROUNDS.values():
        for each in (chosen, chosen.smoke(), replace(chosen, seeds=(4,))):
            seconds = [job.expected_s for job in plan(each).jobs]
            assert seconds == sorted(seconds, reverse=True)
    assert plan(ROUNDS["1"]).jobs[0].name == "ajax", "three seeds in one process take longest"
    assert plan(ROUNDS["1"].smoke()).jobs[0].name == "ref_s0", "a smoke mostly builds and compiles"


def test_names_and_files_of_processes_do_not_clash() -> None:
    for chosen in ROUNDS.values():
        jobs = plan(chosen).jobs
        files = [path for job in jobs for path in job.expected_files]
        assert len({job.name for job in jobs}) == len(jobs)
        assert len(set(files)) == len(files)
        assert all(
            path.is_relative_to(job.directory) for job in jobs for path in job.expected_files
        )


def test_planning_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan(ROUNDS["2"], replace(PLACES, out=tmp_path / "out", against=tmp_path / "round1"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("side", SIDES)
def test_one_side_alone_has_the_same_processes(side: str) -> None:
    alone = plan_round(
        ROUNDS["3"], PLACES, sides=[each for each in SIDES if each == side], caches=CACHES
    )
    assert alone.sides == (side,)
    assert alone.jobs == tuple(job for job in plan(ROUNDS["3"]).jobs if job.side == side)


def test_xla_flags_reach_their_own_side_only() -> None:
    jobs = plan_round(ROUNDS["1"], PLACES, xla_flags={"reference": "--x=1"}).jobs
    assert {job.side: job.env["XLA_FLAGS"] for job in jobs} == {"reference": "--x=1", "ajax": ""}


def test_without_a_cache_no_variable_points_at_one() -> None:
    bare = plan_round(ROUNDS["1"], PLACES)
    assert not bare.compile_cache
    assert describe_cache(bare) == "compile cache: off"
    for job in bare.jobs:
        assert job.program is None
        assert not any(name.startswith("JAX_") for name in job.env if name != "JAX_PLATFORMS")
        assert (job.env.get("AJAX_NO_COMPILE_CACHE") == "1") is (job.side == "ajax")


def test_jobs_share_a_program_where_they_compile_the_same() -> None:
    seeds = [job.program for job in plan(ROUNDS["3"]).jobs if job.side == "reference"]
    assert len(seeds) == 5
    assert len(set(seeds)) == 1
    programs = {
        job.program
        for chosen in ROUNDS.values()
        for each in (chosen, chosen.smoke(), replace(chosen, seeds=(4,)))
        for job in plan(each).jobs
    }
    # Three arms of the reference, tiny and full. Of Ajax no two rounds are alike, but their smokes
    # where they have the same arm, and rounds that differ in their seeds alone.
    alike = {(each.arm("ajax").name, each.rows, len(each.seeds)) for each in ROUNDS.values()}
    assert len(alike) == 5
    assert len(programs) == 3 * 2 + len(alike) * 2 + 2
    flagged = plan_round(ROUNDS["1"], PLACES, caches=CACHES, xla_flags={"reference": "--x=1"}).jobs
    assert programs.isdisjoint({job.program for job in flagged if job.side == "reference"})


def test_a_smoke_records_as_a_full_round_does_unless_told_otherwise() -> None:
    for chosen in ROUNDS.values():
        for each in (chosen, chosen.smoke()):
            (ajax,) = (job for job in plan(each).jobs if job.side == "ajax")
            assert "--no-callbacks" not in ajax.argv
    hurried = plan_round(chosen.smoke(), PLACES, caches=CACHES, callbacks=False)
    (other,) = (job for job in hurried.jobs if job.side == "ajax")
    assert "--no-callbacks" in other.argv
    assert other.program != ajax.program, "what is in the cache of the one is not the other's"


@pytest.mark.parametrize("number", ROUNDS)
def test_every_process_is_told_its_round(number: str) -> None:
    for job in plan(ROUNDS[number]).jobs:
        assert job.argv[job.argv.index("--round") + 1] == number


def test_code_that_changes_is_never_warm() -> None:
    caches = {**CACHES, "ajax": SideCache(CACHES["ajax"].directory, None)}
    (job,) = plan_round(ROUNDS["1"], PLACES, sides=["ajax"], caches=caches).jobs
    assert job.program is None
    assert job.env["JAX_COMPILATION_CACHE_DIR"] == "/REPO/.work/cache/jax/AJAX"


def test_who_waits_for_whom_is_said(tmp_path: Path) -> None:
    caches: dict[Side, SideCache] = {side: SideCache(tmp_path, "c0de") for side in SIDES}
    cold = plan_round(ROUNDS["1"], PLACES, caches=caches)
    assert describe_cache(cold) == "compile cache: on; ref_s1 ref_s2 wait until ref_s0 trains"
    for job in cold.jobs:
        assert job.program is not None
        mark_warm(job.program)
    assert describe_cache(cold) == "compile cache: on"


def test_a_checkout_of_ajax_is_passed_on() -> None:
    given = plan(ROUNDS["1"], replace(PLACES, ajax_root=Path("/AJAXROOT"))).jobs[0]
    assert given.argv[-2:] == ("--ajax-root", "/AJAXROOT")
    named = plan(ROUNDS["1"], replace(PLACES, ajax_src=Path("/ELSE/src"))).jobs[0]
    assert named.env["AJAX_SRC"] == "/ELSE/src"
    assert "AJAX_SRC" not in plan(ROUNDS["1"]).jobs[0].env


def test_departures_name_every_changed_size() -> None:
    assert departures(ROUNDS["3"]) == departures(ROUNDS["3"].smoke()) == ()
    other = replace(ROUNDS["1"], rows=2000, every=400, episodes=2, seeds=(0, 1))
    words = departures(other)
    assert words[:4] == (
        "seeds 0 1 instead of 0 1 2",
        "rows 2000 instead of 20000",
        "every 400 instead of 2000",
        "episodes 2 instead of 10",
    )
    assert "vmap layout" in words[4]
    assert "departs from the protocol: rows 2000 instead of 20000" in describe_plan(plan(other), 1)


def test_other_seeds_are_told_to_the_comparison() -> None:
    (own,) = plan(replace(ROUNDS["1"], seeds=(7, 8))).comparisons
    assert own.argv[3:] == ("--round", "1", "--root", "/OUT", "--seeds", "7", "8")


def test_the_checkout_that_ran_is_the_one_the_comparison_expects() -> None:
    (own,) = plan(ROUNDS["1"], replace(PLACES, ajax_src=Path("/A/src"))).comparisons
    assert own.argv[-2:] == ("--ajax-src", "/A/src")


def test_without_comparison_only_the_scan_follows() -> None:
    bare = plan_round(ROUNDS["2"], PLACES, compare=False)
    assert bare.comparisons == ()


def test_the_users_shell_does_not_change_what_is_computed() -> None:
    job = plan(ROUNDS["1"]).jobs[0]
    inherited = {
        "PATH": "/bin",
        "HOME": "/HOME",
        "JAX_ENABLE_X64": "1",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "x",
        "PYTHONOPTIMIZE": "2",
        "PYTHONPATH": "/EVIL",
        "DREAMERV3_REF": "relative",
        "AJAX_SRC": "relative/src",
        "AJAX_XLA_FLAGS": "--y",
        "AJAX_NO_COMPILE_CACHE": "",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    env = child_environment(job.env, inherited)
    kept = {"PATH": "/bin", "HOME": "/HOME"}
    assert env == kept | FIXED | dict(job.env)
    assert env["PYTHONPATH"] == "/REPO"


def test_updates_are_those_of_the_protocol() -> None:
    assert "20000 rows = 9481 updates" in describe_plan(plan(ROUNDS["1"]), 1)
    assert updates(1600) == 281


def evaluations(root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "evals.jsonl").write_text("")


def test_pairs_wait_for_all_four_sides(tmp_path: Path) -> None:
    two, one = tmp_path / "round2", tmp_path / "round1"
    own, pairs = plan(ROUNDS["2"], replace(PLACES, out=two, against=one)).comparisons
    for name in ("ref_s0", "ajax/s0"):
        evaluations(two, name)
    assert own.lacks() == ()
    assert pairs.lacks() == (("reference", one), ("ajax", one))
    evaluations(one, "ref_s0")
    (one / "ajax" / "s0").mkdir(parents=True)
    assert pairs.lacks() == (("ajax", one),), "a directory alone is no run"
    (one / "ajax" / "s0" / "evals.jsonl").write_text("")
    assert pairs.lacks() == ()
    assert plan(ROUNDS["2"].smoke()).comparisons[0].own
    assert len(plan(ROUNDS["2"].smoke()).comparisons) == 1


def test_a_part_reads_the_whole_round_once_all_of_it_has_finished(tmp_path: Path) -> None:
    parts = {name: tmp_path / "round4" / ROUNDS[name].part for name in SERIES["4"]}
    for name, out in parts.items():
        own, together = plan(ROUNDS[name], replace(PLACES, out=out)).comparisons
        assert own.own
        assert own.argv[-4:] == ("--round", name, "--root", str(out))
        assert together.argv[-4:] == ("--round", "4", "--root", str(tmp_path / "round4"))
        assert len(together.lacks()) == 4
    literal, exact = parts.values()
    for out in parts.values():
        out.mkdir(parents=True)
    for name, out in parts.items():
        for job in plan(ROUNDS[name], replace(PLACES, out=out)).jobs:
            (out / f"{job.name}.DONE").write_text("0\n")
            for path in job.expected_files:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
    assert together.lacks() == ()
    (literal / "ref_s12" / "episodes.jsonl").unlink()
    assert together.lacks() == (("reference", literal),), "it left no such file"
    (literal / "ref_s12" / "episodes.jsonl").touch()
    (exact / "ref_s11.DONE").write_text("3\n")
    (literal / "ajax.DONE").unlink()
    assert together.lacks() == (("ajax", literal), ("reference", exact))


def test_a_smoke_of_a_part_or_one_elsewhere_is_compared_alone(tmp_path: Path) -> None:
    (own,) = plan(ROUNDS["4-exact"].smoke(), replace(PLACES, out=tmp_path / "exact")).comparisons
    assert own.argv[-5:] == ("--round", "4-exact", "--root", str(tmp_path / "exact"), "--smoke")
    assert len(plan(ROUNDS["4-exact"], replace(PLACES, out=tmp_path / "mine")).comparisons) == 1

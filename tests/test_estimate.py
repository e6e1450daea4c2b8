"""What a dry run and the bench's table make of measured and of published speeds."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from launch import dry_run, estimate, preflight
from launch import options as asked
from launch.bench_file import StartTimes, save
from launch.estimate import PublishedSpeeds, describe_estimate, disk, memory, works
from launch.plan import COSTS, plan_round
from launch.programs import SideCache, mark_warm
from launch.progress import duration
from launch.round import main
from launch.schedule import wall_time
from shared.protocol import ROUNDS, SERIES, SIDES, Side
from shared.records.launch_info import append_launch
from tests.made_bench import made
from tests.test_plan import PLACES


def test_speeds_come_from_the_largest_measured_mix() -> None:
    found = made()
    assert found.update_s("reference", 1, {"reference": 1, "ajax": 0}) == 1.0
    assert found.update_s("reference", 1, {"reference": 1, "ajax": 1}) == 1.4
    assert found.update_s("ajax", 3, {"reference": 1, "ajax": 1}) == 3.0
    assert found.update_s("ajax", 5, {"reference": 0, "ajax": 1}) == pytest.approx(4.0)
    # Three on two cores share them.
    assert found.update_s("reference", 1, {"reference": 3, "ajax": 0}) == pytest.approx(2.25)
    # On eight cores two measured side by side say what three take, as long as cores are free.
    roomy = made(cores=8)
    assert roomy.update_s("reference", 1, {"reference": 3, "ajax": 0}) == pytest.approx(1.5)


def test_an_estimate_counts_who_waits_and_what_is_warm(tmp_path: Path) -> None:
    caches: dict[Side, SideCache] = {side: SideCache(tmp_path, "c0de") for side in SIDES}
    plan = plan_round(ROUNDS["1"], PLACES, caches=caches)
    ajax, first, *others = works(plan, made())
    assert (ajax.side, ajax.start_s, ajax.program) == ("ajax", 150.0, None), "it is never kept"
    assert (first.start_s, first.warm_s) == (344.0, 25.0)
    assert first.program is not None
    assert all(work.program == first.program for work in others)
    assert plan.jobs[1].program is not None
    mark_warm(plan.jobs[1].program)
    warm = works(plan, made())[1]
    assert (warm.start_s, warm.program) == (25.0, None)
    bare = works(plan_round(ROUNDS["1"], PLACES), made())
    assert {(work.start_s, work.program) for work in bare[1:]} == {(344.0, None)}


def test_an_estimate_says_that_a_warm_start_is_not_known(tmp_path: Path) -> None:
    caches: dict[Side, SideCache] = {side: SideCache(tmp_path, "c0de") for side in SIDES}
    plan = plan_round(ROUNDS["1"].smoke(), PLACES, caches=caches, callbacks=False)
    starts: dict[Side, StartTimes] = {
        "reference": StartTimes(9.0, 2.0),
        "ajax": StartTimes(9.0, None),
    }
    tiny = made(tiny=True, start=starts)
    assert not any("not measured" in line for line in describe_estimate(plan, 1, tiny))
    for job in plan.jobs:
        assert job.program is not None
        mark_warm(job.program)
    assert {work.side: work.start_s for work in works(plan, tiny)} == {"reference": 2, "ajax": 9}
    assert any("not measured" in line for line in describe_estimate(plan, 1, tiny))
    observed = plan_round(ROUNDS["1"].smoke(), PLACES, caches=caches)
    (job,) = (job for job in observed.jobs if job.side == "ajax")
    assert job.program not in {other.program for other in plan.jobs}
    mark_warm(job.program or tmp_path)
    assert not estimate.is_warm(job), "jax does not keep a program with a host callback"


def test_the_estimate_of_a_round_by_hand() -> None:
    plan = plan_round(ROUNDS["1"], PLACES)
    seconds = 3 * (344.0 + 9481 * 1.0) + 150.0 + 9481 * 2.4
    assert wall_time(works(plan, made()), 1, made()) == pytest.approx(seconds)
    lines = list(describe_estimate(plan, 1, made()))
    assert lines[0] == "estimate: 14 h 33 min (measured here on 2026-11-29)"
    assert lines[1].startswith("  --jobs 2 would take ")
    assert lines[2] == "  memory: at most 2.0 GB at a time"
    assert lines[3].startswith("  disk: about ")


def test_without_a_bench_the_published_figures_are_named() -> None:
    plan = plan_round(ROUNDS["1"], PLACES)
    lines = list(describe_estimate(plan, 2, None))
    assert "published figures of another machine; nox -s bench" in lines[0]
    assert not any("memory" in line for line in lines)
    cost = COSTS["reference", False]
    published = PublishedSpeeds(tiny=False)
    assert published.update_s("reference", 1, {"reference": 2, "ajax": 0}) == cost.update_s
    assert published.start_s("reference", warm=True) == cost.warm_s < cost.start_s


def test_memory_is_that_of_the_largest_at_a_time() -> None:
    jobs = plan_round(ROUNDS["3"], PLACES).jobs
    assert [memory(jobs, limit, made()) for limit in (1, 2, 9)] == [2e9, 3e9, 7e9]


def test_disk_grows_with_rows_and_seeds() -> None:
    sizes = [disk(plan_round(chosen, PLACES)) for chosen in ROUNDS.values()]
    assert sizes[0] == sizes[1] < sizes[2] < 100e6
    assert disk(plan_round(ROUNDS["1"], PLACES, sides=["ajax"])) < 1e6


@pytest.fixture
def nothing_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without environments, whatever this one has."""
    monkeypatch.setattr(dry_run, "is_built", lambda _: False)


@pytest.mark.usefixtures("nothing_built")
def test_a_dry_run_prints_the_estimate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "bench.json"
    monkeypatch.setattr(estimate, "this_bench", lambda *_, **__: path)
    monkeypatch.setattr(asked, "usable_cores", lambda: 2)
    words = ["--round", "1", "--dry-run", "--no-compile-cache", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["launch.round", *words])
    assert main() == 0
    assert "(from published figures of another machine" in capsys.readouterr().out
    save(path, made())
    assert main() == 0
    output = capsys.readouterr().out
    assert "(measured here on 2026-11-29)" in output
    assert "memory: at most 3.0 GB at a time" in output
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("nothing_built")
def test_a_dry_run_estimates_what_is_left_and_looks_at_the_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(estimate, "this_bench", lambda *_, **__: tmp_path / "none")
    out = tmp_path / "out"
    words = ["--round", "1", "--dry-run", "--no-compile-cache", "--jobs", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["launch.round", *words])
    plan = plan_round(ROUNDS["1"], replace(PLACES, out=out))
    out.mkdir()
    append_launch(out / "launch_info.txt", {"launched": "before"})
    for number, job in enumerate(plan.jobs):
        assert main() == 0
        output = capsys.readouterr().out
        left = replace(plan, jobs=plan.jobs[number:])
        assert next(describe_estimate(left, 1, None)) in output.splitlines()
        names = " ".join(other.name for other in left.jobs)
        assert (f"\nleft to run: {names}\n" in output) is (number > 0)
        for path in job.expected_files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (out / f"{job.name}.DONE").write_text("0\n")
        with monkeypatch.context() as patched:
            patched.setattr(preflight, "BYTES_PER_PROCESS", 2**60)
            status = main()
        needs_room = number + 1 < len(plan.jobs)
        assert ("MiB are free, " in capsys.readouterr().out) is needs_room
        assert status == (2 if needs_room else 0), "what has finished needs no room"
    assert main() == 0
    assert "estimate:" not in capsys.readouterr().out


@pytest.mark.usefixtures("nothing_built")
def test_a_dry_run_of_several_parts_says_what_all_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(estimate, "this_bench", lambda *_, **__: tmp_path / "none")
    words = ["--round", "4", "--dry-run", "--no-compile-cache", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["launch.round", *words, "--out", str(tmp_path / "out")])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    costs = PublishedSpeeds(tiny=False)
    seconds = [
        wall_time(works(plan_round(ROUNDS[name], PLACES), costs), 1, costs) for name in SERIES["4"]
    ]
    parts = [line for line in lines if line.startswith("estimate: ")]
    assert [line.split(" (")[0] for line in parts] == [
        f"estimate: {duration(part_s)}" for part_s in seconds
    ]
    made = "as things are, made first, once: environment reference, environment ajax"
    assert sum(line.startswith(made) for line in lines) == 2
    assert lines[-1] == f"estimate of all 2 parts: {duration(sum(seconds))}"
    assert not (tmp_path / "out").exists()

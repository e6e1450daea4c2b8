"""The bench on stand-in processes whose speed is known: what it measures, keeps and says."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from launch import bench, estimate
from launch.bench_file import DIRECTORY, ObserverCosts, StartTimes, bench_path, load, save
from launch.bench_measurements import Effort, counts, measure
from launch.bench_process import MODULES, Block, ProcessStarter, ticks_by, update_seconds
from launch.clean import command_lines, mentions
from launch.limits import OBSERVER_SHARE, limits
from launch.plan import plan_round
from launch.ratio import median_ratio
from shared.errors import RecordError, UserError
from shared.probes.pace import UPDATES_PER_TICK
from shared.protocol import ROUNDS, SIDES
from shared.provenance.roots import REPO
from tests import stand_in_bench
from tests.made_bench import TICK_S, StandInStarter, made
from tests.test_plan import CACHES, PLACES


@pytest.fixture
def starter(tmp_path: Path) -> StandInStarter:
    """Starts stand-ins for both sides at full width."""
    (tmp_path / "scratch").mkdir()
    return StandInStarter(PLACES, tmp_path / "scratch", tiny=False)


# --- processes ------------------------------------------------------------------------------


def block(*marks: float) -> Block:
    return Block(marks, 1)


def test_side_by_side_counts_only_the_time_that_is_shared() -> None:
    # The second starts 2 s later and goes on alone, twice as fast, when the first has ended.
    first = block(*(8.0 * tick for tick in range(4)))
    second = block(2.0, 18.0, 34.0, 38.0)
    assert update_seconds([first, second]) == pytest.approx([1.0, 11 / UPDATES_PER_TICK * 16 / 11])
    with pytest.raises(ValueError, match="no time"):
        update_seconds([block(0.0, 1.0), block(2.0, 3.0)])


def test_ticks_by_a_moment_are_even_within_a_tick() -> None:
    marks = (0.0, 10.0, 14.0)
    moments = (0.0, 5.0, 10.0, 13.0, 14.0)
    assert [ticks_by(marks, moment) for moment in moments] == [0, 0.5, 1, 1.75, 2]


def test_a_process_that_dies_is_one_line_and_its_log_is_kept(
    starter: StandInStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(starter.kinds, "reference", "dies")
    with starter.start("reference") as process:
        process.start_s()
        process.run(1)
        with pytest.raises(UserError, match="exit code 7, Traceback: out of memory; ") as caught:
            process.run(1)
    kept = starter.scratch.parent / "failed-reference1.log"
    assert str(caught.value).endswith(f"see its log, {kept}")
    assert "a library prints too" in kept.read_text(), "what a side prints is in its log"


def test_a_process_ends_with_its_block_and_with_the_bench(starter: StandInStarter) -> None:
    with starter.start("reference") as process:
        process.start_s()
        process.go(10_000)
    assert process._process.returncode is not None
    with starter.start("reference") as orphan:
        orphan.start_s()
        assert orphan._process.stdin is not None
        orphan._process.stdin.close()  # as when the bench was killed
        assert orphan._process.wait(timeout=60) == 0


def test_a_process_is_started_as_a_round_starts_its_process(tmp_path: Path) -> None:
    starter = ProcessStarter(PLACES, tmp_path, tiny=True)
    jobs = {job.side: job for job in plan_round(ROUNDS["1"], PLACES, caches=CACHES).jobs}
    own = {
        "reference": ("--checkout", str(PLACES.checkout), "--out", str(tmp_path / "name")),
        "ajax": ("--seeds", "0", "1", "2"),
    }
    for side in SIDES:
        job = starter.job(side, "name")
        assert job.argv == (jobs[side].argv[0], "-m", MODULES[side], *own[side], "--tiny")
        assert job.env == {**jobs[side].env, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}


# --- measuring ------------------------------------------------------------------------------


def test_known_speeds_are_found(starter: StandInStarter) -> None:
    bench = measure(starter, Effort(ticks=4, pairs=6, most=2), 2)
    for side in SIDES:
        start = bench.start[side]
        assert start.cold_s > stand_in_bench.COLD_S > (start.warm_s or 0.0) > 0
        assert bench.peak_bytes[side] > 2**20
    assert [(mix.reference, mix.ajax) for mix in bench.together] == [(1, 0), (2, 0), (0, 1), (1, 1)]
    for mix in bench.together:
        for side in SIDES:
            expected = TICK_S[side] / UPDATES_PER_TICK if getattr(mix, side) else None
            assert mix.update_s(side) == pytest.approx(expected)
    share = stand_in_bench.OBSERVER_S / (TICK_S["reference"] + stand_in_bench.OBSERVER_S)
    assert bench.observers.share == pytest.approx(share)
    assert bench.observers.ratio.median == pytest.approx(1 + share / (1 - share))
    assert bench.observers.evaluation_s == pytest.approx(stand_in_bench.EVALUATION_S)
    assert bench.observers.ratio.pairs == 6


def test_one_core_measures_each_side_alone(starter: StandInStarter) -> None:
    starter.tiny = True
    bench = measure(starter, Effort(ticks=1, pairs=1, most=1), 1)
    assert bench.tiny
    assert [(mix.reference, mix.ajax) for mix in bench.together] == [(1, 0), (0, 1)]
    assert all(start.warm_s for start in bench.start.values()), "a smoke's start is measured too"


def test_numbers_of_processes_side_by_side() -> None:
    assert [counts(most) for most in (1, 2, 3, 6, 8)] == [[], [2], [2, 3], [2, 4, 6], [2, 4, 8]]
    assert [bench.most_processes(cores) for cores in (1, 2, 6, 64)] == [1, 2, 6, 6]


# --- its file -------------------------------------------------------------------------------


def test_a_bench_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "bench.json"
    save(path, made(), [asdict(limit) for limit in limits(made())])
    assert load(path) == made()
    text = path.read_text()
    assert "/" not in text.replace("Linux x86_64", ""), "no path"


def test_the_file_of_an_earlier_version_is_read_and_written_alike(tmp_path: Path) -> None:
    committed = REPO / "docs" / "bench" / "bench.json"
    before = json.loads(committed.read_text())
    bench = load(committed)
    assert bench.start_s("reference", warm=True) == before["start"]["reference"]["warm_s"]
    save(tmp_path / "bench.json", bench, [asdict(limit) for limit in limits(bench)])
    assert json.loads((tmp_path / "bench.json").read_text()) == before


@pytest.mark.parametrize(
    "content",
    ["{}", '{"format": 2}', '{"format": 1, "start": {}}', '{"format": 1, "start": null}', "[]"],
)
def test_another_file_is_one_error(content: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"bench\.json"):
        load(path)


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [
        ('"cores": 2', '"cores": "two"'),
        ('"cold_s": 344.0', '"cold_s": "a while"'),
        ('"cold_s": 344.0', '"cold_s": null'),
        ('"reference": 1000000000', '"reference": "much"'),
        ('"share": 0.001', '"share": "little"'),
        ('"reference_s": 1.0', '"reference_s": null'),
    ],
)
def test_a_damaged_bench_is_one_error_and_no_estimate(
    whole: str, damaged: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "bench.json"
    save(path, made())
    text = path.read_text()
    assert whole in text
    path.write_text(text.replace(whole, damaged, 1))
    with pytest.raises(RecordError, match=r"bench\.json: .* run nox -s bench again"):
        load(path)
    monkeypatch.setattr(estimate, "this_bench", lambda *_, **__: path)
    assert estimate.find_bench(PLACES, 2, tiny=False) is None


def test_every_part_of_the_machine_names_another_file() -> None:
    repo = Path("/REPO")
    paths = [
        bench_path(repo, "cpu", ("a", "b"), 2, tiny=False),
        bench_path(repo, "other", ("a", "b"), 2, tiny=False),
        bench_path(repo, "cpu", ("a", "c"), 2, tiny=False),
        bench_path(repo, "cpu", ("a", "b"), 4, tiny=False),
        bench_path(repo, "cpu", ("a", "b"), 2, tiny=True),
    ]
    assert len(set(paths)) == len(paths)


# --- limits ---------------------------------------------------------------------------------


def test_limits_hold_up_to_their_edge_and_not_beyond() -> None:
    edge = ObserverCosts(OBSERVER_SHARE, median_ratio([1.001, 1.01, 1.0199]), 0.3)
    beyond = ObserverCosts(0.0101, median_ratio([1.001, 1.01, 1.02]), 0.3)
    for observers, cold_s, holds in ((edge, 250.0, True), (beyond, 249.0, False)):
        start = {"reference": StartTimes(cold_s, 25.0), "ajax": StartTimes(1.0, None)}
        said = limits(made(observers=observers, start=start))
        assert [limit.holds for limit in said] == [holds] * 3
        assert {str(limit).split(":")[0] for limit in said} == {"yes" if holds else "NO"}
    assert limits(made(tiny=True)) == (), "a smoke is mostly its start"


# --- the command ----------------------------------------------------------------------------


def test_options_that_measure_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="--ticks 0: give a positive number"):
        bench.parse(["--ticks", "0"])
    for removed in (["--settings"], ["--settings", "huge-pages"], ["--side", "ajax"]):
        with pytest.raises(SystemExit) as caught:
            bench.parse(removed)
        assert caught.value.code == 2
        assert f"unrecognized arguments: {' '.join(removed)}" in capsys.readouterr().err


#: The command on stand-ins, below another directory.
COMMAND = """
import sys
from pathlib import Path
from launch import bench
from shared.errors import run_command
from tests import made_bench, test_plan

bench.ProcessStarter, bench.REPO = made_bench.StandInStarter, Path(sys.argv.pop(1))
made_bench.StandInStarter.kinds["reference"] = sys.argv.pop(1)
bench.prepare_sides = lambda options: test_plan.PLACES
bench.this_bench = lambda *_, tiny: bench.REPO / bench.DIRECTORY / "bench.json"
run_command(bench.main)
"""


def test_the_command_says_of_each_limit_whether_it_holds(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, tmp_path, "reference", "--pairs", "1"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if line.startswith(("yes: ", "NO: "))]
    path = tmp_path / DIRECTORY / "bench.json"
    assert said == [str(limit) for limit in limits(load(path))]
    assert len(json.loads(path.read_text())["limits"]) == 3
    assert list((tmp_path / DIRECTORY).iterdir()) == [path]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_bench_that_is_stopped_takes_its_processes_along(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    def stand_ins() -> list[int]:
        return [pid for pid, line in command_lines() if mentions(line, tmp_path / DIRECTORY)]

    command = [sys.executable, "-c", COMMAND, tmp_path, "stays"]
    with subprocess.Popen(
        command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if "note" not in line), "")
            assert "first update after" in said
            assert stand_ins()
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (status, "error: interrupted\n")
    assert not stand_ins()
    assert not list((tmp_path / DIRECTORY).iterdir())

"""The bench on stand-in processes whose speed is known: what it measures, keeps and says."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launch import bench, estimate, limits
from launch.bench_process import BenchProcess, Block, ticks_by, update_seconds
from launch.lab import Lab
from launch.limits import verdicts
from launch.measure import Effort, counts, measure
from launch.measured import DIRECTORY, Observers, Start, bench_path, load, save
from launch.plan import plan_round
from launch.ratio import median_ratio
from launch.usage import command_lines, mentions
from shared.errors import RecordError, UserError
from shared.pace import UPDATES_PER_TICK
from shared.protocol import ROUNDS, SIDES, Side
from shared.provenance import REPO
from tests import stand_in_bench
from tests.made_bench import TICK_S, StandInLab, made
from tests.test_plan import CACHES, PLACES


@pytest.fixture
def lab(tmp_path: Path) -> StandInLab:
    """The bench's lab, of stand-ins for both sides at full width."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return StandInLab(PLACES, scratch, tiny=False)


def silent(line: str) -> None:
    assert line


# --- processes ------------------------------------------------------------------------------


def block(*marks: float) -> Block:
    return Block(marks, 1)


def test_side_by_side_counts_only_the_time_that_is_shared() -> None:
    # The second starts 2 s later and goes on alone, twice as fast, when the first has ended.
    first = block(*(8.0 * tick for tick in range(4)))
    second = block(2.0, 18.0, 34.0, 38.0)
    assert update_seconds([first, second]) == pytest.approx([1.0, 11 / UPDATES_PER_TICK * 16 / 11])


def test_ticks_by_a_moment_are_even_within_a_tick() -> None:
    marks = (0.0, 10.0, 14.0)
    assert [ticks_by(marks, each) for each in (0.0, 5.0, 10.0, 13.0, 14.0)] == [0, 0.5, 1, 1.75, 2]


def test_blocks_that_share_no_time_are_refused() -> None:
    with pytest.raises(ValueError, match="no time"):
        update_seconds([block(0.0, 1.0), block(2.0, 3.0)])


def test_a_process_that_dies_is_one_line_and_its_log_is_kept(tmp_path: Path) -> None:
    lab = StandInLab(PLACES, tmp_path / "scratch", tiny=False)
    lab.scratch.mkdir()
    lab.kinds = {"reference": "dies"}
    with lab.start("reference") as process:
        process.ready()
        process.run(1)
        with pytest.raises(UserError) as caught:
            process.run(1)
    kept = tmp_path / "failed-reference1.log"
    assert str(caught.value) == (
        "the bench's reference process failed: exit code 7, Traceback: out of memory; "
        f"see its log, {kept}"
    )
    assert "a library prints too" in kept.read_text()


def test_a_process_ends_with_its_block_and_with_the_bench(lab: StandInLab) -> None:
    with lab.start("reference") as process:
        process.ready()
        process.go(10_000)
    assert process._process.returncode is not None
    orphan = BenchProcess(lab.command("reference"), {})
    orphan.ready()
    assert orphan._process.stdin is not None
    orphan._process.stdin.close()  # as when the bench was killed
    assert orphan._process.wait(timeout=10) == 0
    orphan.close()


def test_what_a_side_prints_is_in_its_log(lab: StandInLab) -> None:
    with lab.start("reference") as process:
        process.ready()
    text = (lab.scratch / "reference1.log").read_text()
    assert "Observation space" in text
    assert "a library prints too" in text


def test_a_process_is_started_as_a_round_starts_its_process(tmp_path: Path) -> None:
    real = Lab(PLACES, tmp_path, tiny=True)
    jobs = {job.side: job for job in plan_round(ROUNDS["1"], PLACES, caches=CACHES).jobs}
    for side in SIDES:
        command = real.command(side)
        assert command.argv[1:3] == (
            "-m",
            {"reference": "ref_side.bench"}.get(side, "ajax_side.bench"),
        )
        assert "--tiny" in command.argv
        assert command.env == {
            **jobs[side].env,
            "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        }
        seeds = command.argv[command.argv.index("--seeds") + 1 :] if side == "ajax" else ()
        assert seeds[:3] == (("0", "1", "2") if side == "ajax" else ())
        assert ("--seeds" in command.argv) is (side == "ajax"), (
            "the reference's seed is its default"
        )


# --- measuring ------------------------------------------------------------------------------


def test_known_speeds_are_found(lab: StandInLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL", "yes")
    found = measure(lab, Effort(ticks=4, pairs=6, most=2), 2, silent)
    for side in SIDES:
        assert found.start[side].cold_s > found.start[side].warm_s + 0.4 * stand_in_bench.COLD_S
        assert found.peak_bytes[side] > 2**20
    sizes = [(each.reference, each.ajax) for each in found.together]
    assert sizes == [(1, 0), (2, 0), (0, 1), (1, 1)]
    for each in found.together:
        for side in SIDES:
            if (seconds := each.update_s(side)) is not None:
                assert seconds == pytest.approx(TICK_S[side] / UPDATES_PER_TICK)
    share = stand_in_bench.OBSERVER_S / (TICK_S["reference"] + stand_in_bench.OBSERVER_S)
    assert found.observers.share == pytest.approx(share)
    assert found.observers.ratio.median == pytest.approx(1 + share / (1 - share))
    assert found.observers.evaluation_s == pytest.approx(stand_in_bench.EVALUATION_S)
    assert found.observers.ratio.pairs == 6


def test_one_core_measures_each_side_alone(lab: StandInLab) -> None:
    found = measure(lab, Effort(ticks=1, pairs=1, most=1), 1, silent)
    assert [(each.reference, each.ajax) for each in found.together] == [(1, 0), (0, 1)]
    assert found.start["reference"].warm_s > 0


def test_a_smoke_holds_the_callbacks_of_a_full_round_so_its_start_is_measured(
    lab: StandInLab,
) -> None:
    lab.tiny = True
    found = measure(lab, Effort(ticks=1, pairs=1, most=1), 1, silent)
    assert all(each.warm_s for each in found.start.values())


def test_numbers_of_processes_side_by_side() -> None:
    assert [counts(most) for most in (1, 2, 3, 6, 8)] == [[], [2], [2, 3], [2, 4, 6], [2, 4, 8]]


# --- its file -------------------------------------------------------------------------------


def test_a_bench_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "bench.json"
    save(path, made())
    assert load(path) == made()
    text = path.read_text()
    assert "/" not in text.replace("Linux x86_64", ""), "no path"


@pytest.mark.parametrize(
    "content",
    ["{}", '{"format": 2}', '{"format": 1, "start": {}}', '{"format": 1, "observers": null}', "[]"],
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


# --- limits ---------------------------------------------------------------------------------


def test_limits_that_hold() -> None:
    assert [each.holds for each in verdicts(made())] == [True] * 3
    assert [str(each)[:5] for each in verdicts(made())] == ["yes: "] * 3
    dearer = Observers(limits.OBSERVER_SHARE, median_ratio([1.001, 1.01, 1.0199]), 0.3)
    exactly: dict[Side, Start] = {"reference": Start(250.0, 25.0), "ajax": Start(1.0, None)}
    assert all(each.holds for each in verdicts(made(observers=dearer, start=exactly)))
    assert verdicts(made(tiny=True)) == (), "a smoke is mostly its start"


def test_limits_that_do_not_hold(tmp_path: Path) -> None:
    dear = Observers(0.0101, median_ratio([1.001, 1.01, 1.02]), 0.3)
    slow: dict[Side, Start] = {"reference": Start(240.0, 25.0), "ajax": Start(1.0, 1.0)}
    said = verdicts(made(observers=dear, start=slow))
    assert [each.holds for each in said] == [False] * 3
    assert str(said[0]) == ("NO: observers take at most 1% of training time by their clock: 1.01%")
    path = tmp_path / "bench.json"
    save(path, made(), [each.to_json() for each in said])
    assert [each["holds"] for each in json.loads(path.read_text())["limits"]] == [False] * 3
    assert load(path) == made()


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
    assert paths[0].parent == repo / ".work" / "bench"


# --- the command ----------------------------------------------------------------------------


def test_options_that_measure_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="--ticks 0: give a positive number"):
        bench.parse(["--ticks", "0"])
    for removed in (["--settings"], ["--settings", "huge-pages"], ["--side", "ajax"]):
        with pytest.raises(SystemExit) as caught:
            bench.parse(removed)
        assert caught.value.code == 2
        assert f"unrecognized arguments: {' '.join(removed)}" in capsys.readouterr().err


def test_help_names_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.parse(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "observers take at most 1% of training time; " in text
    assert "starts within 10% of its cold start-up" in text


def test_as_many_processes_as_can_be_of_use() -> None:
    assert [bench.most_processes(cores) for cores in (1, 2, 6, 64)] == [1, 2, 6, 6]


#: The command on stand-ins, below another directory.
COMMAND = """
import signal
import subprocess
import sys
from pathlib import Path
from launch import bench
from shared.errors import run_command
from tests import made_bench, test_plan

bench.Lab, bench.REPO = made_bench.StandInLab, Path(sys.argv.pop(1))
bench.prepare_sides = lambda options: test_plan.PLACES
run_command(bench.main)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_bench_that_is_stopped_takes_its_processes_along(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    def stand_ins() -> list[int]:
        return [pid for pid, line in command_lines() if mentions(line, tmp_path / DIRECTORY)]

    # Blocks of a minute: nothing ends by itself meanwhile.
    command = [sys.executable, "-c", COMMAND, tmp_path, "--ticks", "1500"]
    with subprocess.Popen(
        command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if "note" not in line), "")
            assert "first update after" in said
            assert stand_ins()
            process.send_signal(number)
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, errors) == (status, "error: interrupted\n")
    assert not stand_ins()
    assert not list((tmp_path / DIRECTORY).iterdir())

"""The bench on stand-in processes whose speed is known, and what a dry run makes of its file."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ajax_side.bench import Sums
from launch import bench, estimate, limits, preflight, settings
from launch import options as asked
from launch.bench_process import BenchCommand, BenchProcess, Block, ticks_by, update_seconds
from launch.estimate import describe_estimate, disk, memory, rounds_table, works
from launch.lab import Lab, Variant
from launch.limits import verdicts
from launch.measure import Effort, counts, measure
from launch.measured import Bench, Observers, Published, Start, Together, bench_path, load, save
from launch.plan import COSTS, plan_round
from launch.programs import SideCache, mark_warm
from launch.ratio import median_ratio
from launch.round import main
from launch.schedule import wall_time
from launch.settings import SETTINGS, Finding, compare_settings, conclusion, same_digest
from shared.errors import RecordError, UserError
from shared.launch_info import append_launch
from shared.pace import UPDATES_PER_TICK
from shared.protocol import ROUNDS, SIDES, Side
from tests import stand_in_bench
from tests.test_plan import CACHES, PLACES

TICK_S: dict[Side, float] = {"reference": 0.04, "ajax": 0.08}


class StandInLab(Lab):
    """Starts stand-ins instead of sides."""

    kinds: Mapping[Side, str] = {"reference": "reference", "ajax": "ajax"}

    def command(self, side: Side, variant: Variant) -> BenchCommand:
        real = super().command(side, variant)
        script = str(Path(stand_in_bench.__file__))
        cache = str(self.scratch / f"{side}.compiled")
        return replace(
            real,
            argv=(sys.executable, script, self.kinds[side], str(TICK_S[side]), cache),
            cwd=Path(__file__).parent,
            env={**variant.env, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )


@pytest.fixture
def lab(tmp_path: Path) -> StandInLab:
    return StandInLab(PLACES, tmp_path, tiny=False)


def silent(line: str) -> None:
    assert line


def made(**changes: object) -> Bench:
    """A bench of two cores: side by side a process is slower, but not twice as slow."""
    found = Bench(
        measured="2026-11-29",
        system="Linux x86_64",
        cores=2,
        tiny=False,
        ajax_seeds=3,
        start={"reference": Start(344.0, 25.0), "ajax": Start(150.0, 120.0)},
        together=(
            Together(1, 0, 1.0, None),
            Together(2, 0, 1.5, None),
            Together(0, 1, None, 2.4),
            Together(1, 1, 1.4, 3.0),
        ),
        observers=Observers(0.001, median_ratio([1.0, 1.01, 0.99]), 0.3),
        peak_bytes={"reference": 10**9, "ajax": 2 * 10**9},
    )
    return replace(found, **changes)  # type: ignore[arg-type]


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
    orphan = BenchProcess(lab.command("reference", Variant()), {})
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
        command = real.command(side, Variant("x", {"MALLOC": "1"}, "--flag", frozenset({0})))
        assert command.argv[1:3] == (
            "-m",
            {"reference": "ref_side.bench"}.get(side, "ajax_side.bench"),
        )
        assert "--tiny" in command.argv
        expected = {**jobs[side].env, "XLA_FLAGS": "--flag", "MALLOC": "1"}
        expected["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path / "cache")
        assert command.env == expected
        assert command.cpus == {0}
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


def test_at_tiny_widths_nobody_knows_how_ajax_starts_warm(lab: StandInLab) -> None:
    """A smoke's program is kept and holds no callback: it is not the one that can be paced."""
    lab.tiny = True
    found = measure(lab, Effort(ticks=1, pairs=1, most=1), 1, silent)
    assert found.start["ajax"].warm_s is None
    assert found.start_s("ajax", warm=True) == found.start["ajax"].cold_s > 0
    assert found.start["reference"].warm_s is not None


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


# --- estimates ------------------------------------------------------------------------------


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
    assert all(each.program == first.program for each in others)
    assert plan.jobs[1].program is not None
    mark_warm(plan.jobs[1].program)
    warm = works(plan, made())[1]
    assert (warm.start_s, warm.program) == (25.0, None)
    bare = works(plan_round(ROUNDS["1"], PLACES), made())
    assert {(each.start_s, each.program) for each in bare[1:]} == {(344.0, None)}


def test_an_estimate_says_that_a_warm_start_is_not_known(tmp_path: Path) -> None:
    caches: dict[Side, SideCache] = {side: SideCache(tmp_path, "c0de") for side in SIDES}
    plan = plan_round(ROUNDS["1"].smoke(), PLACES, caches=caches)
    starts: dict[Side, Start] = {"reference": Start(9.0, 2.0), "ajax": Start(9.0, None)}
    tiny = made(tiny=True, start=starts)
    assert not any("not measured" in line for line in describe_estimate(plan, 1, tiny))
    for job in plan.jobs:
        assert job.program is not None
        mark_warm(job.program)
    assert {each.side: each.start_s for each in works(plan, tiny)} == {"reference": 2, "ajax": 9}
    assert any("not measured" in line for line in describe_estimate(plan, 1, tiny))


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
    published = Published(tiny=False)
    assert published.update_s("reference", 1, {"reference": 2, "ajax": 0}) == cost.update_s
    assert published.start_s("reference", warm=True) == cost.warm_s < cost.start_s


def test_memory_is_that_of_the_largest_at_a_time() -> None:
    jobs = plan_round(ROUNDS["3"], PLACES).jobs
    assert [memory(jobs, limit, made()) for limit in (1, 2, 9)] == [2e9, 3e9, 7e9]


def test_disk_grows_with_rows_and_seeds() -> None:
    sizes = [disk(plan_round(each, PLACES)) for each in ROUNDS.values()]
    assert sizes[0] == sizes[1] < sizes[2] < 100e6
    assert disk(plan_round(ROUNDS["1"], PLACES, sides=["ajax"])) < 1e6


def test_the_table_of_rounds_marks_the_best() -> None:
    plans = [plan_round(each, PLACES, caches=CACHES) for each in ROUNDS.values()]
    table = rounds_table(plans, made()).splitlines()
    assert table[0].split() == ["--jobs", "1", "--jobs", "2", "memory"]
    assert [line.split("  ")[0] for line in table[1:]] == [f"round {name}" for name in ROUNDS]
    assert all(line.count("*") == 1 and line.index("*") > 20 for line in table[1:])


def test_the_rounds_of_a_bench_are_those_of_its_widths() -> None:
    assert "round 3 (smoke)" in bench.describe_rounds(PLACES, made(tiny=True))
    assert "smoke" not in bench.describe_rounds(PLACES, made())


def test_a_bench_that_cannot_be_read_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "bench.json"
    monkeypatch.setattr(estimate, "this_bench", lambda *_, **__: path)
    assert estimate.find_bench(PLACES, 2, tiny=False) is None
    path.write_text("{")
    assert estimate.find_bench(PLACES, 2, tiny=False) is None
    save(path, made())
    assert estimate.find_bench(PLACES, 2, tiny=False) == made()


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
        names = " ".join(each.name for each in left.jobs)
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


# --- settings -------------------------------------------------------------------------------


@pytest.fixture
def made_up_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = {
        "fast": settings.Setting("made for the test", {"FASTER": "2"}),
        "other": settings.Setting("made for the test", {"FASTER": "2", "SUMS": "64:1 65:3"}),
        "nothing": settings.Setting("made for the test"),
        "missing": settings.Setting("made for the test", preload="no-such-library"),
    }
    monkeypatch.setattr(settings, "SETTINGS", made_up)
    monkeypatch.setenv("SUMS", "64:1 65:2")
    monkeypatch.setenv("VIRTUAL", "yes")


@pytest.mark.usefixtures("made_up_settings")
def test_settings_are_held_against_the_default(lab: StandInLab) -> None:
    said: list[str] = []
    names = ["fast", "other", "nothing", "missing"]
    fast, other, nothing = compare_settings(lab, names, ["reference"], 2, 6, said.append)
    assert fast.ratio.median == other.ratio.median == pytest.approx(0.5)
    assert fast.gains
    assert not other.same
    assert not other.gains
    assert nothing.ratio.median == pytest.approx(1.0)
    assert not nothing.gains
    assert any("missing: left out, no libno-such-library here" in line for line in said)
    assert said[-1] == "reference: best and safe: fast"


def test_nothing_is_recommended_without_a_sure_gain() -> None:
    ratio = median_ratio([0.95, 0.96, 0.98, 0.99, 0.97, 0.96])
    assert "the default stays" in conclusion([Finding("ajax", "own-core", ratio, same=True)])
    surely = median_ratio([0.9] * 6)
    assert "the default stays" in conclusion([Finding("ajax", "own-core", surely, same=False)])
    assert conclusion([Finding("ajax", "own-core", surely, same=True)]).endswith("own-core")
    few = median_ratio([0.9] * 5)
    assert "the default stays" in conclusion([Finding("ajax", "own-core", few, same=True)])


def test_digests_agree_as_far_as_both_go() -> None:
    assert same_digest("64:5 65:7 66:9", "64:5 65:7")
    assert same_digest("64:5 66:9", "65:7 66:9")
    assert not same_digest("64:5 65:7 66:9", "64:5 65:8")
    assert not same_digest("64:5", "65:5")
    assert not same_digest("", "")
    assert same_digest("c0ffee", "c0ffee")
    assert not same_digest("c0ffee", "c0ffed")


def test_ajax_tells_of_ticks_that_every_seed_has_reported() -> None:
    sums = Sums(2)
    assert sums.report() == {"digest": None}
    for tick, number in ((0, 5), (1, 6), (0, -2), (2, 1), (1, 2**31 - 1), (2, 2)):
        sums.add(tick, number)
    sums.add(3, 9)
    assert sums.report() == {"digest": f"0:3 1:{2**31 + 5} 2:3"}


def test_every_setting_says_why() -> None:
    for name, setting in SETTINGS.items():
        assert (
            name == "again"
            or setting.env
            or setting.xla_flags
            or setting.own_core
            or setting.preload
        )
        assert len(setting.why) > 20


# --- the command ----------------------------------------------------------------------------


def test_options_that_measure_nothing_are_refused() -> None:
    with pytest.raises(UserError, match="--ticks 0: give a positive number"):
        bench.parse(["--ticks", "0"])
    with pytest.raises(SystemExit):
        bench.parse(["--settings", "no-such"])
    assert bench.parse(["--settings"]).settings == []
    assert bench.parse([]).settings is None
    with pytest.raises(UserError, match="--side ajax: belongs to --settings"):
        bench.parse(["--side", "ajax"])
    with pytest.raises(UserError, match="--ticks 3: --settings runs single ticks"):
        bench.parse(["--settings", "--ticks", "3"])
    assert (bench.parse([]).ticks, bench.parse(["--settings", "--side", "ajax"]).side) == (
        2,
        ["ajax"],
    )


def test_as_many_processes_as_can_be_of_use() -> None:
    assert [bench.most_processes(cores) for cores in (1, 2, 6, 64)] == [1, 2, 6, 6]

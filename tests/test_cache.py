"""The compilation cache: its directory's key, and who compiles a program that is not in it."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from launch.cache import UNKNOWN, WarmUp, cache_key, code_identity, find_caches
from launch.plan import Job
from launch.preflight import PythonFacts
from launch.programs import mark_warm
from launch.signals import StopSignals
from launch.supervise import supervise
from shared.cpu import describe_cpu, identifying_lines
from shared.provenance.roots import REPO
from shared.records.layout import PROGRESS, RunLayout
from tests.test_plan import PLACES
from tests.test_supervise import Log

CPUINFO = """processor\t: {number}
model name\t: Some CPU @ 2.40GHz
microcode\t: 0x1
cpu MHz\t\t: {clock}
flags\t\t: fpu {flags}
bogomips\t: 4800.00

"""


def cpuinfo(clock: str = "2400.1", flags: str = "sse avx2") -> str:
    return "".join(CPUINFO.format(number=each, clock=clock, flags=flags) for each in range(2))


def test_the_cpu_is_its_model_and_flags_not_its_clock() -> None:
    found = identifying_lines(cpuinfo())
    assert found == "flags: fpu sse avx2\nmodel name: Some CPU @ 2.40GHz"
    assert identifying_lines(cpuinfo(clock="800.0")) == found
    assert identifying_lines(cpuinfo(flags="sse avx512f")) != found


def test_cores_of_two_kinds_are_both_named() -> None:
    mixed = "CPU part\t: 0xd05\nFeatures\t: fp asimd\n\nCPU part\t: 0xd0a\nFeatures\t: fp asimd\n"
    assert identifying_lines(mixed) == "CPU part: 0xd05\nCPU part: 0xd0a\nFeatures: fp asimd"


def test_this_machine_is_told_from_another() -> None:
    assert len(describe_cpu()) > 20
    assert describe_cpu() == describe_cpu()


def jaxlib(folder: Path, version: str) -> str:
    place = folder / f"jaxlib-{version}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: jaxlib\nVersion: {version}\n")
    return str(folder)


def test_every_part_of_the_key_counts(tmp_path: Path) -> None:
    one, two = jaxlib(tmp_path / "1", "0.7.2"), jaxlib(tmp_path / "2", "0.7.3")
    keys = [
        cache_key("cpu", PythonFacts("3.12.1", "0.7.2", (one,))),
        cache_key("other cpu", PythonFacts("3.12.1", "0.7.2", (one,))),
        cache_key("cpu", PythonFacts("3.12.2", "0.7.2", (one,))),
        cache_key("cpu", PythonFacts("3.12.1", "0.7.1", (one,))),
        cache_key("cpu", PythonFacts("3.12.1", "0.7.2", (two,))),
        cache_key("cpu", PythonFacts("3.12.1", "0.7.2", ())),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0].startswith("py3.12.1-jax0.7.2-")
    assert cache_key("cpu", PythonFacts("3.12.1", "0.7.2", (one,))) == keys[0]


def test_an_environment_that_is_not_built_has_no_key_yet() -> None:
    found = find_caches(replace(PLACES, repo=REPO), ["reference"])
    assert found["reference"].directory == REPO / ".work" / "cache" / "jax" / UNKNOWN


def test_a_directory_that_is_no_checkout_has_no_identity(tmp_path: Path) -> None:
    assert code_identity(replace(PLACES, ajax_root=tmp_path), "ajax") is None
    assert code_identity(PLACES, "ajax") is not None


# --- the first process of a program ---------------------------------------------------------

#: Compiles for a while, reports one update, then trains for a while; notes both moments.
SIDE = """
import json, sys, time
from pathlib import Path
folder, ending = Path(sys.argv[1]), sys.argv[2]
folder.mkdir()
(folder / "started").write_text(str(time.time()))
progress = folder / "progress.jsonl"
progress.write_text(json.dumps({"rows": 160, "updates": 0}) + "\\n")
time.sleep(0.7)
if ending == "fails":
    sys.exit(3)
(folder / "trained").write_text(str(time.time()))
progress.open("a").write(json.dumps({"rows": 1120, "updates": 41}) + "\\n")
time.sleep(0.7)
"""


def job(root: Path, name: str, program: Path | None, ending: str = "trains") -> Job:
    return Job(
        name=name,
        side="reference",
        seeds=(0,),
        argv=(sys.executable, "-c", SIDE, str(root / name), ending),
        cwd=root,
        env={},
        directory=root / name,
        expected_files=(),
        expected_s=1.0,
        program=program,
    )


def run(root: Path, jobs: Sequence[Job], limit: int = 9) -> Log:
    log = Log()
    with StopSignals() as signals:
        result = supervise(
            jobs, RunLayout(root), limit=limit, watcher=log, signals=signals, gate=WarmUp()
        )
    assert len(result.outcomes) == len(jobs)
    return log


def moment(root: Path, name: str, what: str) -> float:
    return float((root / name / what).read_text())


def test_with_a_cold_cache_siblings_wait_and_others_do_not(tmp_path: Path) -> None:
    program, other = tmp_path / "cache" / "a.json", tmp_path / "cache" / "b.json"
    names = ("first", "second", "third")
    jobs = [*(job(tmp_path, name, program) for name in names), job(tmp_path, "other", other)]
    began = time.time()
    log = run(tmp_path, jobs)
    trained = moment(tmp_path, "first", "trained")
    assert log.lines[:2] == ["started first", "started other"]
    assert moment(tmp_path, "other", "started") < trained
    for name in ("second", "third"):
        assert (
            trained < moment(tmp_path, name, "started") < moment(tmp_path, "first", "started") + 2
        )
    assert program.exists()
    assert other.exists()
    assert time.time() - began < 6


def test_with_a_warm_cache_all_start_at_once(tmp_path: Path) -> None:
    program = tmp_path / "cache" / "a.json"
    mark_warm(program)
    log = run(tmp_path, [job(tmp_path, name, program) for name in ("first", "second")])
    assert log.lines[:2] == ["started first", "started second"]
    assert moment(tmp_path, "second", "started") < moment(tmp_path, "first", "trained")


def test_one_that_fails_before_it_trains_leaves_the_cache_cold(tmp_path: Path) -> None:
    program = tmp_path / "cache" / "a.json"
    jobs = [job(tmp_path, "first", program, "fails"), job(tmp_path, "second", program, "fails")]
    log = run(tmp_path, jobs)
    assert log.lines == ["started first", "ended first 3", "started second", "ended second 3"]
    assert not program.exists()


def test_one_that_reports_only_as_it_ends_has_warmed_the_cache(tmp_path: Path) -> None:
    """As a smoke of Ajax does, which trains without callbacks."""
    program = tmp_path / "cache" / "a.json"
    at_once = """
import os, sys
os.mkdir(sys.argv[1])
with open(sys.argv[1] + "/progress.jsonl", "w") as progress:
    print('{"rows": 1600, "updates": 281}', file=progress, flush=True)
    os._exit(0)
"""
    first = job(tmp_path, "first", program)
    first = replace(first, argv=(sys.executable, "-c", at_once, first.argv[3]))
    run(tmp_path, [first])
    assert program.exists()


def test_a_directory_that_cannot_be_written_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    program = tmp_path / "cache" / "a.json"
    log = run(tmp_path, [job(tmp_path, name, program) for name in ("first", "second")])
    assert log.lines[:2] == ["started first", "started second"]
    assert moment(tmp_path, "second", "started") > moment(tmp_path, "first", "trained")


def test_without_a_program_nobody_waits(tmp_path: Path) -> None:
    log = run(tmp_path, [job(tmp_path, name, None) for name in ("first", "second")])
    assert log.lines[:2] == ["started first", "started second"]


@pytest.mark.parametrize("limit", [1, 2])
def test_a_sibling_that_waits_takes_no_place(tmp_path: Path, limit: int) -> None:
    program = tmp_path / "cache" / "a.json"
    jobs = [job(tmp_path, "first", program), job(tmp_path, "second", program)]
    log = run(tmp_path, [*jobs, job(tmp_path, "other", None)], limit=limit)
    begun = [line.split()[1] for line in log.lines if line.startswith("started")]
    assert begun == (["first", "second", "other"] if limit == 1 else ["first", "other", "second"])
    assert (tmp_path / "first" / PROGRESS).exists()

"""A process and a launcher write only into the directory that they were started for."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ajax_side.recorder import Recorder
from ajax_side.run import raise_failure
from launch.lock import RoundLock
from launch.signals import StopSignals
from launch.supervise import supervise
from shared.errors import UserError
from shared.records.jsonl import JsonlWriter
from shared.records.layout import RunLayout
from shared.records.own_directory import OwnDirectories
from tests.rounds import AJAX_ALONE, Launch, end, pid_of, wait_for
from tests.test_ajax_recorder import logged
from tests.test_supervise import DEAF, SLEEPER, Log, alive, eventually, job, pid

GONE = "was removed, moved or replaced"


def aside(path: Path) -> Path:
    return path.rename(path.with_name(f"{path.name}-aside"))


def replace(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def link_to_another(path: Path) -> None:
    aside(path)
    other = path.with_name("other")
    other.mkdir()
    path.symlink_to(other)


def cover(path: Path) -> None:
    aside(path)
    path.write_text("a file")


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": shutil.rmtree,
    "removed and made again": replace,
    "moved": aside,
    "moved and made again": lambda path: (aside(path), path.mkdir()),
    "replaced by a link": link_to_another,
    "replaced by a file": cover,
    "its parent moved": lambda path: aside(path.parent),
}
lost = pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "parent" / "out"
    path.mkdir(parents=True)
    return path


@lost
def test_a_lost_directory_is_noticed(lose: Callable[[Path], object], out: Path) -> None:
    own = OwnDirectories(out)
    own.make(out / "ref_s0")
    own.check()
    lose(out)
    for write in (own.check, lambda: own.make(out / "ref_s1")):
        with pytest.raises(UserError, match=GONE):
            write()
    assert not out.is_dir() or not list(out.iterdir())


def test_a_directory_of_another_name_for_the_same_place_is_no_loss(out: Path) -> None:
    own = OwnDirectories(out)
    (out / "more").touch()
    out.symlink_to(aside(out))
    own.check()


def test_the_directory_of_a_process_is_its_own_too(out: Path) -> None:
    """A second launcher moves what an unfinished process left to aside/."""
    own = OwnDirectories(out)
    own.make(out / "ref_s0")
    (out / "aside").mkdir()
    (out / "ref_s0").rename(out / "aside" / "ref_s0")
    with pytest.raises(UserError, match=rf"ref_s0: {GONE}"):
        own.check()


@lost
def test_a_line_goes_only_into_the_file_that_was_opened(
    lose: Callable[[Path], object], out: Path
) -> None:
    with JsonlWriter(out / "records.jsonl") as writer:
        writer.write({"rows": 400})
        lose(out)
        with pytest.raises(UserError, match=rf"records\.jsonl: {GONE}"):
            writer.write({"rows": 800})
    assert not out.is_dir() or not list(out.iterdir())


def test_a_log_point_of_ajax_after_that_ends_its_run(out: Path) -> None:
    recorder = Recorder(RunLayout(out), (4, 7), 1200, 0.0, arm="stock", round="1")
    recorder.log(logged(400, 0, 9.0), 0)
    aside(out / "ajax")
    with pytest.raises(UserError):
        recorder.log(logged(400, 0, 9.0), 1)
    with pytest.raises(UserError, match=GONE):
        raise_failure(recorder)
    assert not (out / "ajax").exists()


@lost
def test_the_launcher_stops_its_processes_and_writes_no_more(
    lose: Callable[[Path], object], out: Path, tmp_path: Path
) -> None:
    jobs = [job(tmp_path, "sleeper", SLEEPER), job(tmp_path, "deaf", DEAF)]
    waiting = job(tmp_path, "waiting", SLEEPER)
    taken: list[Path] = []

    def lose_once() -> None:
        if not taken and all((tmp_path / f"{each.name}.pid").exists() for each in jobs):
            taken.append(out)
            lose(out)

    log = Log(lose_once)
    with RoundLock(out) as lock, StopSignals() as signals:
        with pytest.raises(UserError, match=GONE):
            supervise(
                [*jobs, waiting],
                RunLayout(out),
                limit=2,
                watcher=log,
                signals=signals,
                own=lock.own,
                grace_s=1.0,
            )
        with pytest.raises(UserError, match=GONE):
            lock.record(2)
    eventually(lambda: not any(alive(pid(tmp_path, each.name)) for each in jobs))
    assert "started waiting" not in log.lines
    assert not out.is_dir() or not list(out.iterdir())


def test_a_round_whose_output_is_removed_ends_in_one_line(tmp_path: Path, launch: Launch) -> None:
    out = tmp_path / "out"
    process = launch(*AJAX_ALONE, "--plain", actions="ajax:wait")
    wait_for(out / "ajax" / "pid", process)
    number = pid_of(out, "ajax")
    shutil.rmtree(out)
    code, output = end(process)
    assert code == 2, output
    assert output.splitlines()[-1].startswith(f"error: {out}: {GONE}")
    assert not alive(number)
    assert not out.exists()


def test_an_old_process_leaves_the_new_run_alone(tmp_path: Path, launch: Launch) -> None:
    """Its launcher was killed, the output removed, and the round started again."""
    out, release = tmp_path / "out", tmp_path / "release"
    first = launch(*AJAX_ALONE, actions=f"ajax:until={release}")
    wait_for(out / "ajax" / "pid", first)
    old = pid_of(out, "ajax")
    first.kill()
    first.communicate()
    shutil.rmtree(out)
    second = launch(*AJAX_ALONE, actions="ajax:wait")
    wait_for(out / "ajax" / "pid", second)
    new = pid_of(out, "ajax")
    release.touch()
    eventually(lambda: not alive(old))
    assert alive(new)
    assert not list(out.glob("*.DONE"))
    assert not list(out.glob("*.sha256"))
    second.terminate()
    assert end(second)[0] == 143
    assert (out / "ajax.DONE").read_text() == "143\n"

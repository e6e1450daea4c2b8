"""Settings of hypothesis; commands in this process, directories to damage, whole rounds."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import settings

from analysis import compare, published, reproduce
from shared.errors import UserError, run_command
from shared.provenance.obtain import obtain_checkout
from tests.inside import ROOT, out_of_reach
from tests.rounds import STAND_IN, Launch, git
from tests.synthetic import SMOKE, write_run
from tests.synthetic_round4 import write_round4

# No deadline: the machine may be busy. No database: a test run leaves nothing behind.
settings.register_profile("project", max_examples=60, deadline=None, database=None)
settings.load_profile("project")


@dataclass(frozen=True)
class Done:
    """What a command left behind: exit status and both streams."""

    status: int
    out: str
    err: str

    @property
    def failed_checks(self) -> list[str]:
        """Names of the checks that the command printed as failed."""
        lines = [line for line in self.out.splitlines() if line.startswith("FAIL ")]
        return [line.removeprefix("FAIL ").split(":")[0] for line in lines]


Command = Callable[..., Done]


# A runner in the background, or under nohup, ignores these signals, and children inherit that: what
# the tests start must obey them.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number,
            signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL,
        )


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """``command(main, *arguments)`` runs a command as ``python -m`` does, without a new process."""

    def run(main: Callable[[], int], *arguments: object) -> Done:
        monkeypatch.setattr("sys.argv", ["command", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run_command(main)
        captured = capsys.readouterr()
        return Done(int(left.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands write their tables but draw no figures, which takes most of their time."""
    monkeypatch.setattr("analysis.documents.draw_all", lambda *_: [])


@pytest.fixture(scope="session")
def smoke_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("smoke") / "run")


@pytest.fixture
def smoke(smoke_source: Path, tmp_path: Path) -> Path:
    """A smoke run of both sides that passes every check; the test's own copy."""
    return Path(shutil.copytree(smoke_source, tmp_path / "run"))


@pytest.fixture
def old_smoke(tmp_path: Path) -> Path:
    """The same figures as the published rounds recorded theirs."""
    return write_run(tmp_path / "old", replace(SMOKE, old=True))


def tree(root: Path) -> dict[str, bytes]:
    """Every file below ``root`` with its content."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


# --- whole rounds, with stand-ins for the sides --------------------------------------------------


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The stand-in for a side's Python."""
    path = tmp_path / "environment" / "python"
    path.parent.mkdir()
    path.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(STAND_IN))} "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def ajax_root(tmp_path: Path) -> Path:
    """A git checkout with an ``ajax`` package."""
    root = tmp_path / "ajax-checkout"
    (root / "src" / "ajax").mkdir(parents=True)
    (root / "src" / "ajax" / "__init__.py").write_text("")
    git(root, "init", "--quiet", ".")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Ajax")
    return root


@pytest.fixture
def launch(tmp_path: Path, python: Path, ajax_root: Path) -> Launch:
    """Starts the command with stand-ins for both sides; the output directory is tmp_path/out.

    ``environment`` is added to the launcher's.
    """

    def start(
        *arguments: str,
        actions: str = "",
        of: tuple[str, ...] = ("--round", "1", "--smoke"),
        **environment: str,
    ) -> "subprocess.Popen[str]":
        given = ["--out", str(tmp_path / "out"), "--reference-python", str(python)]
        given += ["--ajax-python", str(python), "--ajax-root", str(ajax_root)]
        return subprocess.Popen(
            [sys.executable, "-m", "launch.round", *of, *given, *arguments],
            cwd=ROOT,
            env={**os.environ, "STAND_IN": actions, "AJAX_XLA_FLAGS": "--a=b", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.fixture
def reference() -> None:
    """The reference checkout, obtained as the command obtains it."""
    try:
        obtain_checkout()
    except UserError as error:
        out_of_reach(f"the reference checkout is out of reach: {error}")


# --- results/ -------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The command ``reproduce`` works on this copy of ``results/``."""
    root = tmp_path / "results"
    shutil.copytree(reproduce.RESULTS, root)
    monkeypatch.setattr(reproduce, "RESULTS", root)
    monkeypatch.setattr(published, "DIRECTORY", root / "published")
    loaders = [published.load_round, published.load_statistics, published.load_windows]
    for loader in loaders:
        monkeypatch.setattr(loader.__wrapped__, "__defaults__", (root / "published",))
        loader.cache_clear()
    yield root
    monkeypatch.undo()
    for loader in loaders:
        loader.cache_clear()


@pytest.fixture(scope="session")
def round4_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_round4(tmp_path_factory.mktemp("round4") / "round4")


@pytest.fixture
def round4(round4_source: Path, tmp_path: Path) -> Path:
    """Both parts of round 4, made up so that it is confirmed."""
    return Path(shutil.copytree(round4_source, tmp_path / "round4"))


def whole(command: Command, root: Path, *more: object) -> Done:
    """``compare`` of both parts of round 4 below ``root``."""
    return command(compare.main, "--round", "4", "--root", root, *more)

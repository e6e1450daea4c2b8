"""Settings of hypothesis; commands run in this process, and run directories to damage."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import settings

from shared.errors import run_command
from tests.synthetic import SMOKE, write_run

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

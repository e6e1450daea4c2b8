"""What the tests of whole rounds share besides fixtures."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.inside import ROOT

STAND_IN = ROOT / "tests" / "stand_in_side.py"

Launch = Callable[..., "subprocess.Popen[str]"]

AJAX_ALONE = ("--side", "ajax", "--no-compare")


def git(directory: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def end(process: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)


def pid_of(out: Path, name: str) -> int:
    """The process ``name``, as the launcher recorded it: maybe after it began to write itself."""
    deadline = time.monotonic() + 60
    while not (out / f"{name}.json").exists():
        assert time.monotonic() < deadline, f"{name} is not on record"
        time.sleep(0.05)
    return int(json.loads((out / f"{name}.json").read_text())["pid"])

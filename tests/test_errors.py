"""Exit statuses of commands."""

import subprocess
import sys

import pytest

from tests.inside import ROOT

COMMAND = """
from shared.errors import NotLearningError, UserError, run_command
def main():
    {body}
run_command(main)
"""


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("return 0", 0, ""),
        ("return 1", 1, ""),
        ("raise UserError('bad input')", 2, "error: bad input\n"),
        ("raise NotLearningError('ref_s0: stopped')", 1, "error: ref_s0: stopped\n"),
        ("raise KeyboardInterrupt", 130, "error: interrupted\n"),
    ],
)
def test_status_and_line(body: str, status: int, said: str) -> None:
    command = [sys.executable, "-c", COMMAND.format(body=body)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", said)

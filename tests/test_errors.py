"""Commands end with the exit status that says what kind of failure it was."""

import subprocess
import sys

import pytest

from shared.errors import NotLearningError, RecordError, UserError, run_command
from shared.provenance import REPO


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_of_a_command_is_its_answer(status: int) -> None:
    with pytest.raises(SystemExit) as left:
        run_command(lambda: status)
    assert left.value.code == status


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UserError("x.json: missing; restore it"), 2, "error: x.json: missing; restore it\n"),
        (RecordError("x:3: not JSON"), 2, "error: x:3: not JSON\n"),
        (NotLearningError("loss is NaN"), 1, "error: loss is NaN\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_a_failure_is_one_line_on_stderr(error, status, message, capsys) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(SystemExit) as left:
        run_command(fail)
    assert left.value.code == status
    assert capsys.readouterr() == ("", message)


def test_a_fault_of_our_own_is_not_dressed_up_as_bad_input() -> None:
    def fail() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_command(fail)


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_that_goes_away_is_no_traceback(lines: int) -> None:
    program = (
        "import sys\n"
        "from shared.errors import run_command\n"
        "def main():\n"
        "    sys.stdin.read()\n"  # until the reader has gone away
        f"    for _ in range({lines}): print('a line of output')\n"
        "    return 0\n"
        "run_command(main)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", program],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 1

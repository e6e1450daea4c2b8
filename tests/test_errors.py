"""Commands end with the exit status that says what kind of failure it was."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from shared.errors import NotLearningError, RecordError, UserError, run_command
from shared.provenance.roots import REPO


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
        (KeyboardInterrupt(15), 143, "error: interrupted\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "out/x"),
            2,
            "error: out/x: No space left on device; make room there or name another place\n",
        ),
        (
            OSError(errno.EFBIG, "File too large", "out/x"),
            2,
            "error: out/x: File too large; make room there or name another place\n",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "out"),
            2,
            "error: out: Permission denied; name another place\n",
        ),
    ],
)
def test_a_failure_is_one_line_on_stderr(error, status, message, capsys) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(SystemExit) as left:
        run_command(fail)
    assert left.value.code == status
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("fault", [ZeroDivisionError(), ChildProcessError(errno.ECHILD, "none")])
def test_a_fault_of_our_own_is_not_dressed_up_as_bad_input(fault: Exception) -> None:
    def fail() -> int:
        raise fault

    with pytest.raises(type(fault)):
        run_command(fail)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_a_full_disk_takes_is_one_line() -> None:
    program = "from shared.errors import run_command\nrun_command(lambda: print('x') or 0)\n"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], cwd=REPO, stdout=full, stderr=-1, check=False
        )
    assert done.returncode == 2
    said = b"error: output: No space left on device; make room there or name another place\n"
    assert done.stderr == said


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [("1", 1, "printed\n"), ("fail()", 2, "printed\nerror: x: gone; restore it\n")],
)
def test_a_closed_stream_changes_no_exit_status(
    closed: str, answer: str, status: int, said: str
) -> None:
    program = (
        "import subprocess, sys\n"
        "from shared.errors import UserError, run_command\n"
        "def fail(): raise UserError('x: gone; restore it')\n"
        "def main():\n"
        "    print('printed', flush=True)\n"
        "    assert sys.stdout.isatty() is False\n"
        "    subprocess.run([sys.executable, '-c', ''], check=True)\n"
        f"    return {answer}\n"
        "run_command(main)\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -B -c "$1" {closed}', sys.executable, program],
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status
    out, err = said.partition("error")[0], "".join(said.partition("error")[1:])
    assert done.stdout == ("" if ">&-" in closed.split() else out) + ("" if "2>" in closed else err)


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

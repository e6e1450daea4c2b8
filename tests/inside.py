"""Tests that need a side's environment: run there, and reported one by one by the test command.

Neither pinned environment has pytest. Their tests are ``unittest`` cases in
``tests/<side>/check_*.py`` (a name that pytest does not collect); ``python -m tests.inside``
runs them there and writes each outcome as a line of JSON. Standard library only, on that side.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Set to 1, a test that cannot run for want of an environment or a checkout fails.
NO_SKIP = "COMPARISON_NO_SKIP"

#: Set to 1, tests of minutes run too, as they do where nothing may be skipped.
SLOW = "COMPARISON_SLOW"
slow = unittest.skipUnless(
    os.environ.get(SLOW) == "1" or os.environ.get(NO_SKIP) == "1",
    f"takes minutes: set {SLOW}=1 to run it",
)

Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    name: str
    status: Status
    detail: str = ""


# --- in the test command --------------------------------------------------------------------


def report_inside(
    environment: str, side: str, subtests: "pytest.Subtests", *arguments: str
) -> None:
    """Run every check of ``tests/<side>`` in ``environment``; each one becomes a subtest.

    A side with a ``tests/<side>/__main__.py`` of its own prepares the interpreter there: it is
    given the report's path and ``arguments``, and calls :func:`run_checks`.
    """
    import pytest

    from launch.environments import ensure
    from shared.errors import UserError

    try:
        python = ensure(environment)
    except UserError as error:
        out_of_reach(f"the {environment} environment is out of reach: {error}")
    outcomes, ending = run_inside(python, side, *arguments)
    for outcome in outcomes:
        with subtests.test(msg=outcome.name):
            if outcome.status == "skipped":
                out_of_reach(outcome.detail)
            if outcome.status == "failed":
                pytest.fail(outcome.detail, pytrace=False)
    if ending or not outcomes:
        pytest.fail(f"the checks of {side} did not end well:\n{ending}", pytrace=False)


def out_of_reach(reason: str) -> None:
    """Skip the current test, saying why; fail it where skips are not wanted."""
    import pytest

    if os.environ.get(NO_SKIP) == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def run_inside(python: Path, side: str, *arguments: str) -> tuple[list[Outcome], str]:
    """Outcomes of the checks of ``side``, and what went wrong with the process as a whole."""
    own = (ROOT / "tests" / side / "__main__.py").exists()
    command = ("-m", f"tests.{side}") if own else ("-m", "tests.inside")
    rest = arguments if own else (side,)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "outcomes.jsonl"
        done = subprocess.run(
            [python, *command, report, *rest],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = report.read_text().splitlines() if report.exists() else []
    outcomes = [Outcome(**json.loads(line)) for line in lines]
    # The runner ends with 0 whatever its tests say: anything else is a crash.
    ending = f"exit status {done.returncode}\n{done.stderr[-2000:]}" if done.returncode else ""
    return outcomes, ending


# --- in the side's environment --------------------------------------------------------------


class _Reporter(unittest.TestResult):
    """Writes each outcome when it is known, so that a crash does not hide those before it."""

    def __init__(self, report: Path) -> None:
        super().__init__()
        self._report = report

    def _write(self, test: unittest.TestCase, status: Status, detail: str = "") -> None:
        with self._report.open("a") as file:
            file.write(json.dumps(asdict(Outcome(test.id(), status, detail))) + "\n")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addSuccess(test)
        self._write(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._write(test, "failed", self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._write(test, "failed", self.errors[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._write(test, "skipped", reason)

    def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            detail = (*self.failures, *self.errors)[-1][1]
            self._write(subtest, "failed", detail)


def run_checks(report: Path, side: str) -> None:
    """Run ``tests/<side>/check_*.py`` in this interpreter, writing outcomes to ``report``."""
    files = sorted((ROOT / "tests" / side).glob("check_*.py"))
    names = [f"tests.{side}.{path.stem}" for path in files]
    unittest.defaultTestLoader.loadTestsFromNames(names).run(_Reporter(report))


if __name__ == "__main__":
    run_checks(Path(sys.argv[1]), sys.argv[2])

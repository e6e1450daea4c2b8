"""``python -m tests.ref_side CHECKOUT REPORT``: runs these tests and writes what became of each.

REPORT is a JSON object: test id -> ``null`` if it passed, else the traceback.
"""

import json
import sys
import unittest
from pathlib import Path
from typing import Any

from ref_side.imports import import_reference
from shared.checkout import verify_checkout
from shared.protocol import REFERENCE_COMMIT

HERE = Path(__file__).parent


class Report(unittest.TextTestResult):
    """Keeps one entry for each test that ended; sub-tests count for their test."""

    outcomes: dict[str, str | None] = {}

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        self.outcomes.setdefault(test.id(), None)

    def _failed(self, test: Any, error: Any) -> None:
        case = getattr(test, "test_case", test)
        self.outcomes[case.id()] = self._exc_info_to_string(error, case)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(subtest, err)


def main(checkout: str, report: str) -> int:
    import_reference(verify_checkout(Path(checkout), REFERENCE_COMMIT))
    loader = unittest.TestLoader()
    names = sorted(f"{__package__}.{path.stem}" for path in HERE.glob("check_*.py"))
    suite = loader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(resultclass=Report, verbosity=2).run(suite)
    Path(report).write_text(json.dumps(Report.outcomes))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

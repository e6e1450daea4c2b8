"""``python -m tests.ref_side REPORT CHECKOUT``: these checks, with the reference imported."""

import sys
from pathlib import Path

from ref_side.imports import import_reference
from shared.protocol import REFERENCE_COMMIT
from shared.provenance.checkout import verify_checkout
from tests.inside import run_checks

if __name__ == "__main__":
    report, checkout = map(Path, sys.argv[1:])
    # Absolute: importing makes the checkout the working directory.
    report = report.resolve()
    import_reference(verify_checkout(checkout, REFERENCE_COMMIT))
    run_checks(report, "ref_side")

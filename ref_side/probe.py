"""``python -m ref_side.probe NAME``: what one instrument of ``diagnose`` asks of the reference.

Reads arrays, runs the reference's own code on them, writes arrays, and beside them what ran.
"""

import argparse
import importlib
import os
from collections.abc import Sequence
from pathlib import Path

from ref_side.imports import import_reference
from shared.arrays import read_arrays, write_arrays
from shared.checkout import verify_checkout
from shared.errors import UserError, run_command
from shared.files import write_json
from shared.obtain import obtain_checkout
from shared.protocol import REFERENCE_REMOTE
from shared.provenance import package_versions

#: Name -> module with ``probe(arrays) -> arrays``; imported after the checkout.
PROBES = {
    "expectation": "ref_side.probe_expectation",
    "encoder": "ref_side.probe_encoder",
    "record": "ref_side.probe_record",
    "matched": "ref_side.probe_matched",
}


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    inputs, output = options.inputs.resolve(), options.output.resolve()
    if output.exists():
        raise UserError(f"{output} exists already; name another --output")
    arrays = read_arrays(inputs)
    checkout = obtain_checkout(options.checkout, options.remote)
    import_reference(checkout)
    write_arrays(output, importlib.import_module(PROBES[options.name]).probe(arrays))
    # What was imported late must have been the pinned code too.
    verify_checkout(checkout.root, checkout.commit)
    packages = package_versions()
    ran = {
        "code": f"{REFERENCE_REMOTE} at {checkout.commit}",
        "jax": packages["jax"],
        "jaxlib": packages["jaxlib"],
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }
    write_json(output.with_suffix(".json"), ran)
    return 0


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m ref_side.probe",
        description="Run one probe on the reference's own code, inside its environment. "
        "nox -s diagnose calls this.",
    )
    parser.add_argument("name", choices=PROBES)
    parser.add_argument("--inputs", required=True, type=Path, metavar="NPZ")
    parser.add_argument("--output", required=True, type=Path, metavar="NPZ")
    parser.add_argument("--checkout", type=Path, metavar="DIR", help="the reference checkout")
    parser.add_argument("--remote", default=REFERENCE_REMOTE, metavar="URL")
    return parser.parse_args(given)


if __name__ == "__main__":
    run_command(main)

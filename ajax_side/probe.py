"""``python -m ajax_side.probe NAME``: what one instrument of ``diagnose`` asks of Ajax.

Reads arrays, runs Ajax's own code on them, writes arrays, and beside them what ran.
"""

import argparse
import importlib
import os
from collections.abc import Sequence
from pathlib import Path

from ajax_side.identity import find_source, import_ajax
from ajax_side.run import set_environment
from shared.arrays import read_arrays, write_arrays
from shared.errors import UserError, run_command
from shared.files import write_json
from shared.provenance import package_versions

#: Name -> module with ``probe(arrays) -> arrays``; imported after Ajax.
PROBES = {
    "expectation": "ajax_side.probe_expectation",
    "encoder": "ajax_side.probe_encoder",
    "matched": "ajax_side.probe_matched",
}


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    if options.output.exists():
        raise UserError(f"{options.output} exists already; name another --output")
    arrays = read_arrays(options.inputs)
    set_environment()
    source = find_source(options.ajax_root)
    import_ajax(source)
    write_arrays(options.output, importlib.import_module(PROBES[options.name]).probe(arrays))
    packages = package_versions()
    ran = {
        "code": str(source),
        "jax": packages["jax"],
        "jaxlib": packages["jaxlib"],
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }
    write_json(options.output.with_suffix(".json"), ran)
    return 0


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m ajax_side.probe",
        description="Run one probe on Ajax's own code, inside its environment. "
        "nox -s diagnose calls this.",
    )
    parser.add_argument("name", choices=PROBES)
    parser.add_argument("--inputs", required=True, type=Path, metavar="NPZ")
    parser.add_argument("--output", required=True, type=Path, metavar="NPZ")
    parser.add_argument("--ajax-root", type=Path, metavar="DIR", help="run DIR/src of a checkout")
    return parser.parse_args(given)


if __name__ == "__main__":
    run_command(main)

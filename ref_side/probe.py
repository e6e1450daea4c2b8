"""``python -m ref_side.probe NAME``: what one instrument of ``diagnose`` asks of the reference.

Reads arrays, runs the reference's own code on them, writes arrays, and beside them what ran.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ref_side.imports import import_reference
from shared.errors import run_command
from shared.probes.probe_command import call, probe_parser, read_inputs, write_answer
from shared.protocol import REFERENCE_REMOTE
from shared.provenance.checkout import verify_checkout
from shared.provenance.obtain import obtain_checkout

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
    # Importing the reference moves into its checkout.
    output = options.output.resolve()
    arrays = read_inputs(options)
    checkout = obtain_checkout(options.checkout, options.remote)
    import_reference(checkout)
    answer = call(PROBES[options.name], arrays)
    # What was imported late must have been the pinned code too.
    verify_checkout(checkout.root, checkout.commit)
    write_answer(output, answer, f"{REFERENCE_REMOTE} at {checkout.commit}")
    return 0


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = probe_parser("ref_side", "the reference's", PROBES)
    parser.add_argument("--checkout", type=Path, metavar="DIR", help="the reference checkout")
    parser.add_argument(
        "--remote",
        default=REFERENCE_REMOTE,
        metavar="URL",
        help="where it is cloned from if need be",
    )
    return parser.parse_args(given)


if __name__ == "__main__":
    run_command(main)

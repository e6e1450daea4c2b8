"""``python -m ajax_side.probe NAME``: what one instrument of ``diagnose`` asks of Ajax.

Reads arrays, runs Ajax's own code on them, writes arrays, and beside them what ran.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ajax_side.identity import find_source, import_ajax
from ajax_side.run import set_environment
from shared.errors import run_command
from shared.probes.probe_command import call, probe_parser, read_inputs, write_answer

#: Name -> module with ``probe(arrays) -> arrays``; imported after Ajax.
PROBES = {
    "expectation": "ajax_side.probe_expectation",
    "encoder": "ajax_side.probe_encoder",
    "matched": "ajax_side.probe_matched",
}


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    arrays = read_inputs(options)
    set_environment()
    source = find_source(options.ajax_root)
    import_ajax(source)
    write_answer(options.output, call(PROBES[options.name], arrays), str(source))
    return 0


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = probe_parser("ajax_side", "Ajax's", PROBES)
    parser.add_argument("--ajax-root", type=Path, metavar="DIR", help="run DIR/src of a checkout")
    return parser.parse_args(given)


if __name__ == "__main__":
    run_command(main)

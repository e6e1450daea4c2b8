"""The command of a side's probes: a name, arrays in, arrays out, and beside them what ran."""

import argparse
import importlib
import os
from collections.abc import Mapping
from pathlib import Path

from shared.errors import UserError
from shared.provenance.roots import package_versions
from shared.records.arrays import Arrays, read_arrays, write_arrays
from shared.records.files import write_json


def probe_parser(package: str, whose: str, probes: Mapping[str, str]) -> argparse.ArgumentParser:
    """Its options; the side adds those that say where its code lies."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}.probe",
        description=f"Run one probe on {whose} own code, inside its environment. "
        "nox -s diagnose calls this.",
    )
    parser.add_argument("name", choices=probes)
    parser.add_argument("--inputs", required=True, type=Path, metavar="NPZ", help="arrays it reads")
    parser.add_argument("--output", required=True, type=Path, metavar="NPZ", help="what it writes")
    return parser


def read_inputs(options: argparse.Namespace) -> Arrays:
    """The arrays that a probe is given. Raises ``UserError`` where its answer is there already."""
    if options.output.exists():
        raise UserError(f"{options.output} exists already; name another --output")
    return read_arrays(options.inputs)


def call(module: str, arrays: Arrays) -> Arrays:
    """What the function ``probe`` of ``module`` answers; imported only now."""
    answer: Arrays = importlib.import_module(module).probe(arrays)
    return answer


def write_answer(output: Path, answer: Arrays, code: str) -> None:
    """``output``, and beside it as JSON ``code``, the releases of jax and the XLA flags."""
    write_arrays(output, answer)
    packages = package_versions()
    ran = {
        "code": code,
        "jax": packages["jax"],
        "jaxlib": packages["jaxlib"],
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }
    write_json(output.with_suffix(".json"), ran)

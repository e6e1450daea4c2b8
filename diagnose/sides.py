"""Asking a side's probe: a process in that side's environment, with arrays in and arrays out."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

from shared.arrays import Arrays, read_arrays, write_arrays
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.files import read_json_object
from shared.protocol import SIDE_LABEL, SIDES, Side
from shared.provenance import REPO

_MODULE: dict[Side, str] = {"reference": "ref_side.probe", "ajax": "ajax_side.probe"}
_FLAGS: dict[Side, str] = {"reference": "REF_XLA_FLAGS", "ajax": "AJAX_XLA_FLAGS"}


@dataclass(frozen=True)
class Answer:
    """The arrays of a probe, and what ran: its code, jax, jaxlib and XLA flags."""

    arrays: Arrays
    ran: Mapping[str, Any]


@dataclass(frozen=True)
class Sides:
    """Python of each side, and options that its probes are given."""

    python: Mapping[Side, Path]
    options: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)

    def ask(self, side: Side, name: str, arrays: Arrays) -> Answer:
        """Run probe ``name`` of ``side`` on ``arrays``.

        Raises ``UserError`` with the probe's own line where it refused its input, and with the
        last line that it wrote where it failed.
        """
        print(f"{name}: asking the {SIDE_LABEL[side]} code", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            inputs, output = Path(scratch) / "inputs.npz", Path(scratch) / "output.npz"
            write_arrays(inputs, arrays)
            command = (
                str(self.python[side]),
                "-m",
                _MODULE[side],
                name,
                *self.options.get(side, ()),
            )
            files = ("--inputs", str(inputs), "--output", str(output))
            done = subprocess.run(
                [*command, *files],
                cwd=REPO,
                env=_environment(side),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise UserError(_reason(side, name, done))
            return Answer(read_arrays(output), read_json_object(output.with_suffix(".json")))


def _environment(side: Side) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(REPO),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": os.environ.get(_FLAGS[side], ""),
        # Compiled afresh: what the compiler does is what is asked.
        "AJAX_NO_COMPILE_CACHE": "1",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }


def _reason(side: Side, name: str, done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else "no output"
    if done.returncode == EXIT_BAD_INPUT and last.startswith("error: "):
        return last.removeprefix("error: ")
    return f"the {name} probe of {side} ended with exit status {done.returncode}: {last}"


def find_pythons(given: Mapping[Side, Path | None]) -> dict[Side, Path]:
    """The Python given for each side, else that of its pinned environment, built if need be.

    Raises ``UserError`` where a given one does not exist or an environment cannot be built.
    """
    found: dict[Side, Path] = {}
    for side in SIDES:
        python = given.get(side)
        if python is not None and not python.is_file():
            raise UserError(
                f"--{side}-python {python}: no such file; name a Python, or leave it out"
            )
        found[side] = python.absolute() if python is not None else _pinned(side)
    return found


def _pinned(side: Side) -> Path:
    command = [sys.executable, "-m", "launch.environments", side]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    last = "no output"
    with subprocess.Popen(
        command, cwd=REPO, env=environment, stdout=PIPE, stderr=PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:
            last = line.strip() or last
            # What it is building is shown at once, why it failed with our own error.
            if not line.startswith("error: "):
                print(line, end="", file=sys.stderr, flush=True)
        printed = process.stdout.read().splitlines()
    if process.returncode or not printed:
        raise UserError(last.removeprefix("error: "))
    return Path(printed[-1])

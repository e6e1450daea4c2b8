"""Asking a side's probe: a process in that side's environment, with arrays in and arrays out."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from types import TracebackType
from typing import Any, Self

from shared.command_start import ending_with_parent
from shared.compiled import DIRECTORY, cache_variables
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.probes.probing import TELLING
from shared.protocol import SIDE_LABEL, SIDES, Side
from shared.provenance.installed import verify_search_path
from shared.provenance.named_python import check_pythons
from shared.provenance.roots import REPO
from shared.records.arrays import Arrays, read_arrays, write_arrays
from shared.records.files import read_json_object
from shared.variables import XLA_FLAGS_VARIABLE, child_environment, command_environment

_MODULE: dict[Side, str] = {"reference": "ref_side.probe", "ajax": "ajax_side.probe"}
_POLL_SECONDS, _STOP_SECONDS = 0.1, 5.0


@dataclass(frozen=True)
class Answer:
    """The arrays of a probe, and what ran: its code, jax, jaxlib and XLA flags."""

    arrays: Arrays
    ran: Mapping[str, Any]


class Asked:
    """A probe at work; leaving its ``with`` block stops it. Its progress lines are printed."""

    def __init__(
        self, side: Side, name: str, command: tuple[str, ...], arrays: Arrays, cached: bool
    ) -> None:
        print(f"{name}: asking the {SIDE_LABEL[side]} code", flush=True)
        self._side, self._name = side, name
        self._scratch = tempfile.TemporaryDirectory()
        place = Path(self._scratch.name)
        self._output, self._errors = place / "output.npz", place / "errors"
        write_arrays(place / "inputs.npz", arrays)
        files = ("--inputs", str(place / "inputs.npz"), "--output", str(self._output))
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [*command, *files],
                cwd=REPO,
                env=_environment(side, Path(command[0]), cached=cached),
                stdin=subprocess.DEVNULL,
                stdout=PIPE,
                stderr=errors,
                text=True,
                errors="replace",
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(TELLING):
                text = line.removeprefix(TELLING)
                print(f"{self._name}: {SIDE_LABEL[self._side]}, {text}", end="", flush=True)

    def ended(self) -> bool:
        """Whether the probe has answered. Raises ``UserError`` where it refused or failed."""
        status = self._process.poll()
        if status:
            raise UserError(self._reason(status))
        return status == 0

    def answer(self) -> Answer:
        """Wait for the answer. Raises ``UserError`` as :meth:`ended` does."""
        self._process.wait()
        self.ended()
        self._listener.join()
        ran = read_json_object(self._output.with_suffix(".json"))
        return Answer(read_arrays(self._output), ran)

    def _reason(self, status: int) -> str:
        text = self._errors.read_text(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        last = lines[-1] if lines else "no output"
        if status == EXIT_BAD_INPUT and last.startswith("error: "):
            return last.removeprefix("error: ")
        return f"the {self._name} probe of {self._side} ended with exit status {status}: {last}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._listener.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._scratch.cleanup()


@dataclass(frozen=True)
class Sides:
    """Python of each side, and options that its probes are given."""

    python: Mapping[Side, Path]
    options: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)

    def start(self, side: Side, name: str, arrays: Arrays, *, cached: bool = False) -> Asked:
        """Start probe ``name`` of ``side``; ``cached``: with compiled programs of earlier runs."""
        own = self.options.get(side, ())
        command = (str(self.python[side]), "-m", _MODULE[side], name, *own)
        return Asked(side, name, command, arrays, cached)

    def ask(self, side: Side, name: str, arrays: Arrays, *, cached: bool = False) -> Answer:
        """Run probe ``name`` of ``side`` on ``arrays``.

        Raises ``UserError`` with the probe's own line where it refused its input, and with the
        last line that it wrote where it failed.
        """
        with self.start(side, name, arrays, cached=cached) as asked:
            return asked.answer()

    def ask_both(
        self, name: str, arrays: Mapping[Side, Arrays], *, cached: bool = False
    ) -> dict[Side, Answer]:
        """As :meth:`ask`, of both sides at the same time; where one fails the other is stopped."""
        with ExitStack() as stack:
            asked = {
                side: stack.enter_context(self.start(side, name, given, cached=cached))
                for side, given in arrays.items()
            }
            while [side for side, each in asked.items() if not each.ended()]:
                time.sleep(_POLL_SECONDS)
            return {side: each.answer() for side, each in asked.items()}


def _environment(side: Side, python: Path, *, cached: bool) -> dict[str, str]:
    own = {
        "PYTHONSAFEPATH": "1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": os.environ.get(XLA_FLAGS_VARIABLE[side], ""),
        # Ajax would keep its programs in a directory of its own.
        "AJAX_NO_COMPILE_CACHE": "1",
    }
    if cached and (directory := _cache(python)) is not None:
        own |= cache_variables(directory)
    else:
        # Compiled afresh: what the compiler does is what is asked.
        own["JAX_ENABLE_COMPILATION_CACHE"] = "0"
    return child_environment(own, os.environ)


def _cache(python: Path) -> Path | None:
    """Where the programs of this interpreter's jax lie; ``None`` where it does not say."""
    command = [str(python), "-m", "shared.compiled"]
    environment = child_environment({}, os.environ)
    done = subprocess.run(
        command, cwd=REPO, env=environment, capture_output=True, text=True, check=False
    )
    name = done.stdout.strip()
    return REPO / DIRECTORY / name if done.returncode == 0 and name else None


def find_pythons(given: Mapping[Side, Path | None]) -> dict[Side, Path]:
    """The Python given for each side, else that of its pinned environment, built if need be.

    Raises ``UserError`` where a given one is no program, before anything is built, or an
    environment cannot be built.
    """
    check_pythons(given)
    found: dict[Side, Path] = {}
    for side in SIDES:
        python = given.get(side)
        found[side] = _pinned(side) if python is None else _verified(side, python.absolute())
    return found


def _verified(side: Side, python: Path) -> Path:
    """A Python that was given, whose packages are as they were installed."""
    command = [str(python), "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        search_path = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise UserError(f"--{side}-python {python}: cannot be run; is it a Python?") from None
    verify_search_path(search_path, f"reinstall that package, or leave --{side}-python out")
    return python


def _pinned(side: Side) -> Path:
    command = [sys.executable, "-m", "launch.environments", side]
    environment = command_environment({}, os.environ)
    last = "no output"
    with subprocess.Popen(
        command,
        cwd=REPO,
        env=environment,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        preexec_fn=ending_with_parent(signal.SIGTERM),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last = line.strip() or last
                # What it is building is shown at once, why it failed with our own error.
                if not line.startswith("error: "):
                    print(line, end="", file=sys.stderr, flush=True)
            printed = process.stdout.read().splitlines()
        except BaseException:
            process.terminate()
            raise
    if process.returncode or not printed:
        raise UserError(last.removeprefix("error: "))
    return Path(printed[-1])

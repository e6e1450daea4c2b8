"""jax's compilation cache as a round sets it, whatever state its directory is in.

``check_cache.py`` of each side makes this a test of its own jax.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch.programs import SideCache, cache_environment
from shared.protocol import Side
from shared.provenance.roots import REPO

#: Prints the result of two compiled programs.
PROGRAM = """
import jax, jax.numpy as jnp
step = lambda carry, number: (jnp.tanh(carry @ carry + number), carry.sum())
scan = jax.jit(lambda start: jax.lax.scan(step, start, jnp.arange(9)))
print(scan(jnp.eye(5) / 7)[1].tolist(), jax.jit(jnp.sin)(0.5))
"""


def run_with_cache(code: str, side: Side, directory: Path | None, *arguments: str) -> str:
    """Output of ``code`` in a process with the round's variables; fails where that fails."""
    cache = None if directory is None else SideCache(directory, None)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=REPO,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("JAX_")},
            **cache_environment(cache, side),
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": str(REPO),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    return done.stdout


def entries(directory: Path) -> dict[str, bytes]:
    """The programs in a cache directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


class CacheChecks:
    """To be mixed into a test case; ``side`` is whose environment this is."""

    side: Side

    def test_small_programs_are_kept_and_found_again(self: unittest.TestCase) -> None:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder) / "made" / "on demand"
            bare = run_with_cache(PROGRAM, self.side, None)
            self.assertEqual(run_with_cache(PROGRAM, self.side, directory), bare)
            kept = entries(directory)
            self.assertGreater(len(kept), 2)
            self.assertEqual(run_with_cache(PROGRAM, self.side, directory), bare)
            self.assertEqual(entries(directory).keys(), kept.keys())

    def test_a_broken_cache_fails_no_run(self: unittest.TestCase) -> None:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            bare = run_with_cache(PROGRAM, self.side, directory)
            for spoil in (None, b"", b"not compressed"):
                for name, content in entries(directory).items():
                    (directory / name).write_bytes(content[:-40] if spoil is None else spoil)
                self.assertEqual(run_with_cache(PROGRAM, self.side, directory), bare)

    def test_a_cache_that_cannot_be_written_fails_no_run(self: unittest.TestCase) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "file").write_text("")
            bare = run_with_cache(PROGRAM, self.side, None)
            directory = Path(folder) / "file" / "cache"
            self.assertEqual(run_with_cache(PROGRAM, self.side, directory), bare)

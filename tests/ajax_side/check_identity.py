"""Which Ajax runs is settled before it is imported; planted changes are refused."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

from ajax_side.identity import checkout, find_source, release
from shared.errors import UserError
from shared.protocol import AJAX_DISTRIBUTION, AJAX_RELEASE
from shared.provenance.distributions import AJAX_RELEASE_DIGEST, find_distribution
from shared.provenance.roots import REPO
from shared.variables import AJAX_VARIABLE

#: Runs with a copied wheel first on the path; prints nothing where the source is refused.
IMPORT = """
import sys
from ajax_side.identity import import_ajax, release
sys.path.insert(0, sys.argv[1])
source = release("0.4.0", sys.argv[1:2])
import_ajax(source)
print(sys.modules["ajax"].__file__)
"""


class InstalledRelease(unittest.TestCase):
    """The wheel of this environment."""

    def test_is_the_published_one(self) -> None:
        source = find_source(None)
        self.assertEqual(str(source), f"{AJAX_DISTRIBUTION} {AJAX_RELEASE}")
        record = source.record()
        self.assertEqual(record["ajax_file"], "<site-packages>/ajax/__init__.py")
        self.assertEqual(record["ajax_distribution"]["digest"], AJAX_RELEASE_DIGEST)

    def test_another_version_is_not_taken_for_it(self) -> None:
        with self.assertRaisesRegex(UserError, r"0\.4\.0 is installed, 9\.9 was asked for"):
            release("9.9")


class PlantedChanges(unittest.TestCase):
    """A copy of the wheel's files, each time changed in one way."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.site = Path(scratch.name)
        installed = find_distribution(AJAX_DISTRIBUTION)
        for folder in ("ajax", f"ajax_rl-{AJAX_RELEASE}.dist-info"):
            shutil.copytree(installed.root / folder, self.site / folder)
        self.record = self.site / f"ajax_rl-{AJAX_RELEASE}.dist-info" / "RECORD"

    def identify(self) -> None:
        release(AJAX_RELEASE, [str(self.site)])

    def refused(self, change: Callable[[], object], message: str) -> None:
        self.identify()  # the copy itself is accepted
        change()
        with self.assertRaisesRegex(UserError, message) as caught:
            self.identify()
        self.assertNotIn("\n", str(caught.exception))

    def test_changed_file(self) -> None:
        target = self.site / "ajax" / "agents" / "DreamerV3" / "learner.py"
        content = target.read_bytes()
        self.refused(
            lambda: target.write_bytes(content[:-2] + b"#\n"),
            r"ajax/agents/DreamerV3/learner\.py differs",
        )

    def test_missing_file(self) -> None:
        self.refused((self.site / "ajax" / "log.py").unlink, r"ajax/log\.py is missing")

    def test_extra_module(self) -> None:
        extra = self.site / "ajax" / "agents" / "helpful.py"
        self.refused(
            lambda: extra.write_text(""), r"ajax/agents/helpful\.py is not part of the release"
        )

    def test_extra_compiled_module(self) -> None:
        extra = self.site / "ajax" / "distributional.abi3.so"  # would win over distributional.py
        self.refused(lambda: extra.write_bytes(b""), r"distributional\.abi3\.so is not part")

    def test_record_rewritten_to_match_a_dropped_file(self) -> None:
        def change() -> None:
            (self.site / "ajax" / "compare.py").unlink()
            lines = self.record.read_text().splitlines(keepends=True)
            self.record.write_text("".join(x for x in lines if not x.startswith("ajax/compare.py")))

        self.refused(change, r"its RECORD is not the published release's")

    def test_lines_and_files_of_installers_do_not_matter(self) -> None:
        folder = self.record.parent.name
        with self.record.open("a") as file:
            file.write(f"{folder}/direct_url.json,sha256=x,1\najax/__pycache__/log.pyc,,\n")
        (self.site / "ajax" / "__pycache__").mkdir(exist_ok=True)
        (self.site / "ajax" / "__pycache__" / "log.cpython-312.pyc").write_bytes(b"")
        self.identify()

    def test_planted_bytecode_is_not_run(self) -> None:
        package = self.site / "ajax" / "__init__.py"
        told = package.stat()
        bad = self.site / "bad.py"
        bad.write_text("raise SystemExit('planted bytecode ran')\n")
        # Bytecode that claims to be compiled from the source: its time and size.
        script = (
            "import importlib._bootstrap_external as b, importlib.util as u, sys\n"
            "code = compile(open(sys.argv[1]).read(), sys.argv[2], 'exec')\n"
            "data = b._code_to_timestamp_pyc(code, int(sys.argv[3]), int(sys.argv[4]))\n"
            "target = u.cache_from_source(sys.argv[2])\n"
            "import pathlib; pathlib.Path(target).parent.mkdir(exist_ok=True)\n"
            "pathlib.Path(target).write_bytes(data)\n"
        )
        facts = [str(bad), str(package), str(int(told.st_mtime)), str(told.st_size)]
        # A session of nox sets a place of its own for bytecode: the plant lies beside the source.
        beside = {name: os.environ[name] for name in os.environ if name != "PYTHONPYCACHEPREFIX"}
        subprocess.run([sys.executable, "-c", script, *facts], check=True, env=beside)
        bad.unlink()
        plain = [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import ajax"]
        naive = subprocess.run(
            [*plain, self.site], capture_output=True, text=True, check=False, env=beside
        )
        self.assertIn("planted bytecode ran", naive.stderr)  # the plant works
        done = subprocess.run(
            [sys.executable, "-c", IMPORT, self.site],
            capture_output=True,
            text=True,
            check=False,
            cwd=REPO,
        )
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(package)), done.stderr)


class Checkouts(unittest.TestCase):
    """A git checkout with an ``ajax`` package under ``src``."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name).resolve()
        package = self.root / "src" / "ajax"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def test_clean_then_dirty_under_src_only(self) -> None:
        source = find_source(self.root)
        self.assertEqual((source.commit, source.dirty), (self.git("rev-parse", "HEAD"), False))
        self.assertEqual(source.record()["ajax_file"], "<ajax-src>/ajax/__init__.py")
        (self.root / "notes.txt").write_text("outside src")
        self.assertFalse(find_source(self.root).dirty)
        (self.root / "src" / "ajax" / "extra.py").write_text("")
        self.assertTrue(find_source(self.root).dirty)

    def test_variable_names_the_src_directory(self) -> None:
        os.environ[AJAX_VARIABLE] = str(self.root / "src")
        self.addCleanup(os.environ.pop, AJAX_VARIABLE)
        self.assertEqual(find_source(None).commit, self.git("rev-parse", "HEAD"))

    def test_no_checkout_there(self) -> None:
        with self.assertRaisesRegex(UserError, "holds no ajax package"):
            checkout(self.root / "elsewhere")
        shutil.rmtree(self.root / ".git")
        with self.assertRaisesRegex(UserError, "git"):
            find_source(self.root)

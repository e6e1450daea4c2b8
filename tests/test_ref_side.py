"""The reference side: its checks inside the reference environment, and its command from outside."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.environments import ensure
from shared.errors import EXIT_BAD_INPUT, UserError
from shared.protocol import REFERENCE_COMMIT, Side
from shared.provenance.checkout import verify_checkout
from shared.provenance.obtain import obtain_checkout
from shared.variables import set_jax_environment
from tests.inside import ROOT, out_of_reach, report_inside

# In one process: the environment is built once.
pytestmark = [pytest.mark.sides, pytest.mark.xdist_group("reference")]

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def checkout() -> Path:
    try:
        return obtain_checkout().root
    except UserError as error:
        out_of_reach(str(error))
        raise


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return ensure("reference")
    except UserError as error:
        out_of_reach(f"the reference environment is out of reach: {error}")
        raise


@pytest.fixture
def command(python: Path, tmp_path: Path) -> Command:
    """Run ``ref_side.run`` for a smoke run of seed 0 with these options added or replaced."""

    def run(checkout: Path, **options: str) -> subprocess.CompletedProcess[str]:
        given = {"arm": "stock", "seed": "0", "rows": "1600", "every": "400", **options}
        flags = [part for name, value in given.items() for part in (f"--{name}", value)]
        places = ["--checkout", checkout, "--out", tmp_path / "out", "--tiny"]
        return subprocess.run(
            [python, "-m", "ref_side.run", *flags, *places],
            # No PYTHONDONTWRITEBYTECODE: the command itself must keep the checkout clean.
            env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def copy(checkout: Path, tmp_path: Path) -> Path:
    """A copy of the checkout in a folder of its own, to be edited."""
    target = tmp_path / "clones" / "dreamerv3"
    shutil.copytree(checkout, target)
    return target


def test_checks_inside_the_reference_environment(checkout: Path, subtests: pytest.Subtests) -> None:
    report_inside("reference", "ref_side", subtests, str(checkout))
    verify_checkout(checkout, REFERENCE_COMMIT)


@pytest.mark.parametrize(
    ("side", "variable"), [("reference", "REF_XLA_FLAGS"), ("ajax", "AJAX_XLA_FLAGS")]
)
def test_a_sides_own_flags_become_xlas(
    side: Side, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JAX_PLATFORMS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "kept")
    monkeypatch.delenv(variable, raising=False)
    set_jax_environment(side)
    assert (os.environ["JAX_PLATFORMS"], os.environ["XLA_FLAGS"]) == ("cpu", "kept")
    monkeypatch.setenv(variable, "--x=1")
    set_jax_environment(side)
    assert os.environ["XLA_FLAGS"] == "--x=1"


def refused(done: subprocess.CompletedProcess[str], tmp_path: Path) -> str:
    """The one line of a command that refused its input and wrote nothing."""
    assert done.returncode == EXIT_BAD_INPUT, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    return done.stderr


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.invalid")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", *identity, *arguments], cwd=directory, env=environment, check=True)


# Each edit would leave a mark beside the checkout if any of its code were run.
MARK = "import pathlib; (pathlib.Path(__file__).parents[2] / 'imported').touch()\n"


def change(root: Path) -> None:
    path = root / "embodied" / "__init__.py"
    path.write_text(MARK + path.read_text())


def change_unseen_by_git(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "embodied/__init__.py")
    change(root)


def add_an_ignored_module(root: Path) -> None:
    (root / "embodied" / "__pycache__").mkdir()
    (root / "embodied" / "__pycache__" / "extra.py").write_text(MARK)


def add_a_module_that_hides_a_package(root: Path) -> None:
    (root / "jax").mkdir()
    (root / "jax" / "__init__.py").write_text(MARK)


def check_out_another_commit(root: Path) -> None:
    change(root)
    git(root, "commit", "--quiet", "--all", "--message", "another")


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (change, "embodied/__init__.py has changed"),
        (change_unseen_by_git, "embodied/__init__.py has changed"),
        (add_an_ignored_module, "embodied/__pycache__/extra.py is not in the commit"),
        (add_a_module_that_hides_a_package, "jax/__init__.py is not in the commit"),
        (check_out_another_commit, "is checked out, expected 29eb964"),
    ],
)
def test_a_planted_edit_is_refused_before_anything_is_imported(
    edit: Callable[[Path], None], named: str, copy: Path, command: Command, tmp_path: Path
) -> None:
    edit(copy)
    assert named in refused(command(copy), tmp_path)
    assert not (copy.parent / "imported").exists()


def test_a_package_beside_the_checkout_does_not_stand_in_for_it(copy: Path, python: Path) -> None:
    """The stock main module puts the folder around the checkout first on the path."""
    (copy.parent / "dreamerv3").mkdir(exist_ok=True)
    (copy.parent / "ruamel").mkdir()
    (copy.parent / "optax.py").write_text("raise SystemExit('the wrong optax')\n")
    script = (
        "import sys; from pathlib import Path;"
        "from ref_side.imports import import_reference;"
        "from shared.provenance.checkout import Checkout;"
        f"root = Path({str(copy)!r}); import_reference(Checkout(root, ''));"
        "assert str(root.parent) not in sys.path, sys.path;"
        "assert Path.cwd() == root; import optax; print(optax.__version__)"
    )
    done = subprocess.run(
        [python, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "0.2.2", done.stderr
    verify_checkout(copy, REFERENCE_COMMIT)


def test_another_interpreter_is_told_what_it_lacks(checkout: Path) -> None:
    """``python`` here is the one that runs the tests; it has no jax."""
    import sys

    script = (
        "from pathlib import Path; from ref_side.imports import import_reference;"
        "from shared.provenance.checkout import Checkout; from shared.errors import run_command;"
        f"run_command(lambda: import_reference(Checkout(Path({str(checkout)!r}), '')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == EXIT_BAD_INPUT
    assert "has no module" in done.stderr
    assert "constraints-ref.txt" in done.stderr


def test_an_existing_run_is_not_touched(checkout: Path, command: Command, tmp_path: Path) -> None:
    run = tmp_path / "out" / "ref_s0"
    run.mkdir(parents=True)
    (run / "checkpoint.ckpt").write_bytes(b"of an older run")
    done = command(checkout)
    assert done.returncode == EXIT_BAD_INPUT
    assert "ref_s0 exists already" in done.stderr
    assert [path.name for path in run.iterdir()] == ["checkpoint.ckpt"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rows": "1601"}, "--rows 1601: give a positive multiple of 16"),
        ({"every": "0"}, "--every 0: give a positive multiple of 16"),
        ({"every": "480"}, "--rows 1600: give a multiple of --every 480"),
        ({"progress-every": "100"}, "--progress-every 100: give a positive multiple of 16"),
        ({"episodes": "0"}, "--episodes 0"),
        ({"seed": "-1"}, "--seed -1"),
    ],
)
def test_sizes_that_end_in_another_run_are_refused(
    options: dict[str, str], reason: str, checkout: Path, command: Command, tmp_path: Path
) -> None:
    assert reason in refused(command(checkout, **options), tmp_path)


def test_help_explains_the_command(python: Path) -> None:
    done = subprocess.run(
        [python, "-m", "ref_side.run", "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    for name in ("--checkout", "--arm {stock,exact,exact-seeded}", "--tiny", "DREAMERV3_REF"):
        assert name in done.stdout

"""The Ajax command refuses bad input before anything is loaded or written; needs no Ajax."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
GOOD = {
    "--arm": ["stock"],
    "--seeds": ["0", "1"],
    "--rows": ["1600"],
    "--every": ["400"],
    "--episodes": ["2"],
}


def run(out: Path, **changes: list[str]) -> subprocess.CompletedProcess[str]:
    options = GOOD | {f"--{name}": values for name, values in changes.items()}
    arguments = [word for name, values in options.items() for word in (name, *values)]
    return subprocess.run(
        [sys.executable, "-m", "ajax_side.run", *arguments, "--out", out],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPO,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": ["1", "1"]}, "give different seeds"),
        ({"seeds": ["-1"]}, "give different seeds from 0 to 4294967295"),
        ({"seeds": ["4294967296"]}, "give different seeds from 0 to 4294967295"),
        ({"every": ["0"]}, "--every 0: give a positive number"),
        ({"every": ["100"]}, "--every 100: give a multiple of the 16 environments"),
        ({"rows": ["1000"]}, "--rows 1000: give a multiple of --every 400"),
        ({"episodes": ["0"]}, "--episodes 0: give a positive number"),
        ({"ajax-root": ["nowhere"]}, "nowhere/src: holds no ajax package"),
    ],
)
def test_bad_options_end_in_one_line(
    tmp_path: Path, changes: dict[str, list[str]], message: str
) -> None:
    done = run(tmp_path / "out", **changes)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_unknown_arm_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, arm=["exact"])
    assert done.returncode == 2
    assert "invalid choice: 'exact'" in done.stderr


def test_an_existing_run_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "ajax" / "config.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    done = run(tmp_path)
    assert done.returncode == 2
    assert "exists already: choose another --out" in done.stderr
    assert [path.name for path in kept.parent.iterdir()] == ["config.json"]


def test_without_ajax_it_says_what_to_install(tmp_path: Path) -> None:
    done = run(tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ajax-rl is not installed in this environment")


def test_help_explains_every_option() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ajax_side.run", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPO,
    )
    for word in (*GOOD, "--out", "--tiny", "--ajax-root", "AJAX_SRC", "AJAX_XLA_FLAGS"):
        assert word in done.stdout

"""What a user's shell says of Python, jax, numpy and Matplotlib reaches no command and no side."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch.identity import start_of
from shared.command_start import SESSION_VARIABLE
from shared.variables import FIXED, child_environment, command_environment
from tests.inside import ROOT

THEIRS = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MATPLOTLIBRC": "/nonexistent",
    "PYTHONWARNINGS": "error",
    "PYTHONOPTIMIZE": "2",
    "PYTHONINTMAXSTRDIGITS": "640",
    "PYTHONUTF8": "0",
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--theirs",
    "TF_XLA_FLAGS": "--theirs",
    "NPY_PROMOTION_STATE": "legacy",
}
KEPT = {"PATH": "/bin", "HOME": "/HOME", "TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}
KEPT |= {"UV_INDEX_URL": "https://index.invalid", "HTTPS_PROXY": "http://proxy.invalid"}
KEPT |= {"SSL_CERT_FILE": "/certificates", "TMPDIR": "/scratch", "LC_ALL": "C"}


def test_what_a_command_and_a_side_get_of_a_shell() -> None:
    flags = {"REF_XLA_FLAGS": "--a", "DREAMERV3_REF": "there"}
    fixed = FIXED | {"PYTHONPATH": str(ROOT)}
    assert command_environment({}, THEIRS | KEPT | flags) == KEPT | flags | fixed
    assert child_environment({}, THEIRS | KEPT | flags) == KEPT | fixed
    assert child_environment({"XLA_FLAGS": "--own"}, THEIRS)["XLA_FLAGS"] == "--own"


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with settings for everything."""
    settings = tmp_path / "config" / "matplotlib"
    settings.mkdir(parents=True)
    text = "font.size: 30\nlines.linewidth: 9\nbackend: module://nonesuch\naxes.facecolor: red\n"
    (settings / "matplotlibrc").write_text(text)
    (tmp_path / "modules" / "analysis").mkdir(parents=True)
    (tmp_path / "modules" / "analysis" / "__init__.py").write_text("raise SystemExit('theirs')\n")
    plain = {name: value for name, value in os.environ.items() if name not in FIXED}
    paths = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "MPLCONFIGDIR": str(settings)}
    return plain | THEIRS | paths | {"PYTHONPATH": str(tmp_path / "modules")}


@pytest.mark.parametrize(
    "module",
    [
        *("analysis.compare", "analysis.reproduce", "diagnose.run", "launch.round", "launch.clean"),
        *("ref_side.run", "ajax_side.run"),
    ],
)
def test_a_command_called_directly_explains_itself(module: str, shell: dict[str, str]) -> None:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, env=shell, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


DRAW = """
import sys
from pathlib import Path
from analysis.canvas import new_figure, save
figure, (axes,) = new_figure(3, 2)
axes.plot([1, 2, 3], [2, 1, 3], label="a")
axes.set_title("Title")
axes.legend()
for kind in ("png", "svg"):
    save(figure, Path(sys.argv[1]) / f"figure.{kind}")
"""


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_figure_has_the_same_bytes_beside_a_users_settings(
    tmp_path: Path, shell: dict[str, str], kind: str
) -> None:
    drawn = []
    for name, environment in (("plain", os.environ), ("theirs", shell)):
        directory = tmp_path / name
        directory.mkdir()
        if name == "theirs":  # Matplotlib looks here first
            text = "font.size: 30\nlines.linewidth: 9\naxes.facecolor: red\nsavefig.pad_inches: 1\n"
            (directory / "matplotlibrc").write_text(text)
        cleaned = command_environment({}, environment)
        command = [sys.executable, "-c", DRAW, str(directory)]
        subprocess.run(command, cwd=directory, env=cleaned, check=True)
        drawn.append((directory / f"figure.{kind}").read_bytes())
    assert drawn[0] == drawn[1]


def test_the_options_of_a_command_survive_its_beginning_anew(shell: dict[str, str]) -> None:
    command = [sys.executable, "-m", "analysis.compare", "--root", "no such place; $HOME"]
    done = subprocess.run(command, cwd=ROOT, env=shell, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such place; $HOME" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_of_a_session_ends_with_its_parent(
    tmp_path: Path, number: signal.Signals
) -> None:
    """As nox does: it starts the command, and is killed."""
    package = tmp_path / "waiting"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from shared.command_start import begin_command\nbegin_command()\n"
    )
    (package / "command.py").write_text(
        "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(300)\n"
    )
    start = "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'waiting.command'])\n"
    own = {SESSION_VARIABLE: "smoke", "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    with subprocess.Popen(
        [sys.executable, "-c", start],
        env=command_environment(own, os.environ),
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert start_of(pid) is not None
        parent.send_signal(number)
        parent.wait()
        deadline = time.monotonic() + 30
        while start_of(pid) is not None:
            assert time.monotonic() < deadline, "it runs on"
            time.sleep(0.02)


def test_a_side_runs_without_its_users_settings(shell: dict[str, str]) -> None:
    ask = "import json, os, sys; f = sys.flags; print(json.dumps([f.optimize, sys.warnoptions,"
    ask += " sys.get_int_max_str_digits(), f.utf8_mode, f.no_user_site, sys.pycache_prefix]))"
    environment = child_environment({}, shell)
    done = subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [0, [], 4300, 1, 1, FIXED["PYTHONPYCACHEPREFIX"]]

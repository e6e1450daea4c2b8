"""Environments are built whole or not at all, reused at once, and fail in one line.

All but one of these tests install a planted package from an index that they serve themselves, with
an empty uv cache: real uv, real HTTP, no network. The last one needs the real index; it skips where
that is out of reach, unless COMPARISON_NO_SKIP=1 turns the skip into a failure.
"""

import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from launch import environments, uv
from launch.environments import (
    ENVIRONMENTS,
    STUDY_PYTHONS,
    Environment,
    ensure_environment,
    is_built,
)
from launch.identity import start_of
from shared.errors import UserError
from shared.variables import child_environment
from tests.inside import ROOT, out_of_reach


def planted(root: Path, pythons: tuple[str, ...] = STUDY_PYTHONS) -> Environment:
    return Environment("planted", "", pythons, "list.txt", root)


DEAD_INDEX = "http://user:secret@127.0.0.1:9/simple"
BUILD = """
import sys
from pathlib import Path
from launch.environments import STUDY_PYTHONS, Environment, ensure_environment
planted = Environment("planted", "", STUDY_PYTHONS, "list.txt", Path(sys.argv[1]))
print(ensure_environment(planted))
"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def plant_wheel(folder: Path) -> str:
    """Put a package ``planted`` 1.0 into an index's folder; its sha256."""
    folder.mkdir(parents=True)
    wheel = folder / "planted-1.0-py3-none-any.whl"
    info = "planted-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("planted.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/RECORD", f"planted.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def write_list(root: Path, digest: str, version: str = "1.0") -> None:
    (root / "list.txt").write_text(f"planted=={version} \\\n    --hash=sha256:{digest}\n")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """A running package index with one package; ``tmp_path / "sha256"`` holds its digest."""
    digest = plant_wheel(tmp_path / "index" / "simple" / "planted")
    (tmp_path / "sha256").write_text(digest)
    handler = partial(QuietHandler, directory=str(tmp_path / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def project(tmp_path: Path, index: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository root with a list of one package, the index that serves it, an empty cache."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{index.server_port}/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    root = tmp_path / "project"
    root.mkdir()
    write_list(root, (tmp_path / "sha256").read_text())
    return root


def answer(python: Path) -> str:
    done = subprocess.run(
        [str(python), "-c", "import planted; print(planted.ANSWER)"], capture_output=True, text=True
    )
    return done.stdout.strip()


def fails(environment: Environment) -> str:
    """The one line with which building fails; nothing of the build may remain."""
    with pytest.raises(UserError) as caught:
        ensure_environment(environment)
    folder = environment.home.parent
    assert not folder.is_dir() or {entry.suffix for entry in folder.iterdir()} <= {".log", ".lock"}
    line = str(caught.value)
    assert "\n" not in line
    return line


def start_build(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(root)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_built_once_then_reused_at_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = ensure_environment(planted(project))
    assert answer(python) == "42"
    monkeypatch.setattr(environments, "run_uv", lambda *_: pytest.fail("uv was called again"))
    assert ensure_environment(planted(project)) == python


def test_a_changed_list_makes_another_environment(project: Path) -> None:
    first = ensure_environment(planted(project))
    with (project / "list.txt").open("a") as stream:
        stream.write("# an edit of any kind\n")
    assert ensure_environment(planted(project)) != first
    assert answer(first) == "42"


def test_a_wrong_hash_is_refused(project: Path) -> None:
    write_list(project, "0" * 64)
    line = fails(planted(project))
    assert "planted==1.0 does not have a hash that list.txt gives" in line
    assert "nothing was installed" in line


def test_a_version_that_the_index_lacks_is_named(project: Path) -> None:
    write_list(project, "0" * 64, version="2.0")
    assert "planted==2.0" in fails(planted(project))


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_an_index_out_of_reach_fails_within_seconds(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv(variable, DEAD_INDEX)
    begun = time.monotonic()
    line = fails(planted(project))
    assert time.monotonic() - begun < 10
    assert "no package index within reach at http://127.0.0.1:9;" in line
    assert "set UV_DEFAULT_INDEX" in line
    log = planted(project).home.with_suffix(".log")
    assert "secret" not in line + log.read_text()


def test_what_uv_has_cached_needs_no_index(project: Path, index: ThreadingHTTPServer) -> None:
    ensure_environment(planted(project))
    shutil.rmtree(project / ".work")
    index.shutdown()
    index.server_close()
    assert answer(ensure_environment(planted(project))) == "42"


def test_pips_index_serves_where_uvs_own_is_out_of_reach(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", os.environ["UV_DEFAULT_INDEX"])
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    settings = tmp_path / "uv.toml"
    settings.write_text(f'[[index]]\nurl = "{DEAD_INDEX}"\ndefault = true\n')
    monkeypatch.setenv("UV_CONFIG_FILE", str(settings))
    assert answer(ensure_environment(planted(project))) == "42"


def test_missing_interpreter_names_the_environment(project: Path) -> None:
    line = fails(planted(project, ("3.99",)))
    assert line.startswith("environment 'planted': no Python 3.99 found")


def test_a_folder_that_cannot_be_written_is_named(project: Path) -> None:
    (project / ".work").write_text("in the way")
    assert f"cannot write {project / '.work' / 'env'}" in fails(planted(project))


def test_a_cache_that_cannot_be_written_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", "/dev/null/cache")
    assert "/dev/null/cache" in fails(planted(project))


def test_a_killed_build_does_not_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, monkeypatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        builder = start_build(project)
        silent.settimeout(30)
        silent.accept()  # uv waits for an answer, in the midst of the build
        os.killpg(builder.pid, signal.SIGKILL)
        builder.communicate()
    assert planted(project).home.exists()
    assert not is_built(planted(project))
    assert answer(ensure_environment(planted(project))) == "42"


def test_two_builders_at_once_end_with_one_environment(project: Path) -> None:
    builders = [start_build(project) for _ in range(3)]
    outputs = [builder.communicate() for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert answer(Path(outputs[0][0].strip())) == "42"
    homes = [path for path in (project / ".work" / "env").iterdir() if path.is_dir()]
    assert len(homes) == 1


@pytest.mark.parametrize(
    "damage",
    ["{home}.json", "bin/python", "{site}/planted.py", "{site}/planted-1.0.dist-info/RECORD"],
)
def test_an_environment_that_lacks_something_is_built_again(project: Path, damage: str) -> None:
    python = ensure_environment(planted(project))
    home = python.parent.parent
    site = next(home.glob("lib/python*/site-packages"))
    (home / damage.format(home=home, site=site)).unlink()
    assert ensure_environment(planted(project)) == python
    assert answer(python) == "42"


@pytest.mark.parametrize("version", STUDY_PYTHONS)
def test_the_study_environment_installs_on_every_python(tmp_path: Path, version: str) -> None:
    """The one list serves all three; wheels come from the index or from uv's cache."""
    row = ENVIRONMENTS["study"]
    shutil.copy(ROOT / row.list, tmp_path)
    try:
        python = ensure_environment(Environment("only", "", (version,), row.list, tmp_path))
    except UserError as error:
        out_of_reach(str(error))
    imports = "import matplotlib.pyplot, numpy, psutil, rich, scipy.stats, sys, yaml"
    ask = f"{imports}; print('{{}}.{{}}'.format(*sys.version_info))"
    done = subprocess.run([str(python), "-c", ask], capture_output=True, text=True)
    assert done.stdout.strip() == version, done.stderr


def test_lists_are_exact_and_hashed() -> None:
    for row in ENVIRONMENTS.values():
        entries = re.split(r"\n(?=[a-z])", (ROOT / row.list).read_text())[1:]
        assert len(entries) == len(row.packages), "a package is listed twice, or without a version"
        assert all("--hash=sha256:" in entry for entry in entries)


# --- what is installed is what the list names -----------------------------------------------------


def refused(root: Path) -> str:
    """The one line that refuses the environment, which stays as it is."""
    with pytest.raises(UserError) as caught:
        ensure_environment(planted(root))
    line = str(caught.value)
    assert "\n" not in line
    assert "and the next command builds it anew" in line
    return line


@pytest.mark.parametrize(
    "name",
    [
        "sitecustomize.py",
        "usercustomize.py",
        "extra.pth",
        "foreign.py",
        "foreign/__init__.py",
        "foreign.pyc",
        "planted-2.0.dist-info/METADATA",
    ],
)
def test_a_file_that_no_package_brought_is_refused(project: Path, name: str) -> None:
    python = ensure_environment(planted(project))
    added = next(python.parent.parent.glob("lib/python*/site-packages")) / name
    added.parent.mkdir(exist_ok=True)
    added.write_text("")
    assert str(added) in refused(project)
    added.unlink()
    assert ensure_environment(planted(project)) == python


@pytest.mark.parametrize("same_size", [True, False])
@pytest.mark.parametrize("name", ["{site}/planted.py", "{site}/planted-1.0.dist-info/RECORD"])
def test_an_edited_file_is_refused_until_the_environment_is_removed(
    project: Path, name: str, same_size: bool
) -> None:
    python = ensure_environment(planted(project))
    home = python.parent.parent
    edited = Path(name.format(site=next(home.glob("lib/python*/site-packages"))))
    before = edited.stat()
    text = edited.read_text()
    edited.write_text(text.replace("2", "3") if same_size else f"{text}\n")
    os.utime(edited, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert str(edited) in refused(project)
    shutil.rmtree(home)
    assert answer(ensure_environment(planted(project))) == "42", "uv's cache was not edited"


def test_a_setting_of_the_environment_itself_is_held_too(project: Path) -> None:
    settings = ensure_environment(planted(project)).parent.parent / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("packages = false", "packages = true"))
    assert "pyvenv.cfg: was changed" in refused(project)


def test_a_package_in_a_linked_directory_is_refused(project: Path, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    site = next(ensure_environment(planted(project)).parent.parent.glob("lib/python*/site-*"))
    (site / "foreign").symlink_to(tmp_path / "foreign")
    assert "foreign: belongs to no package" in refused(project)


def test_bytecode_beside_the_sources_is_not_looked_at_and_not_read(project: Path) -> None:
    python = ensure_environment(planted(project))
    site = next(python.parent.parent.glob("lib/python*/site-packages"))
    source = site / "planted.py"
    text, before = source.read_text(), source.stat()
    source.write_text(text.replace("42", "43"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    writes = {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([python, "-c", "import planted"], env=os.environ | writes, check=True)
    source.write_text(text)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert list(site.glob("__pycache__/planted*"))
    ask = [python, "-c", "import planted; print(planted.ANSWER)"]
    trusting = subprocess.run(ask, env=os.environ | writes, capture_output=True, text=True)
    assert trusting.stdout.strip() == "43", "the planted bytecode would be read"
    assert ensure_environment(planted(project)) == python
    done = subprocess.run(
        ask, env=child_environment({}, os.environ), capture_output=True, text=True
    )
    assert done.stdout.strip() == "42"


# --- settings of uv's that belong to the user ----------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [
        'link-mode = "symlink"',
        'exclude-newer = "2001-01-01T00:00:00Z"',
        "no-binary = true",
        'override-dependencies = ["planted==9"]',
        'required-version = "==0.0.1"',
        "[pip]\ntarget = 'elsewhere'",
        "[pip]\nverify-hashes = false\nno-binary = ['planted']",
    ],
)
@pytest.mark.parametrize("place", ["named", "user", "here"])
def test_other_settings_of_uv_reach_no_environment(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, place: str
) -> None:
    index = f'[[index]]\nurl = "{os.environ["UV_DEFAULT_INDEX"]}"\ndefault = true\n'
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    places = {
        "named": tmp_path / "my.toml",
        "user": tmp_path / "home" / "uv" / "uv.toml",
        "here": project / "uv.toml",
    }
    path = places[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    table = setting.startswith("[")
    path.write_text(f"{index}{setting}\n" if table else f"{setting}\n{index}")
    if place == "named":
        monkeypatch.setenv("UV_CONFIG_FILE", str(path))
    python = ensure_environment(planted(project))
    shutil.rmtree(tmp_path / "cache")  # as "uv cache clean" does
    assert answer(python) == "42"
    assert ensure_environment(planted(project)) == python


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("UV_LINK_MODE", "symlink"),
        ("UV_EXCLUDE_NEWER", "2001-01-01T00:00:00Z"),
        ("UV_NO_VERIFY_HASHES", "1"),
        ("UV_SYSTEM_PYTHON", "1"),
        ("UV_WORKING_DIR", "/nonexistent"),
    ],
)
def test_other_variables_of_uv_reach_no_environment(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    python = ensure_environment(planted(project))
    shutil.rmtree(tmp_path / "cache")
    assert answer(python) == "42"


def test_settings_that_are_no_toml_are_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "uv.toml").write_text("[index\n")
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    assert f"{project / 'uv.toml'}: is no TOML" in fails(planted(project))


# --- an end in the midst of a build ------------------------------------------------------------


def children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_uv_ends_with_who_builds(
    project: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        builder = start_build(project)
        silent.settimeout(60)
        silent.accept()  # uv waits for an answer, in the midst of the build
        (uv,) = children(builder.pid)
        builder.send_signal(number)  # to it alone, not to its group
        builder.communicate()
        deadline = time.monotonic() + 30
        while start_of(uv) is not None:
            assert time.monotonic() < deadline, "uv runs on"
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("pip = 1\n", None),
        ("[pip]\nno-index = true\n", ("no-index", True)),
        ("no-index = false\n[pip]\nno-index = true\n", ("no-index", True)),
        ('cache-dir = "/tmp/caf\u00e9 \U0001f600"\n', ("cache-dir", "/tmp/caf\u00e9 \U0001f600")),
    ],
)
def test_settings_of_pip_come_before_those_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, setting: tuple[str, object] | None
) -> None:
    path = tmp_path / "uv.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("UV_CONFIG_FILE", str(path))
    told = uv.found(tmp_path)
    assert told == ([setting] if setting else [])
    for name, value in told:
        assert tomllib.loads(f"{name} = {uv._toml(value)}") == {name: value}


def test_a_project_that_is_no_table_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "none"))
    monkeypatch.delenv("UV_CONFIG_FILE", raising=False)
    (tmp_path / "pyproject.toml").write_text("tool = 1\n")
    assert uv.found(tmp_path) == []

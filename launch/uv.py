"""Running uv with what it needs of the user, an index within reach and a cache, and nothing else.

A setting that suits other work (links into the cache, another resolution, packages built here, an
older state of the index) would give another environment than the one that is listed, or one that
breaks later. So uv gets the settings below from the user's files and variables, and no other.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.command_start import ending_with_parent
from shared.errors import UserError
from shared.variables import command_environment

#: Settings of a uv.toml that count: where packages come from, and how that place is reached.
SETTINGS = (
    *("index", "index-url", "extra-index-url", "no-index", "find-links", "index-strategy"),
    *("keyring-provider", "allow-insecure-host", "native-tls", "system-certs"),
    *("http-proxy", "https-proxy", "no-proxy", "offline"),
    *("cache-dir", "no-cache", "concurrent-downloads", "concurrent-installs"),
)
#: Variables of uv that count, by prefix; of others, such as proxies and HOME, all reach it.
VARIABLES = (
    *("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX", "UV_FIND_LINKS"),
    *("UV_KEYRING_PROVIDER", "UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    *("UV_CREDENTIALS_DIR", "UV_HTTP_", "UV_REQUEST_TIMEOUT", "UV_OFFLINE"),
    *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_CONCURRENT_", "UV_LOCK_TIMEOUT", "UV_PYTHON_INSTALL_DIR"),
)
# An index out of reach shows within seconds; whoever sets these variables knows better.
_NETWORK_DEFAULTS = {"UV_HTTP_RETRIES": "1", "UV_HTTP_CONNECT_TIMEOUT": "5"}
#: Names uv's executable, as uv itself does for what it runs.
UV_VARIABLE = "UV"


def find_uv() -> Path:
    """The uv executable: the one named, the one installed beside nox (``nox[uv]``), one on PATH.

    Raises ``UserError``: there is none; the line says how to install it.
    """
    try:
        import uv

        beside_nox: str | None = uv.find_uv_bin()
    except (ImportError, FileNotFoundError):
        beside_nox = None
    found = os.environ.get(UV_VARIABLE) or beside_nox or shutil.which("uv")
    if found is None:
        raise UserError(
            "uv, which builds the environments, was not found beside nox or on PATH; install it"
            " with: python -m pip install 'nox[uv]'"
        )
    return Path(found)


def run_uv(
    arguments: list[str], extra: Mapping[str, str], log: Path, directory: Path
) -> str | None:
    """Run uv, its output appended to ``log``; None if it succeeded, else what it said.

    ``directory`` is where the search for the user's settings begins. uv ends when this process
    does, however that ends.
    """
    theirs = {name: os.environ[name] for name in os.environ if not _is_other(name)}
    network = {name: told for name, told in _NETWORK_DEFAULTS.items() if name not in theirs}
    own = {**network, **extra, "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as settings:
        settings.write("".join(f"{key} = {_toml(value)}\n" for key, value in found(directory)))
        settings.flush()
        done = subprocess.run(
            [str(find_uv()), *arguments, "--config-file", settings.name],
            env=command_environment(own, theirs),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=ending_with_parent(signal.SIGKILL),
        )
    with log.open("a", encoding="utf-8") as stream:
        stream.write(done.stdout)
    return done.stdout if done.returncode else None


def _is_other(name: str) -> bool:
    """Whether a variable is a setting of uv's, or of a Python, that does not count."""
    other = ("UV_", "VIRTUAL_ENV", "CONDA_")
    return name.startswith(other) and not name.startswith(VARIABLES)


def found(directory: Path) -> list[tuple[str, Any]]:
    """The settings that count, merged as uv merges them: the first file's, lists one after another.

    Raises ``UserError`` for a file that is no TOML.
    """
    merged: dict[str, Any] = {}
    for path in _files(directory):
        told = _read(path)
        for key in SETTINGS:
            value = _absolute(key, _table(told, "pip").get(key, told.get(key)), path.parent)
            if isinstance(value, list) and isinstance(merged.get(key), list):
                merged[key] += value
            elif value is not None:
                merged.setdefault(key, value)
    return list(merged.items())


def _files(directory: Path) -> Iterator[Path]:
    """The files that uv would read, the most important first."""
    if os.environ.get("UV_NO_CONFIG", "").lower() in ("1", "true"):
        return
    if named := os.environ.get("UV_CONFIG_FILE"):
        yield Path(named)
        return
    for folder in (directory, *directory.parents):
        near = [folder / "uv.toml", folder / "pyproject.toml"]
        if chosen := next((path for path in near if path.is_file() and _read(path)), None):
            yield chosen
            break
    home = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    system = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    everyone = [Path(place) / "uv" / "uv.toml" for place in (*filter(None, system), "/etc")]
    for choice in ([home / "uv" / "uv.toml"], everyone):
        yield from [path for path in choice if path.is_file()][:1]


def _read(path: Path) -> dict[str, Any]:
    try:
        told: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); mend it for uv") from None
    except ValueError as error:
        raise UserError(f"{path}: is no TOML ({error}); mend it for uv") from None
    if path.name == "pyproject.toml":
        told = _table(_table(told, "tool"), "uv")
    return dict(told)


def _table(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of a TOML file; empty if there is none of that name."""
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _absolute(key: str, value: Any, folder: Path) -> Any:
    """A setting with its relative places made absolute: they count from the file's directory."""
    if isinstance(value, list):
        return [_absolute(key, item, folder) for item in value]
    if isinstance(value, dict):
        return {name: _absolute(name, item, folder) for name, item in value.items()}
    places = ("find-links", "url", "index-url", "extra-index-url", "cache-dir")
    if key in places and isinstance(value, str) and "://" not in value:
        return str(folder / Path(value).expanduser())
    return value


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_toml(name)} = {_toml(item)}" for name, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # Text, numbers, true and false are spelled alike; of a date uv says that it is none of these.
    return json.dumps(value, ensure_ascii=False, default=str)


def index_of_pip() -> str | None:
    """The index that pip, which may have installed nox, is set up with; uv does not read it.

    None where uv has been told of an index in the environment: that one is meant.
    """
    named = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_NO_INDEX", "UV_OFFLINE")
    if any(os.environ.get(name) for name in named):
        return None
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    )
    for line in listing.stdout.splitlines():
        key, _, value = line.partition("=")
        if key in ("global.index-url", "install.index-url"):
            return value.strip("'")
    return None

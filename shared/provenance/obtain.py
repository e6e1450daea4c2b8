"""Where the reference checkout comes from: the user's own, or one cloned once under ``.work/``."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from shared.errors import UserError
from shared.protocol import REFERENCE_COMMIT, REFERENCE_REMOTE
from shared.provenance.checkout import Checkout, verify_checkout
from shared.provenance.git import fetching_environment
from shared.provenance.roots import REPO
from shared.variables import CHECKOUT_VARIABLE

DEFAULT_CHECKOUT = REPO / ".work" / f"dreamerv3_{REFERENCE_COMMIT[:7]}"

#: A remote that does not answer within this many seconds is given up.
PROBE_SECONDS = 15.0
#: Ways to obtain the checkout without the remote that failed.
_WAYS_OUT = (
    f"pass --reference-checkout DIR or set {CHECKOUT_VARIABLE}=DIR to use a checkout you have, "
    "or --reference-remote URL to clone from elsewhere"
)
#: Settings of every git command that fills the clone: no hooks, no filters that the user has set
#: up for other work, nothing left running in the background, and no endless wait.
_SETTINGS = {
    "core.autocrlf": "false",
    "core.hooksPath": os.devnull,
    "gc.auto": "0",
    "maintenance.auto": "false",
    "credential.interactive": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
}


class _GitFailedError(Exception):
    """A git command of the clone failed; the message is its reason."""


def obtain_checkout(
    option: Path | None = None,
    remote: str = REFERENCE_REMOTE,
    *,
    commit: str = REFERENCE_COMMIT,
    default: Path = DEFAULT_CHECKOUT,
    environment: Mapping[str, str] = os.environ,
) -> Checkout:
    """The verified reference checkout: ``option``, else ``DREAMERV3_REF``, else ``default``.

    Only ``default`` is created: where it is missing, ``commit`` is fetched from ``remote`` into a
    sibling, verified and renamed. Raises ``UserError`` with the ways out where that fails, and
    for a checkout that does not hold exactly ``commit``.
    """
    check_named(option, environment)
    named = named_checkout(option, environment)
    if named is not None:
        return verify_checkout(named, commit)
    if not default.exists():
        _clone(remote, commit, default)
    return verify_checkout(default, commit)


def named_checkout(
    option: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """The checkout that the user names, by option or variable, if any; there or not."""
    variable = environment.get(CHECKOUT_VARIABLE)
    return option or (Path(variable) if variable else None)


def check_named(option: Path | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Raise ``UserError`` where the user names a checkout that is not there."""
    named = named_checkout(option, environment)
    if named is not None and not named.is_dir():
        source = "--reference-checkout" if option else CHECKOUT_VARIABLE
        raise UserError(
            f"{source} {named}: no such directory; clone {REFERENCE_REMOTE} there and check out "
            f"{REFERENCE_COMMIT}, or leave it out to have that done under .work/"
        )


def _clone(remote: str, commit: str, target: Path) -> None:
    """Fetch ``commit`` from ``remote`` into ``target``, which appears only when it is complete."""
    print(f"cloning {_without_credentials(remote)} at {commit[:12]} (once)", flush=True)
    # A path is relative to where the user is, not to the repository that git would run in.
    address = str(Path(remote).resolve()) if Path(remote).exists() else remote
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sibling = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise UserError(
            f"{target.parent}: cannot be written ({error.strerror}), so the reference code cannot "
            f"be cloned there; {_WAYS_OUT}"
        ) from None
    try:
        checkout = sibling / target.name
        checkout.mkdir()
        _fill(checkout, address, commit)
        verify_checkout(checkout, commit)
        _rename(checkout, target)
    except _GitFailedError as error:
        raise UserError(
            f"the reference code (commit {commit[:12]}) could not be cloned from "
            f"{_without_credentials(remote)}: {error}; {_WAYS_OUT}"
        ) from None
    finally:
        shutil.rmtree(sibling, ignore_errors=True)


def _fill(directory: Path, address: str, commit: str) -> None:
    # An address that nobody answers would keep a fetch waiting for minutes: ask it something small.
    _git(directory, "ls-remote", "--", address, "HEAD", seconds=PROBE_SECONDS)
    _git(directory, "init", "--quiet", "--template=", ".")
    _git(directory, "config", "core.autocrlf", "false")
    try:
        _git(directory, "fetch", "--quiet", "--depth", "1", "--", address, commit)
    except _GitFailedError:
        # Some servers hand out branches only.
        _git(directory, "fetch", "--quiet", "--", address, "+refs/heads/*:refs/remotes/origin/*")
    _git(directory, "checkout", "--quiet", "--detach", commit)


def _rename(checkout: Path, target: Path) -> None:
    try:
        checkout.rename(target)
    except OSError:
        # Another process was first; its checkout is verified like any other.
        if not target.is_dir():
            raise


def _git(directory: Path, *arguments: str, seconds: float | None = None) -> None:
    """Run one git command; raises ``_GitFailedError``, also when it takes too long."""
    settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    try:
        process = subprocess.Popen(
            ["git", *settings, *arguments],
            cwd=directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            # A group of its own: git's helpers would outlive it and keep the pipe open.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise UserError("git: command not found; install git") from None
    try:
        _, output = process.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise _GitFailedError(f"no answer within {seconds:.0f} s") from None
        raise
    if process.returncode:
        raise _GitFailedError(_reason(output) or f"git {arguments[0]} failed")


def _environment() -> dict[str, str]:
    """What git needs to reach a server, without questions to the terminal."""
    defaults = {
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=10",
        "GIT_ASKPASS": "true",
    }
    return {**defaults, **fetching_environment(), "GIT_TERMINAL_PROMPT": "0"}


def _reason(output: str) -> str:
    """What git said went wrong, as one line: its first ``fatal`` line, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = next((line for line in lines if line.startswith(("fatal:", "error:"))), None)
    chosen = fatal or (lines[-1] if lines else "")
    return chosen.removeprefix("fatal:").removeprefix("error:").strip()


def _without_credentials(remote: str) -> str:
    parts = urlsplit(remote)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

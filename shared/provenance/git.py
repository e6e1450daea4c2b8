"""How git is asked: about the directory that is named, whatever the user's shell and settings say.

A hook of git, and who has set GIT_DIR, points every git command at another repository; a user's
settings can hide files from ``git status`` or change what ``git diff`` prints. So a command that
looks at a checkout sees neither, and one that fetches sees what a connection needs.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.errors import UserError

#: Variables of git that a command inherits, by prefix: how servers are reached, where settings lie,
#: and where the search for a repository ends. All others name a repository, or change an answer.
_INHERITED = (
    *("GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_", "GIT_ASKPASS", "GIT_ALLOW_PROTOCOL"),
    *("GIT_TERMINAL_PROMPT", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"),
)
#: The user's settings that a look at a checkout respects: whether it may be looked at, and how its
#: files were written.
_RESPECTED = r"^(safe\.directory|core\.autocrlf|core\.eol)$"
#: Settings that a look at a checkout is given, before those of the checkout itself.
_FIXED = {
    # Neither programs of the user's, nor ways to hide a change.
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "status.showUntrackedFiles": "normal",
    "diff.ignoreSubmodules": "none",
    # A recorded digest of a diff is over what git prints as it comes.
    "color.ui": "false",
    "color.diff": "false",
    "core.abbrev": "auto",
    "core.quotePath": "true",
    "diff.algorithm": "default",
    "diff.context": "3",
    "diff.interHunkContext": "0",
    "diff.mnemonicPrefix": "false",
    "diff.noprefix": "false",
    "diff.relative": "false",
    "diff.renames": "true",
    "diff.submodule": "short",
    "diff.suppressBlankEmpty": "false",
}


def fetching_environment() -> dict[str, str]:
    """Variables of a git command that fetches: the user's, without another repository."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_INHERITED)
    }
    # In English: reasons of failures are looked for.
    return {**kept, "LC_ALL": "C"}


def look(arguments: Sequence[str], *, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run a git command that only reads; ``arguments`` say where (``-C DIR``, ``--git-dir=DIR``).

    Raises :class:`UserError` where there is no git.
    """
    theirs = fetching_environment()
    settings = [*_FIXED.items(), *_respected(theirs)]
    command = ["git", "--no-pager"]
    command += [word for name, value in settings for word in ("-c", f"{name}={value}")]
    kept = {name: value for name, value in theirs.items() if not name.startswith("GIT_CONFIG_")}
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        # Replaced objects would stand in for committed ones.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        # Looking at a checkout must not write its index.
        "GIT_OPTIONAL_LOCKS": "0",
    }
    return _run([*command, *arguments], kept | own, stdin)


def _respected(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """The user's own values of the settings that count, in the order that git reads them."""
    command = ["git", "--git-dir", os.devnull, "config", "--null", "--get-regexp", _RESPECTED]
    found = _run(command, environment).stdout.decode(errors="surrogateescape")
    pairs = [entry.partition("\n") for entry in found.split("\0") if entry]
    return [(name, value) for name, _, value in pairs]


def _run(
    command: Sequence[str], environment: Mapping[str, str], stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(
            command, input=stdin, capture_output=True, check=False, env=dict(environment)
        )
    except FileNotFoundError:
        raise UserError("git: command not found; install git") from None


def git(directory: Path, *arguments: str) -> str:
    """Output of one git command that looks at ``directory``.

    Raises :class:`NoCheckoutError` where that is no checkout, :class:`UserError` for any other
    failure.
    """
    return git_bytes(directory, *arguments).decode(errors="surrogateescape")


def git_bytes(directory: Path, *arguments: str) -> bytes:
    """As :func:`git`, as it was printed."""
    done = look(["-C", str(directory), *arguments])
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise _failure(directory, arguments[0], said, done.returncode)
    return done.stdout


class NoCheckoutError(UserError):
    """Git was asked about a directory that is in no git checkout."""


def _failure(directory: Path, command: str, said: str, code: int) -> UserError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("fatal: ")]
    reason = [*fatal, *lines[-1:], f"exit status {code}"][0]
    words = f"{directory}: git {command} failed ({reason}); "
    if "not a git repository" in reason:
        return NoCheckoutError(f"{words}use a git checkout")
    # As for a checkout of another user, git says itself what to do.
    advice = [line for line in lines if line.startswith("git config ")]
    remedy = f"see that git -C {directory} status works"
    return UserError(words + [*(f"run {line}" for line in advice), remedy][0])

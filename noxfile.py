"""Sessions of the project: nox -l lists them, nox -s NAME -- --help explains one.

The sessions env-NAME make the pinned environments, each from its hashed list; every other session
makes sure of one of them in the same way and runs one command in it.
"""

import argparse
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # nox may have been started from anywhere

from launch.environments import ENVIRONMENTS, ensure  # noqa: E402
from launch.uv import UV_VARIABLE, find_uv  # noqa: E402
from shared.command_start import SESSION_VARIABLE  # noqa: E402
from shared.errors import UserError  # noqa: E402
from shared.variables import command_environment  # noqa: E402

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "none"  # the environments are pinned lists, not nox's own
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["reproduce"]

#: The Python of an environment, which is made and verified once for all sessions.
made = cache(ensure)


def run(session: nox.Session, environment: str, *command: str, **options: Any) -> None:
    """Run ``python COMMAND`` in an environment, from the repository's root.

    A failing command fails the session, and so does an environment that cannot be built: with
    one line that says what to do.
    """
    try:
        python, uv = made(environment), find_uv()
    except UserError as error:
        session.error(str(error))
    own = {SESSION_VARIABLE: session.name, UV_VARIABLE: str(uv)}
    session.run(
        str(python),
        *command,
        env=command_environment(own, os.environ),
        include_outer_env=False,
        external=True,
        **options,
    )


@nox.session(tags=["study"])
def reproduce(session: nox.Session) -> None:
    """Recompute all four rounds and compare them with the committed tables (about 5 s)."""
    run(session, "study", "-m", "analysis.reproduce", *session.posargs)


@nox.session(tags=["study"])
def compare(session: nox.Session) -> None:
    """Compare the two sides of a run: -- --round 3 --root DIR."""
    run(session, "study", "-m", "analysis.compare", *session.posargs)


def run_round(session: nox.Session, *options: str) -> None:
    """Run ``launch.round``, which builds the sides' environments itself."""
    run_here(session, "launch.round", *options)


def run_here(session: nox.Session, module: str, *options: str) -> None:
    """Run a command of ``launch``.

    It stops its processes and notes how they ended before it goes: nox must not hurry it.
    """
    command = ("-m", module, *options, *session.posargs)
    run(session, "study", *command, interrupt_timeout=None, terminate_timeout=None)


@nox.session(tags=["sides"])
def port_check(session: nox.Session) -> None:
    """Compare the reference side's CartPole port with gymnax, step by step (10 s)."""
    run(session, "ajax", "-m", "ajax_side.port_check", *session.posargs)


@nox.session(tags=["sides"])
def diagnose(session: nox.Session) -> None:
    """Find where the sides part, on their real code: -- PART... (about 20 minutes for all)."""
    run(session, "study", "-m", "diagnose.run", *session.posargs)


@nox.session(tags=["sides"])
def smoke(session: nox.Session) -> None:
    """Run both sides at tiny widths, compare and check them: -- --round N (4 to 7 minutes)."""
    default = (
        [] if any(each.startswith("--round") for each in session.posargs) else ["--round", "1"]
    )
    run_round(session, "--smoke", *default)


@nox.session(name="round-1", tags=["rounds"])
def round_1(session: nox.Session) -> None:
    """Run round 1, both sides as they are (hours); -- --dry-run shows the plan."""
    run_round(session, "--round", "1")


@nox.session(name="round-2", tags=["rounds"])
def round_2(session: nox.Session) -> None:
    """Run round 2, the expectations exchanged, and its pairs with round 1 (hours)."""
    run_round(session, "--round", "2")


@nox.session(name="round-3", tags=["rounds"])
def round_3(session: nox.Session) -> None:
    """Run round 3, five seeds, evaluated every 400 rows (hours)."""
    run_round(session, "--round", "3")


@nox.session(name="round-4", tags=["rounds"])
def round_4(session: nox.Session) -> None:
    """Run round 4, short, both forms of the expectation one after the other (about 3 hours)."""
    run_round(session, "--round", "4")


@nox.session(name="round-5", tags=["rounds"])
def round_5(session: nox.Session) -> None:
    """Run what is left of round 5's eight blocks (2 hours each): -- --root DIR --parts 1."""
    run_round(session, "--round", "5")


@nox.session(tags=["rounds"])
def status(session: nox.Session) -> None:
    """Show how a round stands, from its files alone: -- --root DIR, --watch to follow it."""
    run_here(session, "launch.status")


@nox.session(tags=["rounds"])
def bench(session: nox.Session) -> None:
    """Measure this machine, for the estimates of --dry-run and three limits (11 minutes)."""
    run_here(session, "launch.bench")


@nox.session(tags=["check"])
def clean(session: nox.Session) -> None:
    """Show what .work/ holds; -- --remove NAME... removes what is named."""
    run_here(session, "launch.clean")


#: Tests run in a process a core; more than four cost more to start than they save.
SIDE_BY_SIDE = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadgroup")


@nox.session(tags=["check"])
def tests(session: nox.Session) -> None:
    """Run the tests but those of tests-sides, on all cores; what follows -- goes to pytest."""
    run(session, "dev", "-m", "pytest", *SIDE_BY_SIDE, "-m", "not sides", *session.posargs)


@nox.session(name="tests-sides", tags=["check"])
def tests_sides(session: nox.Session) -> None:
    """Run the tests that train or compile a real side; what follows -- goes to pytest."""
    run(session, "dev", "-m", "pytest", *SIDE_BY_SIDE, "-m", "sides", *session.posargs)


@nox.session(tags=["check"])
def lint(session: nox.Session) -> None:
    """Check format and style (ruff), types (mypy) and imports between packages."""
    parser = argparse.ArgumentParser(prog="nox -s lint --", description=lint.__doc__)
    parser.add_argument("--fix", action="store_true", help="first repair what ruff can repair")
    if parser.parse_args(session.posargs).fix:
        run(session, "dev", "-m", "ruff", "format")
        run(session, "dev", "-m", "ruff", "check", "--fix-only")
    packages = sorted(init.parent.name for init in ROOT.glob("[a-z]*/__init__.py"))
    checks = {
        "format": ("-m", "ruff", "format", "--check"),
        "style": ("-m", "ruff", "check"),
        "types": ("-m", "mypy", *(name for name in packages if name != "tests"), "noxfile.py"),
        "imports": ("-c", "from importlinter.cli import lint_imports_command as go; go()"),
    }
    failed = []
    for name, command in checks.items():
        try:
            run(session, "dev", *command)
        except CommandFailed:
            failed.append(name)
    if failed:
        session.error(f"not clean: {', '.join(failed)}; the lines above say where")


def environment_session(name: str) -> None:
    """Add the session that makes the environment ``name``."""

    def make(session: nox.Session) -> None:
        run(session, name, "--version")

    make.__doc__ = f"Make the environment of: {ENVIRONMENTS[name].summary}."
    nox.session(name=f"env-{name}", tags=["environments"])(make)


for each in ENVIRONMENTS:
    environment_session(each)

"""What a user can ask of ``python -m launch.round``, and how it is recorded."""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from launch.progress import LINE_EVERY_S
from shared.command_start import SESSION_VARIABLE
from shared.errors import UserError
from shared.protocol import (
    FIRST_UPDATE_ROW,
    LARGEST_SEED,
    N_ENVS,
    REFERENCE_REMOTE,
    ROUNDS,
    SERIES,
    SIDES,
    Round,
    updates,
)
from shared.provenance.obtain import DEFAULT_CHECKOUT
from shared.provenance.roots import ELSEWHERE, REPO, Roots
from shared.variables import AJAX_VARIABLE, CHECKOUT_VARIABLE, XLA_FLAGS_VARIABLE

#: Which option each session of the noxfile gives itself.
GIVEN = {"smoke": "--smoke", **{f"round-{each.number}": "--round" for each in ROUNDS.values()}}


@dataclass(frozen=True)
class Options:
    """The command's options, each named and defaulting as on the command line."""

    round: str
    smoke: bool = False
    side: str | None = None
    seeds: list[int] | None = None
    rows: int | None = None
    every: int | None = None
    episodes: int | None = None
    jobs: int | None = None
    parts: int | None = None
    out: Path | None = None
    against: Path | None = None
    reference_checkout: Path | None = None
    reference_remote: str = REFERENCE_REMOTE
    reference_python: Path | None = None
    ajax_root: Path | None = None
    ajax_python: Path | None = None
    lines_every: float = LINE_EVERY_S
    plain: bool = False
    detach: bool = False
    no_compare: bool = False
    no_compile_cache: bool = False
    no_callbacks: bool = False
    dry_run: bool = False


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line (default: the process's own). Argparse exits 2 on a bad one."""
    return Options(**vars(_parser().parse_args(arguments)))


def series(options: Options) -> list[Options]:
    """The options of each round that is run; of a series each in a directory of its own."""
    if options.round not in SERIES:
        return [options]
    return [
        replace(
            options,
            round=name,
            out=None if options.out is None else options.out / ROUNDS[name].part,
        )
        for name in SERIES[options.round]
    ]


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chosen_round(options: Options) -> Round:
    """The round that the options ask for. Raises ``UserError`` for sizes that cannot be run."""
    published = ROUNDS[options.round]
    chosen = published.smoke() if options.smoke else published
    given = {name: getattr(options, name) for name in ("rows", "every", "episodes")}
    chosen = replace(chosen, **{name: value for name, value in given.items() if value is not None})
    if options.seeds is not None:
        chosen = replace(chosen, seeds=tuple(options.seeds))
    if options.no_callbacks and not options.smoke:
        raise UserError("--no-callbacks: only a smoke does without them; leave it out")
    _check_sizes(chosen)
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: give a positive number")
    if options.parts is not None and options.parts < 1:
        raise UserError(f"--parts {options.parts}: give a positive number")
    if not options.lines_every > 0:  # nor is nan
        raise UserError(f"--lines-every {options.lines_every:g}: give a positive number of seconds")
    return chosen


def _check_sizes(chosen: Round) -> None:
    in_range = all(0 <= seed <= LARGEST_SEED for seed in chosen.seeds)
    if len(set(chosen.seeds)) != len(chosen.seeds) or not in_range:
        raise UserError(
            f"--seeds {shlex.join(map(str, chosen.seeds))}: give different seeds from 0 to "
            f"{LARGEST_SEED}"
        )
    if chosen.episodes < 1:
        raise UserError(f"--episodes {chosen.episodes}: give a positive number")
    if chosen.every < 1 or chosen.every % N_ENVS:
        raise UserError(f"--every {chosen.every}: give a positive multiple of {N_ENVS}")
    if chosen.rows < 1 or chosen.rows % chosen.every:
        raise UserError(
            f"--rows {chosen.rows}: give a positive multiple of the {chosen.every} rows between "
            "evaluations (--every), so that the run ends at one"
        )
    if not updates(chosen.rows):
        raise UserError(
            f"--rows {chosen.rows}: nothing is trained before row {FIRST_UPDATE_ROW}; give at "
            "least as many"
        )


def command_line(options: Options, roots: Roots) -> str:
    """The command as it is recorded: what was given, with locations under named roots."""
    words = ["python", "-m", "launch.round"]
    for field in fields(options):
        value = getattr(options, field.name)
        if value == field.default:
            continue
        words.append("--" + field.name.replace("_", "-"))
        if field.name == "reference_remote":
            words.append(f"{ELSEWHERE}/{Path(value).name}")  # may name a host or a user's path
        elif isinstance(value, Path):
            words.append(roots.record(value))
        elif value is not True:
            words += map(str, value) if isinstance(value, list) else [str(value)]
    return " ".join(words)


def ajax_source(options: Options, environment: Mapping[str, str]) -> Path | None:
    """The ``src`` directory that AJAX_SRC names; ``None`` where an option or the release counts.

    Raises ``UserError`` where the directory named by either holds no Ajax.
    """
    named = environment.get(AJAX_VARIABLE)
    source = Path(named) if named and options.ajax_root is None else None
    looked_at = options.ajax_root / "src" if options.ajax_root is not None else source
    if looked_at is not None and not (looked_at / "ajax" / "__init__.py").is_file():
        origin = f"{AJAX_VARIABLE} {source}" if source else f"--ajax-root {options.ajax_root}"
        raise UserError(f"{origin}: no ajax package in {looked_at}; name a checkout of Ajax")
    return source.resolve() if source else None


def _parser() -> argparse.ArgumentParser:
    session = os.environ.get(SESSION_VARIABLE)
    parser = argparse.ArgumentParser(
        prog=f"nox -s {session} --" if session else "python -m launch.round",
        description="Run one round: the reference, a process per seed, and Ajax, one process for "
        "all seeds; then compare the two, and scan what is kept for paths and host names. Started "
        "again, run only what did not finish. Ctrl-C stops every process, a second one at once.",
        epilog="Exit status: 0 every process, check and the scan are fine; 1 one is not; 2 nothing "
        "was started; 128 + signal when stopped. Environment: "
        f"{' and '.join(XLA_FLAGS_VARIABLE.values())} become the sides' XLA_FLAGS, "
        f"{CHECKOUT_VARIABLE} is --reference-checkout, {AJAX_VARIABLE} the src of --ajax-root.",
        argument_default=argparse.SUPPRESS,
    )
    _add_what(parser.add_argument_group("what is run"), session)
    _add_where(parser.add_argument_group("where its parts are"))
    _add_how(parser.add_argument_group("how"), session)
    return parser


def _add_what(group: "argparse._ArgumentGroup", session: str | None) -> None:
    asked = {name: each.question for name, each in ROUNDS.items() if not each.whole}
    questions = "; ".join(f"{name}: {question}" for name, question in asked.items())
    several = "".join(f"; {name}: {_in_words(parts)}" for name, parts in SERIES.items())
    default = "default 1; " if session == "smoke" else ""
    texts = {
        "--round": f"{default}{questions}{several}",
        "--smoke": "minutes instead of hours: tiny widths",
    }
    if session in GIVEN:
        texts[GIVEN[session]] = argparse.SUPPRESS
    # A session that does not name its round in its own name has a default for it.
    required = session is None
    rounds = [*ROUNDS, *SERIES]
    group.add_argument(
        "--round", choices=rounds, required=required, help=texts["--round"], action=_Once
    )
    group.add_argument("--smoke", action="store_true", help=texts["--smoke"])
    group.add_argument(
        "--side",
        choices=SIDES,
        help="run one side only, into a directory that may hold the other (two machines can "
        "share a round: copy the directories together, and join their launch_info.txt)",
    )
    for name, text in {
        "--rows": "rows of all environments together",
        "--every": "rows between evaluations",
        "--episodes": "episodes of an evaluation",
    }.items():
        group.add_argument(name, type=int, metavar="N", help=f"{text}, instead of the round's")
    group.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        metavar="S",
        help="instead of the round's; Ajax is vmapped over them, so other seeds depart from the "
        "protocol",
    )


def _in_words(parts: Sequence[str]) -> str:
    first = ROUNDS[parts[0]]
    return f"{first.question} ({parts[0]} to {parts[-1]})" if first.whole else " and ".join(parts)


def _add_where(group: "argparse._ArgumentGroup") -> None:
    def add(name: str, metavar: str, text: str, *more: str) -> None:
        kind = str if metavar == "URL" else _absolute
        group.add_argument(name, *more, type=kind, metavar=metavar, help=text)

    default = ".work/round<N>, or .work/smoke-round<N> for a smoke"
    add("--out", "DIR", f"output (default: {default})", "--root")
    add("--against", "DIR", "round 1's directory, for round 2's pairs (default: .work/round1)")
    checkout = DEFAULT_CHECKOUT.relative_to(REPO)
    add("--reference-checkout", "DIR", f"the reference (default: {checkout}, cloned once)")
    add("--reference-remote", "URL", f"where it is cloned from (default: {REFERENCE_REMOTE})")
    add("--reference-python", "FILE", "the reference environment's Python (default: built)")
    add("--ajax-root", "DIR", "run this checkout's src instead of the pinned release")
    add("--ajax-python", "FILE", "the Ajax environment's Python (default: built)")


def _add_how(group: "argparse._ArgumentGroup", session: str | None) -> None:
    first = "".join(
        f" (for all parts of round {name} in <out>/{ROUNDS[parts[0]].part}/launch.log)"
        for name, parts in SERIES.items()
    )
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help=f"processes at a time (default: the usable cores, {usable_cores()} here)",
    )
    group.add_argument(
        "--parts", type=int, metavar="N", help="run at most N of a round's parts, then stop"
    )
    group.add_argument(
        "--lines-every",
        type=float,
        metavar="S",
        help=f"seconds between plain lines about a process (default: {LINE_EVERY_S:.0f})",
    )
    group.add_argument("--plain", action="store_true", help="lines instead of the live board")
    group.add_argument(
        "--detach",
        action="store_true",
        help="go on in the background, output in <out>/launch.log"
        f"{first}; watch with nox -s status -- --root <out>",
    )
    group.add_argument("--no-compare", action="store_true", help="leave the comparison out")
    group.add_argument(
        "--no-compile-cache",
        action="store_true",
        help="compile every program anew; otherwise .work/cache/jax keeps them",
    )
    group.add_argument(
        "--no-callbacks",
        action="store_true",
        help="for a smoke: Ajax records when its training has ended, not through its callbacks as "
        "in a full round. The compilation cache then keeps its program, which saves a second smoke "
        "about half a minute"
        if session in (None, "smoke")
        else argparse.SUPPRESS,
    )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="print the plan and stop; exit status 2 if it could not start as things are "
        "(whether index and remote are in reach is not tried)",
    )


class _Once(argparse.Action):
    """An option that is not given twice: which one is meant would be a guess."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        if hasattr(namespace, self.dest):
            option = self.option_strings[0]
            name, there = parser.prog.removesuffix(" --"), getattr(namespace, self.dest)
            raise UserError(
                f"{option} {values}: {name} has {option} {there} already; name one "
                "(nox -l lists the session of each)"
            )
        setattr(namespace, self.dest, values)


def _absolute(text: str) -> Path:
    # Not resolve(): a virtual environment's Python is a link to the one it was made from.
    return Path(text).expanduser().absolute()

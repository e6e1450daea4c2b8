"""``python -m diagnose.run``: the investigation of a difference, rerun on the real code."""

import argparse
import hashlib
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from diagnose import encoder, expectation, matched
from diagnose.findings import Finding
from diagnose.recording import Wanted, obtain
from diagnose.sides import Sides, find_pythons
from shared.errors import EXIT_NO, UserError, end_at_sigterm, run_command
from shared.probes.matched_case import LOGITS_AT
from shared.protocol import REFERENCE_REMOTE
from shared.provenance.obtain import obtain_checkout
from shared.provenance.roots import REPO
from shared.records.arrays import Arrays
from shared.variables import CHECKOUT_VARIABLE

#: Below the repository; a directory for each part.
DEFAULT_OUT = Path(".work") / "diagnose"
LONGEST_STEM = 100


@dataclass(frozen=True)
class Part:
    """One instrument; ``run`` is given the sides and the command's options.

    ``asked``: the options that change what is found. Those that are not as by default are part of
    its files' names, so that no other question's answer is replaced.
    """

    summary: str
    run: Callable[[Sides, argparse.Namespace], Finding]
    asked: tuple[str, ...]


#: Name -> part, in the order in which an investigation goes.
PARTS = {
    "expectation": Part(
        "both forms of the two-hot expectation against float64, on both sides (about a minute;\n"
        f"{'':15}two more the first time, to record the reference's first updates)",
        lambda sides, options: expectation.run(sides, _captured(sides, options)),
        ("tiny", "recorded_seed", "ajax_root"),
    ),
    "encoder": Part(
        "initial encoders of many seeds; the reference's parameters in Ajax (about a minute)",
        lambda sides, options: encoder.run(sides, options.seeds, tiny=options.tiny),
        ("tiny", "seeds", "ajax_root"),
    ),
    "matched": Part(
        "both sides' training on equal batches and noise, update by update (about 20 minutes)",
        lambda sides, options: matched.run(sides, _matched(options), options.out / matched.PART),
        ("tiny", "recorded_seed", "updates", "ajax_root", "change"),
    ),
}


def _matched(options: argparse.Namespace) -> matched.Options:
    return matched.Options(
        updates=options.updates,
        tiny=options.tiny,
        seed=options.recorded_seed,
        batches=options.batches,
        changes=matched.parse_changes(options.change),
    )


def _captured(sides: Sides, options: argparse.Namespace) -> Arrays:
    """Logits of the reference's own first updates; recorded once, for ``matched`` too."""
    more = options.updates if matched.PART in (options.parts or PARTS) else 0
    wanted = Wanted(options.recorded_seed, options.tiny, max(LOGITS_AT[-1] + 1, more))
    return obtain(sides, wanted, options.out / matched.PART, options.batches).logits


def main() -> int:
    """Run the command; the exit status."""
    options = parse()
    check(options)
    pythons = find_pythons({"reference": options.reference_python, "ajax": options.ajax_python})
    # Obtained here, so that a clone is made once and said.
    checkout = obtain_checkout(options.reference_checkout, options.reference_remote)
    own = ("--ajax-root", str(options.ajax_root.resolve())) if options.ajax_root else ()
    sides = Sides(pythons, {"reference": ("--checkout", str(checkout.root)), "ajax": own})
    verdicts = []
    for name in options.parts or PARTS:
        began = monotonic()
        finding = PARTS[name].run(sides, options)
        # First of all: whoever reads what is printed may have gone.
        written = finding.write(options.out / name, stem(name, options))
        for claim in finding.claims:
            print(f"  {'yes' if claim.holds else 'NO '}  {claim.text}: {claim.measured}")
        print(f"{name}: {monotonic() - began:.0f} s; " + ", ".join(map(_shown, written)))
        print(f"{name}: {finding.verdict}", flush=True)
        verdicts.append(finding.holds)
    return 0 if all(verdicts) else EXIT_NO


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parts = "\n".join(f"  {name:12} {part.summary}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="nox -s diagnose --",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Rerun the investigation behind round 2 on the real code of both sides. Each "
        f"part\nasks both environments and ends in a verdict; without names, all run:\n\n{parts}",
        epilog="A part writes its table, JSON and figure to OUT/<part>/; the options that were\n"
        "given name the files, which replace those of an earlier run with the same options.\n"
        "Exit status 1: a claim was refuted.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="all, if none is named")
    parser.add_argument(
        "--seeds",
        type=int,
        default=400,
        metavar="N",
        help=f"encoder: seeds a side, at least {encoder.FEWEST_SEEDS} (400)",
    )
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="tiny widths of encoder and of the recording, to try it out",
    )
    add_matched(parser)
    parser.add_argument(
        "--out", type=Path, default=REPO / DEFAULT_OUT, help=f"default: {DEFAULT_OUT}"
    )
    parser.add_argument(
        "--reference-python",
        type=Path,
        metavar="PYTHON",
        help="default: the pinned environment, built if need be",
    )
    parser.add_argument(
        "--ajax-python", type=Path, metavar="PYTHON", help="the same for the other side"
    )
    parser.add_argument(
        "--reference-checkout",
        type=Path,
        metavar="DIR",
        help=f"default: ${CHECKOUT_VARIABLE}, else cloned once into .work/",
    )
    parser.add_argument(
        "--reference-remote",
        default=REFERENCE_REMOTE,
        metavar="URL",
        help=f"where that clone comes from (default: {REFERENCE_REMOTE})",
    )
    parser.add_argument(
        "--ajax-root", type=Path, metavar="DIR", help="ask DIR/src of an Ajax checkout"
    )
    return parser.parse_args(given)


def add_matched(parser: argparse.ArgumentParser) -> None:
    """The options of part ``matched``."""
    parser.add_argument(
        "--updates",
        type=int,
        default=matched.UPDATES,
        metavar="N",
        help=f"matched: updates of every run ({matched.UPDATES}; 1500 for the entropy)",
    )
    parser.add_argument(
        "--change",
        action="append",
        default=[],
        metavar="SIDE.KEY=VALUE",
        help="matched: change a setting of one side, such as ajax.rep_scale=0.2 or "
        "reference.opt.agc=0.1, and see where that shows first; may be repeated",
    )
    parser.add_argument(
        "--batches",
        type=Path,
        metavar="FILE",
        help="expectation, matched: recording of a reference run, made there if it does not exist "
        "(default: one in OUT/matched/ that fits)",
    )
    parser.add_argument(
        "--recorded-seed",
        type=int,
        default=0,
        metavar="S",
        help="expectation, matched: seed of the run that is recorded (0)",
    )


def stem(name: str, options: argparse.Namespace) -> str:
    """What the files of a part are called: ``matched``, ``matched-tiny-ajax.lam=0.9``."""
    default = parse([])
    words = [name]
    for option in PARTS[name].asked:
        value = getattr(options, option)
        if value == getattr(default, option):
            continue
        if option == "change":
            words += value
        else:
            words.append(option if value is True else f"{option}={_in_a_name(value)}")
    found = re.sub(r"[^\w.=+-]+", "_", "-".join(words))
    digest = hashlib.sha256(found.encode()).hexdigest()[:10]
    return found if len(found) <= LONGEST_STEM else f"{found[:LONGEST_STEM]}-{digest}"


def _in_a_name(value: object) -> str:
    if not isinstance(value, Path):
        return str(value)
    place = value.resolve()
    return f"{place.name}-{hashlib.sha256(bytes(place)).hexdigest()[:6]}"


def check(options: argparse.Namespace) -> None:
    """Raise ``UserError`` for input that a part would stumble over minutes later."""
    for name in options.parts:
        if name not in PARTS:
            raise UserError(f"no part is called {name!r}; choose from {', '.join(PARTS)}")
    check_belong(options)
    encoder.check_seeds(options.seeds, tiny=options.tiny)
    matched.check(_matched(options))
    if options.out.exists() and not options.out.is_dir():
        raise UserError(f"--out {options.out}: is no directory; name another")
    places = {options.out / name: "--out" for name in options.parts or PARTS}
    recorded = {*(options.parts or PARTS)} != {encoder.PART}
    if recorded and options.batches is None:
        places[options.out / matched.PART] = "--out"
    elif recorded and not options.batches.exists():
        places[options.batches.parent] = "--batches"
    for place, option in places.items():
        check_writable(place, option)


def check_belong(options: argparse.Namespace) -> None:
    """Raise ``UserError`` for an option that none of the parts named looks at."""
    default, chosen = parse([]), options.parts or list(PARTS)
    for option in dict.fromkeys(each for part in PARTS.values() for each in part.asked):
        takers = [name for name, part in PARTS.items() if option in part.asked]
        given = getattr(options, option) != getattr(default, option)
        if given and not {*takers} & {*chosen}:
            flag = f"--{option.replace('_', '-')}"
            raise UserError(
                f"{flag} is for {' and '.join(takers)}; name that part too, or leave the option out"
            )


def check_writable(directory: Path, option: str) -> None:
    """Make ``directory``. Raises ``UserError`` where a file could not be left there in the end."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UserError(
            f"{option}: {directory} cannot be written ({error.strerror}); name another"
        ) from None


def _shown(path: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(REPO) if resolved.is_relative_to(REPO) else path)


if __name__ == "__main__":
    # A session that is ended stops the probes that it has started.
    end_at_sigterm()
    run_command(main)

"""Part ``matched``: both sides from the same parameters, on the same batches, with the same noise.

Update by update every loss, gradient norm and actor-critic metric of both sides' own training
step; the first update at which each departs. No environment and no replay: batches and parameters
are those of a recorded reference run. The noise of every sample is given to both sides, so that a
side needs one run, not a distribution of them. With one setting of a side changed it names the
metric that shows it first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diagnose.departures import Compared, Control, Departure, compare_all, departures
from diagnose.findings import Claim, Finding, number
from diagnose.form_claims import CELLS, EXACT, PAIRS, Partings, Runs, form_claims, label
from diagnose.matched_figure import draw
from diagnose.matched_tables import levels_table, metrics_table, nearest_table, pairs_table
from diagnose.published_levels import level_claims
from diagnose.recording import Recording, Wanted, obtain
from diagnose.sides import Answer, Sides
from shared.errors import UserError
from shared.probes.matched_case import Case, Run, of_text
from shared.protocol import LARGEST_SEED, SIDES, Side
from shared.records.arrays import Arrays, above, below

PART, UPDATES = "matched", 200
#: Seed of the noise that both sides are given.
NOISE_SEED = 0

_CONTROL = Run("control", "exact", shaken=True)
#: Runs of each side, in turn. The control is the faster side's.
_RUNS: dict[Side, tuple[Run, ...]] = {
    "reference": (Run("exact", "exact"), Run("literal", "literal")),
    "ajax": (Run("exact", "exact"), _CONTROL, Run("literal", "literal")),
}


@dataclass(frozen=True)
class Options:
    """What is asked of the part. ``changes``: side -> key of its configuration -> new value."""

    updates: int = UPDATES
    tiny: bool = False
    seed: int = 0
    batches: Path | None = None
    changes: Mapping[Side, Mapping[str, str]] = field(default_factory=dict)


def parse_changes(given: Sequence[str]) -> dict[Side, dict[str, str]]:
    """``SIDE.KEY=VALUE`` of each. Raises ``UserError`` for one that is not of this form."""
    changes: dict[Side, dict[str, str]] = {}
    for text in given:
        path, equals, value = text.partition("=")
        name, _, key = path.partition(".")
        side = next((each for each in SIDES if each == name), None)
        if side is None or not key or not equals or not value:
            raise UserError(
                f"--change {text}: give SIDE.KEY=VALUE, such as ajax.lam=0.9 or reference.opt.agc=0"
            )
        if key in changes.setdefault(side, {}):
            raise UserError(f"--change {text}: {side}.{key} is changed twice; change it once")
        changes[side][key] = value
    return changes


def check(options: Options) -> None:
    """Raise ``UserError`` for sizes that nothing can be measured with."""
    if options.updates < 1:
        raise UserError(f"--updates {options.updates}: give a positive number")
    if not 0 <= options.seed <= LARGEST_SEED:
        raise UserError(f"--recorded-seed {options.seed}: give a number from 0 to {LARGEST_SEED}")
    if options.batches is not None and options.batches.suffix != ".npz":
        raise UserError(f"--batches {options.batches}: give a file that ends in .npz")


def run(sides: Sides, options: Options, directory: Path) -> Finding:
    """Record where need be, train both sides, and say where they part.

    Recordings are kept in ``directory``. The data go: a recording (:mod:`diagnose.recording`) ->
    a case for each side (:mod:`shared.probes.matched_case`) -> both sides' probes, each in its own
    environment (:mod:`diagnose.sides`, ``<side>/probe_matched.py``) -> series of every metric ->
    departures (:mod:`diagnose.departures`) -> claims (:mod:`diagnose.form_claims`).
    """
    settings = _check_changes(sides, options)
    wanted = Wanted(options.seed, options.tiny, options.updates)
    recording = obtain(sides, wanted, directory, options.batches)
    chosen = {
        side: [each for each in _RUNS[side] if not options.changes or each.form == "exact"]
        for side in SIDES
    }
    cases = {side: _case(side, options, recording, chosen[side]) for side in SIDES}
    given = {side: case.arrays() for side, case in cases.items()}
    answers = sides.ask_both(PART, given, cached=True)
    return judge(answers, options, settings, recording.path.name)


def _case(side: Side, options: Options, recording: Recording, runs: Sequence[Run]) -> Case:
    return Case(
        tiny=options.tiny,
        updates=options.updates,
        noise_seed=NOISE_SEED,
        runs=runs,
        changes=options.changes.get(side, {}),
        parameters=recording.parameters,
        batches=recording.batches,
    )


def _check_changes(sides: Sides, options: Options) -> list[str]:
    """Each change as ``side.key: before -> after``. Raises ``UserError`` before minutes are spent.

    The sides themselves check them, against their real configurations.
    """
    settings = []
    for side, changes in options.changes.items():
        case = _case(side, options, Recording(Path(), {}, {}), [])
        before = of_text(sides.ask(side, PART, case.arrays()).arrays["before"])
        settings += [f"{side}.{key}: {before[key]} -> {text}" for key, text in changes.items()]
    return settings


def judge(
    answers: Mapping[Side, Answer],
    options: Options,
    settings: Sequence[str] = (),
    recording: str = "",
) -> Finding:
    """The finding of what the sides answered; ``settings`` says what was changed."""
    held = [cell for cell in CELLS if below(answers[cell[0]].arrays, cell[1])]
    runs = {(side, form): _doubles(below(answers[side].arrays, form)) for side, form in held}
    shaken = _doubles(below(answers["ajax"].arrays, _CONTROL.name))
    control = Control(runs["ajax", "exact"], shaken)
    compared = {
        pair: compare_all(runs[pair[0]], runs[pair[1]], control)
        for pair in PAIRS
        if {*pair} <= runs.keys()
    }
    parting, port = {pair: departures(each) for pair, each in compared.items()}, compared[EXACT]
    whole = len(runs) == len(CELLS)
    same = _same_inputs(answers)
    claims = [same, _agree(parting[EXACT], port, options, settings)]
    if whole:
        claims += form_claims(runs, parting)
    if whole and not options.tiny:
        claims += level_claims(runs)
    return Finding(
        part=PART,
        title="Both sides on the same batches with the same noise",
        agreed=_agreed(port, options, settings),
        denied=_denied(parting[EXACT], settings) if same.holds else None,
        claims=claims,
        tables=[pairs_table(parting), metrics_table(parting), nearest_table(port)]
        + ([levels_table(runs)] if whole else []),
        data=_asked(answers, options, settings, recording) | _numbers(parting, port),
        draw=lambda: draw(runs, parting),
        arrays=_series(runs, shaken),
        left_out=["acting, the replay's draws and the write-back of latents into it"],
    )


def _asked(
    answers: Mapping[Side, Answer], options: Options, settings: Sequence[str], recording: str
) -> dict[str, Any]:
    return {
        "ran": {side: dict(answers[side].ran) for side in SIDES},
        "updates": options.updates,
        "tiny": options.tiny,
        "recorded_seed": options.seed,
        "recording": recording,
        "changes": list(settings),
    }


def _numbers(parting: Partings, port: Sequence[Compared]) -> dict[str, Any]:
    return {
        "departures": {
            f"{label(one)} / {label(two)}": [vars(each) for each in found]
            for (one, two), found in parting.items()
        },
        "port": [
            {name: each for name, each in vars(metric).items() if name != "departure"}
            for metric in port
        ],
    }


def _doubles(run: Arrays) -> dict[str, Any]:
    return {name: each.astype(float) for name, each in run.items() if each.ndim == 1}


def _series(runs: Runs, shaken: Mapping[str, Any]) -> Arrays:
    found: Arrays = {}
    for (side, form), run in runs.items():
        found |= above(dict(run), f"{side}/{form}")
    return found | above(dict(shaken), f"ajax/{_CONTROL.name}")


def _same_inputs(answers: Mapping[Side, Answer]) -> Claim:
    digests = {
        name: {
            str(each)
            for side in SIDES
            for key, each in answers[side].arrays.items()
            if key.endswith(f"digest/{name}")
        }
        for name in ("noise", "batches")
    }
    measured = "; ".join(
        f"{name} {' and '.join(sorted(each[:12] for each in found))}"
        for name, found in digests.items()
    )
    return Claim(
        "every run of both sides was given the same noise and the same batches (SHA-256)",
        measured,
        all(len(found) == 1 for found in digests.values()),
        "two digests",
    )


def _agree(
    found: Sequence[Departure],
    port: Sequence[Compared],
    options: Options,
    settings: Sequence[str],
) -> Claim:
    changed = f", with {', '.join(settings)}" if settings else ""
    if found:
        measured = f"{found[0].text}, {len(found)} metrics in all"
    else:
        nearest = max(port, key=lambda each: each.of_tolerance)
        furthest = max(port, key=lambda each: each.of_scale)
        measured = (
            f"none departs; nearest {nearest.metric} at update {nearest.nearest}, "
            f"{number(nearest.of_tolerance)} of its tolerance; largest difference "
            f"{number(furthest.of_scale)} of a metric's size ({furthest.metric}); {_judged(port)}"
        )
    return Claim(
        "with the exact form on both sides no metric departs beyond what rounding explains, in "
        f"{options.updates} updates{changed}",
        measured,
        not found,
        "a metric that departs",
    )


def _judged(port: Sequence[Compared]) -> str:
    """For how long rounding lets the metrics be told apart."""
    lost = sorted((each for each in port if each.lost is not None), key=lambda each: each.lost or 0)
    if not lost:
        return f"all {len(port)} metrics judged to the end"
    return (
        f"{len(port) - len(lost)} of {len(port)} metrics judged to the end, all of them before "
        f"update {lost[0].lost} ({lost[0].metric})"
    )


def _agreed(port: Sequence[Compared], options: Options, settings: Sequence[str]) -> str:
    if settings:
        return (
            f"no metric departs in {options.updates} updates with {', '.join(settings)}; "
            f"{_judged(port)}"
        )
    return (
        f"on equal batches and noise both sides train alike for {options.updates} updates "
        f"({_judged(port)}); what differs between them as they are follows the form of the "
        "expectation"
    )


def _denied(found: Sequence[Departure], settings: Sequence[str]) -> str | None:
    if not settings or not found:
        return None
    return f"departs first: {found[0].text}; changed: {', '.join(settings)}"

"""Part ``expectation``: what each form of the two-hot expectation does to its logits (D22).

Both forms on both sides, operation by operation and compiled, against float64 (protocol section 8).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diagnose.expectation_figure import draw
from diagnose.findings import Claim, Finding, Table, number
from diagnose.sides import Answer, Sides
from shared.arrays import Arrays, above
from shared.parameter_map import BINS
from shared.probing import ZERO
from shared.protocol import SIDE_LABEL, SIDES, Side

Doubles = npt.NDArray[np.float64]

PART, ROWS = "expectation", 4096
SMALL = 1e-4
#: Batches of the same mirrored rows.
SHAPES = ((1,), (16,), (64,), (1024,), (16, 64))
#: By how much the outermost bins' logits lie below the middle one's; between, linear in symlog.
TILTS = (0, 2, 4, 6, 8, 10, 15, 20, 25)
#: Bins beyond this, in units of reward, are the outer ones.
OUTER = 1e6
#: Published (protocol section 8): std and largest error of the literal form on mirrored logits,
#: and its constant at zero logits, under jit.
PUBLISHED_STD, PUBLISHED_MAX = 0.085, 0.3
PUBLISHED_CONSTANT: dict[Side, float] = {"reference": -0.163, "ajax": 0.162}
PUBLISHED_RANDOM = {"random/1e-4": 0.2, "random/1": 0.8}
#: Prefix of cases of the reference's own logits.
CAPTURED = "captured"


@dataclass(frozen=True)
class Row:
    """One form, mode and case of a side; errors are those of every element against float64."""

    side: Side
    form: str
    mode: str
    case: str
    low: float
    high: float
    #: Different values among the elements.
    values: int
    error_std: float
    error_max: float
    #: Mean over elements of 3 eps E_p|b|, and the largest error in units of it.
    bound: float
    of_bound: float
    #: Mean probability of the bins beyond OUTER.
    outer_mass: float


def cases() -> Arrays:
    """Case -> logits ``[..., BINS]`` float32, the same in every call."""
    rng = np.random.default_rng(0)
    half = rng.normal(0, SMALL, (ROWS, BINS // 2))
    middle = rng.normal(0, SMALL, (ROWS, 1))
    mirrored = np.concatenate([half, middle, half[:, ::-1]], -1)
    slope = np.abs(np.linspace(-1, 1, BINS))
    found = {
        **{f"{ZERO}/{rows}": np.zeros((rows, BINS)) for rows in (1, 16, 1024)},
        f"{ZERO}/16x64": np.zeros((16, 64, BINS)),
        "mirrored": mirrored,
        **{
            f"shape/{'x'.join(map(str, shape))}": mirrored[: int(np.prod(shape))].reshape(
                *shape, -1
            )
            for shape in SHAPES
        },
        **{f"tilt/{tilt}": mirrored - tilt * slope for tilt in TILTS},
        "random/1e-4": rng.normal(0, SMALL, (ROWS, BINS)),
        "random/1": rng.normal(0, 1, (ROWS, BINS)),
    }
    return {name: logits.astype(np.float32) for name, logits in found.items()}


def in_double(logits: npt.NDArray[np.float32], bins: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Expectation, E_p|b| and probability of the outer bins in float64, each ``[...]``."""
    wide = logits.astype(np.float64)
    weights = np.exp(wide - wide.max(-1, keepdims=True))
    probabilities = weights / weights.sum(-1, keepdims=True)
    terms = probabilities * bins
    # Mirror pairs first: rounding of the large bins would drown the rest.
    expectation = (terms + terms[..., ::-1]).sum(-1) / 2
    return expectation, np.abs(terms).sum(-1), probabilities[..., np.abs(bins) > OUTER].sum(-1)


def measure(side: Side, answer: Arrays, logits: Arrays) -> Iterator[Row]:
    """A row for every form, mode and case that a probe answered."""
    bins = answer["bins"].astype(np.float64)
    truths = {case: in_double(each, bins) for case, each in logits.items()}
    for name, values in answer.items():
        if name == "bins":
            continue
        form, mode, case = name.split("/", 2)
        truth, magnitude, outer = truths[case]
        error = values.astype(np.float64) - truth
        bound = 3 * np.finfo(np.float32).eps * magnitude
        yield Row(
            *(side, form, mode, case, float(values.min()), float(values.max())),
            *(len(np.unique(values)), float(error.std()), float(np.abs(error).max())),
            *(float(bound.mean()), float((np.abs(error) / bound).max()), float(outer.mean())),
        )


def run(sides: Sides, captured: Arrays) -> Finding:
    """Ask both sides and hold what they answer against what was published.

    ``captured``: ``<updates>/<head>`` -> logits of the reference after its own first updates.
    """
    given = cases() | above(captured, CAPTURED)
    answers: dict[Side, Answer] = {side: sides.ask(side, PART, given) for side in SIDES}
    rows = [row for side in SIDES for row in measure(side, answers[side].arrays, given)]
    return judge(rows, {side: dict(answers[side].ran) for side in SIDES})


def judge(rows: Sequence[Row], ran: Mapping[Side, object]) -> Finding:
    """The finding of these rows; ``ran`` goes into its JSON."""
    return Finding(
        part=PART,
        title="The expectation of the two-hot head",
        agreed="on both sides the compiled literal form adds noise to predictions that are zero, "
        "the exact form does not; both round alike on other logits",
        claims=claims(rows),
        tables=[_table(rows)],
        data={"ran": ran, "rows": [vars(row) for row in rows]},
        draw=lambda: draw(rows),
    )


def _table(rows: Sequence[Row]) -> Table:
    columns = {
        "lowest": "low",
        "highest": "high",
        "different values": "values",
        "error std": "error_std",
        "error max": "error_max",
        "3 eps E|b|": "bound",
        "max / bound": "of_bound",
        "outer mass": "outer_mass",
    }
    return Table(
        "Errors against float64, in units of reward. Outer mass: probability of the bins beyond "
        f"{OUTER:g}.",
        ("side", "form", "mode", "case", *columns),
        [
            (
                *(SIDE_LABEL[row.side], row.form, row.mode, row.case),
                *(number(getattr(row, name)) for name in columns.values()),
            )
            for row in rows
        ],
    )


def _pick(rows: Sequence[Row], case: str, form: str = "", mode: str = "") -> list[Row]:
    """Rows of a case, or of a group of cases (``random/``), of a form and mode where given."""
    return [
        row
        for row in rows
        if case in (row.case, f"{row.case.partition('/')[0]}/")
        and form in ("", row.form)
        and mode in ("", row.mode)
    ]


def _each(rows: Sequence[Row], name: str) -> str:
    """The value ``name`` of every row, by side, smallest and largest."""
    parts = []
    for side in SIDES:
        values = [getattr(row, name) for row in rows if row.side == side]
        low, high = number(min(values)), number(max(values))
        parts.append(f"{side} {low}" + (f" to {high}" if high != low else ""))
    return ", ".join(parts)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Section 8's statements, each with what these rows say of it."""
    return [*_at_zero(rows), *_mirrored(rows), *_elsewhere(rows), *_captured(rows)]


def _at_zero(rows: Sequence[Row]) -> list[Claim]:
    exact = _pick(rows, f"{ZERO}/", "exact")
    eager = _pick(rows, f"{ZERO}/", "literal", "eager")
    compiled = [row for row in _pick(rows, f"{ZERO}/", "literal") if row.mode != "eager"]
    return [
        Claim(
            "the exact form is 0 at zero logits, in every mode and batch shape",
            "largest: " + _each(exact, "error_max"),
            all(row.low == row.high == 0 for row in exact),
            "any other value",
        ),
        Claim(
            "operation by operation the literal form is 0 there too",
            "largest: " + _each(eager, "error_max"),
            all(row.low == row.high == 0 for row in eager),
            "any other value: the noise would not come from the compiler",
        ),
        Claim(
            "compiled, the literal form gives a constant: published -0.163 and +0.162, +-0.01",
            _each(compiled, "low"),
            all(
                row.values == 1 and abs(row.low - PUBLISHED_CONSTANT[row.side]) <= 0.01
                for row in compiled
            ),
            "zero, several values, or another constant (this depends on jaxlib and CPU)",
        ),
    ]


def _mirrored(rows: Sequence[Row]) -> list[Claim]:
    exact = _pick(rows, "mirrored", "exact")
    literal = _pick(rows, "mirrored", "literal", "jit")
    shapes = [
        row for row in _pick(rows, "shape/", "literal", "jit") if row.case != "shape/1"
    ]  # one element has no spread
    return [
        Claim(
            "on mirrored logits the exact form is near float64: published 2e-9, below 1e-6",
            "largest: " + _each(exact, "error_max"),
            all(row.error_max < 1e-6 for row in exact),
            "an error of 1e-6 or more",
        ),
        Claim(
            f"the compiled literal form is noise: published std {PUBLISHED_STD} +-0.01, max about "
            f"{PUBLISHED_MAX} +-0.1",
            "std: " + _each(literal, "error_std") + "; max: " + _each(literal, "error_max"),
            all(
                abs(row.error_std - PUBLISHED_STD) <= 0.01
                and abs(row.error_max - PUBLISHED_MAX) <= 0.1
                for row in literal
            ),
            "another spread",
        ),
        Claim(
            "its noise is there in every batch shape: std between 0.05 and 0.12",
            "std: " + _each(shapes, "error_std"),
            all(0.05 <= row.error_std <= 0.12 for row in shapes),
            "a batch shape without it",
        ),
    ]


def _elsewhere(rows: Sequence[Row]) -> list[Claim]:
    randoms = _pick(rows, "random/")
    spreads = [(row, PUBLISHED_RANDOM[row.case]) for row in randoms]
    tilted = _pick(rows, f"tilt/{TILTS[-1]}", "literal", "jit")
    return [
        Claim(
            "on random logits both forms stay within 3 eps E|b|",
            "largest error / bound: " + _each(randoms, "of_bound"),
            all(row.of_bound <= 1 for row in randoms),
            "an element beyond the bound",
        ),
        Claim(
            "and both carry the same rounding: published std about 0.2 at scale 1e-4 (+-0.1), 0.8 "
            "at scale 1 (+-0.3)",
            "; ".join(
                f"{case}: {_each(_pick(rows, case), 'error_std')}" for case in PUBLISHED_RANDOM
            ),
            all(
                abs(row.error_std - wanted) <= (0.1 if wanted < 0.5 else 0.3)
                for row, wanted in spreads
            ),
            "a form that is exact there, or much worse",
        ),
        Claim(
            "the literal form's noise is that of the outer bins' mass: below 1e-5 without it",
            f"std with mass {number(max(row.outer_mass for row in tilted))}: "
            + _each(tilted, "error_std"),
            all(row.error_std < 1e-5 for row in tilted),
            "noise that stays",
        ),
    ]


def _captured(rows: Sequence[Row]) -> list[Claim]:
    found = _pick(rows, f"{CAPTURED}/")
    if not found:
        return []
    literal, exact = (_pick(found, f"{CAPTURED}/", form, "jit") for form in ("literal", "exact"))
    return [
        Claim(
            "on logits of the reference's own first updates the compiled literal form is noise of "
            "std 0.05 to 0.15, the exact one within 1e-6 of float64",
            f"std: literal {_each(literal, 'error_std')}; exact {_each(exact, 'error_std')}",
            all(0.05 <= row.error_std <= 0.15 for row in literal)
            and all(row.error_max < 1e-6 for row in exact),
            "updates that take the noise away, or bring it to the exact form",
        )
    ]

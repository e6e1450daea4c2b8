"""Part ``expectation``: what each form of the two-hot expectation does to its logits (D22).

Both forms on both sides, operation by operation and compiled, against float64 (protocol section 8).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from diagnose.expectation_figure import draw
from diagnose.expectation_rows import OUTER, TILTS, Row, cases, measure
from diagnose.findings import Claim, Finding, Table, number
from diagnose.sides import Answer, Sides
from shared.probes.probing import ZERO
from shared.protocol import SIDE_LABEL, SIDES, Side
from shared.records.arrays import Arrays, above

PART = "expectation"


@dataclass(frozen=True)
class Published:
    """A published figure, and by how much another machine's may differ from it."""

    value: float
    tolerance: float

    def __str__(self) -> str:
        return f"{self.value:g} +-{self.tolerance:g}"

    def __contains__(self, found: float) -> bool:
        return abs(found - self.value) <= self.tolerance


#: Published (protocol section 8): std and largest error of the literal form on mirrored logits,
#: and its constant at zero logits, under jit; std of both forms on random logits.
LITERAL_STD, LITERAL_MAX = Published(0.085, 0.01), Published(0.3, 0.1)
CONSTANT: dict[Side, Published] = {
    "reference": Published(-0.163, 0.01),
    "ajax": Published(0.162, 0.01),
}
RANDOM_STD = {"random/1e-4": Published(0.2, 0.1), "random/1": Published(0.8, 0.3)}
#: What the exact form may be from float64 where float32 has no other error (published: 2e-9), and
#: the std below which there is no noise.
EXACT_ERROR, NO_NOISE = 1e-6, 1e-5
#: Std of the noise on parts of the mirrored logits, and on logits of a training run. Not published:
#: around the published std, with room for few elements and for other masses of the outer bins.
OF_A_SHAPE, OF_A_RUN = (0.05, 0.12), (0.05, 0.15)
#: Prefix of cases of the reference's own logits.
CAPTURED = "captured"


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
            "compiled, the literal form gives a constant: published "
            + ", ".join(f"{side} {figure}" for side, figure in CONSTANT.items()),
            _each(compiled, "low"),
            all(row.values == 1 and row.low in CONSTANT[row.side] for row in compiled),
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
            "on mirrored logits the exact form is near float64: published 2e-9, below "
            f"{EXACT_ERROR:g}",
            "largest: " + _each(exact, "error_max"),
            all(row.error_max < EXACT_ERROR for row in exact),
            "a larger error",
        ),
        Claim(
            f"the compiled literal form is noise: published std {LITERAL_STD}, max about "
            f"{LITERAL_MAX}",
            "std: " + _each(literal, "error_std") + "; max: " + _each(literal, "error_max"),
            all(row.error_std in LITERAL_STD and row.error_max in LITERAL_MAX for row in literal),
            "another spread",
        ),
        Claim(
            "its noise is there in every batch shape: std between {} and {}".format(*OF_A_SHAPE),
            "std: " + _each(shapes, "error_std"),
            all(OF_A_SHAPE[0] <= row.error_std <= OF_A_SHAPE[1] for row in shapes),
            "a batch shape without it",
        ),
    ]


def _elsewhere(rows: Sequence[Row]) -> list[Claim]:
    randoms = _pick(rows, "random/")
    tilted = _pick(rows, f"tilt/{TILTS[-1]}", "literal", "jit")
    noise = {
        side: [
            row.error_std
            for tilt in TILTS
            for row in _pick(rows, f"tilt/{tilt}", "literal", "jit")
            if row.side == side
        ]
        for side in SIDES
    }
    falls = all(
        later < max(earlier, NO_NOISE)
        for each in noise.values()
        for earlier, later in pairwise(each)
    )
    return [
        Claim(
            "on random logits both forms stay within 3 eps E|b|",
            "largest error / bound: " + _each(randoms, "of_bound"),
            all(row.of_bound <= 1 for row in randoms),
            "an element beyond the bound",
        ),
        Claim(
            "and both carry rounding of the published size there: std about "
            + ", ".join(f"{figure} ({case})" for case, figure in RANDOM_STD.items()),
            "; ".join(f"{case}: {_each(_pick(rows, case), 'error_std')}" for case in RANDOM_STD),
            all(row.error_std in RANDOM_STD[row.case] for row in randoms),
            "a form that is exact there, or much worse",
        ),
        Claim(
            "the literal form's noise is that of the outer bins' mass: it falls whenever they are "
            f"given less, below {NO_NOISE:g} without it",
            f"std with mass {number(max(row.outer_mass for row in tilted))}: "
            + _each(tilted, "error_std"),
            all(row.error_std < NO_NOISE for row in tilted) and falls,
            "noise that stays, or grows",
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
            "std {} to {}, the exact one within {:g} of float64".format(*OF_A_RUN, EXACT_ERROR),
            f"std: literal {_each(literal, 'error_std')}; exact {_each(exact, 'error_std')}",
            all(OF_A_RUN[0] <= row.error_std <= OF_A_RUN[1] for row in literal)
            and all(row.error_max < EXACT_ERROR for row in exact),
            "updates that take the noise away, or bring it to the exact form",
        )
    ]

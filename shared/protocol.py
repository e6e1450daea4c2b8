"""The protocol as data: arms, rounds, update schedule, sizes and statistic windows.

Words (protocol, preamble): a *row* is one transition of one environment, reset rows included; an
*update* is one optimiser step; a *side* is the reference or Ajax; an *arm* is a side plus the
patch it runs with. The configuration tables are in :mod:`shared.configuration`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Side = Literal["reference", "ajax"]
SIDES: tuple[Side, Side] = ("reference", "ajax")

#: Key of a side in ``summary.json``, as in the published files.
SIDE_KEY: dict[Side, str] = {"reference": "ref", "ajax": "ajax"}
SIDE_LABEL: dict[Side, str] = {"reference": "Reference", "ajax": "Ajax"}

REFERENCE_COMMIT = "29eb964e2918a3f4db04086f7f51b60388e97f3d"
REFERENCE_REMOTE = "https://github.com/danijar/dreamerv3"
AJAX_DISTRIBUTION = "ajax-rl"
AJAX_RELEASE = "0.4.0"
#: Ajax commit of the published rounds.
AJAX_PUBLISHED_COMMIT = "5cb0738f3a2e127a3f8d64994eac3be1bc8c926e"

N_ENVS = 16
MAX_EPISODE_STEPS = 500
#: Number of actions and of state variables of CartPole.
N_ACTIONS, STATE_SIZE = 2, 4

# --- update schedule (protocol section 3) ---------------------------------------------------

#: The training gate: 16 environments x 65 rows, the first row at which a batch can be drawn.
FIRST_UPDATE_ROW = 1040
#: train_ratio 512 over batches of 16 x 64: one update for every two rows.
ROWS_PER_UPDATE = 2


def updates(rows: int) -> int:
    """Number of updates that either side has done when ``rows`` rows were collected."""
    if rows < FIRST_UPDATE_ROW:
        return 0
    return 1 + (rows - FIRST_UPDATE_ROW) // ROWS_PER_UPDATE


# --- arms (protocol sections 2 and 8) -------------------------------------------------------


#: Of the two-hot expectation (D22): the reference's, and Ajax's.
Form = Literal["literal", "exact"]
FORMS: tuple[Form, Form] = ("literal", "exact")


@dataclass(frozen=True)
class Arm:
    """One side with the patch it runs with; ``name`` is what ``--arm`` takes."""

    side: Side
    name: str
    summary: str
    #: Which form of the two-hot expectation it computes.
    expectation: Form
    #: False for a side as its authors ship it.
    patched: bool = True
    #: Whether the replay sampler is seeded by the run (D2 is about the reference's).
    seeded_sampler: bool = False


ARMS: tuple[Arm, ...] = (
    Arm("reference", "stock", "the reference code as it is", "literal", patched=False),
    # Ajax's form of the two-hot expectation, so that D22 is absent on both sides (pair E, round 4).
    Arm("reference", "exact", "TwoHotDist.mean computes the exact expectation", "exact"),
    # Stock draws every run's replay batches with seed 0 (D2): the runs share a stream.
    Arm(
        "reference",
        "exact-seeded",
        "exact expectation, and the uniform replay selector is seeded per run",
        "exact",
        seeded_sampler=True,
    ),
    Arm("ajax", "stock", "Ajax as it is (exact expectation)", "exact", patched=False),
    # The reference's form, so that D22 is present on both sides (pair R, round 4).
    Arm("ajax", "literal", "TwoHot.decode computes the reference's literal expectation", "literal"),
)


def arm(side: Side, name: str) -> Arm:
    """The arm ``name`` of ``side``. Raises ``KeyError`` for a name that the table lacks."""
    for candidate in ARMS:
        if (candidate.side, candidate.name) == (side, name):
            return candidate
    raise KeyError(f"{side} has no arm {name!r}; known: {', '.join(arm_names(side))}")


def arm_names(side: Side) -> tuple[str, ...]:
    """The arm names of one side, in the table's order."""
    return tuple(each.name for each in ARMS if each.side == side)


# --- rounds (protocol section 2) ------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """One round: which arm runs on each side, and how long, on which seeds."""

    number: int
    reference_arm: str
    ajax_arm: str
    seeds: tuple[int, ...]
    rows: int
    every: int
    question: str
    #: What was fixed before its runs, below ``prereg/``.
    preregistration: str
    #: Of a round that has several, each with one arm per side.
    part: str = ""
    episodes: int = 10
    tiny: bool = False
    #: Its processes share the load of one machine: if one is lost, all of them run again.
    whole: bool = False

    @property
    def name(self) -> str:
        """What ``--round`` takes: the number, and the part where there are several."""
        return "-".join(filter(None, (str(self.number), self.part)))

    @property
    def directory(self) -> str:
        """Where it lies below ``results/`` and ``.work/``."""
        return "/".join(filter(None, (f"round{self.number}", self.part)))

    def arm(self, side: Side) -> Arm:
        """The arm that ``side`` runs in this round."""
        return arm(side, self.reference_arm if side == "reference" else self.ajax_arm)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Rows at which this round evaluates and records, ascending."""
        return checkpoints(self.rows, self.every)

    def smoke(self) -> "Round":
        """The round's smoke: the same arms at tiny widths, minutes instead of hours."""
        return replace(self, seeds=(0, 1), rows=1600, every=400, episodes=2, tiny=True)


_QUESTION4 = (
    "Is the two-hot expectation the cause of the early differences, on x86-64 Linux and with "
    "this release of Ajax?"
)

_QUESTION5 = "Is the two-hot expectation the cause of the early entropy, and is anything else?"
#: Form of both sides -> the reference's arm and Ajax's.
_BOTH: dict[Form, tuple[str, str]] = {"literal": ("stock", "literal"), "exact": ("exact", "stock")}
#: prereg/ROUND5.md: blocks in the order in which they run.
_BLOCKS5: tuple[tuple[str, Form, tuple[int, int, int]], ...] = (
    ("1-exact", "exact", (20, 21, 22)),
    ("2-literal", "literal", (20, 21, 22)),
    ("3-literal", "literal", (23, 24, 25)),
    ("4-exact", "exact", (23, 24, 25)),
    ("5-placebo", "exact", (20, 21, 22)),
    ("6-exact", "exact", (26, 27, 28)),
    ("7-literal", "literal", (26, 27, 28)),
    ("8-exact", "exact", (29, 30, 31)),
)

#: By name.
ROUNDS: dict[str, Round] = {
    each.name: each
    for each in (
        Round(
            1,
            "stock",
            "stock",
            seeds=(0, 1, 2),
            rows=20_000,
            every=2_000,
            question="Does the reference learn CartPole better than Ajax?",
            preregistration="PROTOCOL.md",
        ),
        Round(
            2,
            "exact",
            "literal",
            seeds=(0, 1, 2),
            rows=20_000,
            every=2_000,
            question="Is the two-hot expectation (D22) the whole difference?",
            preregistration="ROUND2.md",
        ),
        Round(
            3,
            "exact-seeded",
            "stock",
            seeds=(0, 1, 2, 3, 4),
            rows=24_000,
            every=400,
            question="Is the reference's jump at its last checkpoint an artefact of the end "
            "of the run (H1), of correlated runs or noise (H2), or late learning (H3)?",
            preregistration="ROUND3.md",
        ),
        Round(
            4,
            "stock",
            "literal",
            part="literal",
            seeds=(10, 11, 12),  # 0 to 2 have been looked at
            rows=4_000,
            every=400,
            question=f"{_QUESTION4} (the literal form on both sides)",
            preregistration="ROUND4.md",
        ),
        Round(
            4,
            "exact",
            "stock",
            part="exact",
            seeds=(10, 11, 12),
            rows=4_000,
            every=400,
            question=f"{_QUESTION4} (the exact form on both sides)",
            preregistration="ROUND4.md",
        ),
        *(
            Round(
                5,
                *_BOTH[form],
                part=block,
                seeds=seeds,
                rows=4_000,
                every=400,
                question=_QUESTION5,
                preregistration="ROUND5.md",
                whole=True,
            )
            for block, form, seeds in _BLOCKS5
        ),
    )
}
#: What one command runs one after the other, by what ``--round`` takes for it.
SERIES: dict[str, tuple[str, ...]] = {
    "4": ("4-literal", "4-exact"),
    "5": tuple(f"5-{block}" for block, *_ in _BLOCKS5),
}


@dataclass(frozen=True)
class Pairing:
    """One comparison of the published study: where it lies, and which round each side is from."""

    directory: str
    #: The round whose statistics it has.
    round_number: int
    rounds: dict[Side, int]

    @property
    def round_names(self) -> dict[Side, str]:
        """Names of the rounds that the sides are from."""
        return {side: str(number) for side, number in self.rounds.items()}


PAIRINGS: dict[str, Pairing] = {
    "round1": Pairing("round1", 1, {"reference": 1, "ajax": 1}),
    # Round 2 is analysed as two cross pairs with round 1 (protocol section 2).
    "pairE": Pairing("round2/pairE", 2, {"reference": 2, "ajax": 1}),
    "pairR": Pairing("round2/pairR", 2, {"reference": 1, "ajax": 2}),
    "round3": Pairing("round3", 3, {"reference": 3, "ajax": 3}),
}
#: Rounds whose figures were published.
PUBLISHED_ROUNDS = ("1", "2", "3")
#: The comparisons that the reading of round 2 needs.
READING2 = ("round1", "pairE", "pairR")

#: Widths of a smoke run; stoch 32 and blocks 8 stay (protocol section 2).
TINY_WIDTHS: dict[str, int] = {"units": 16, "hidden": 16, "deter": 64, "classes": 4}
FULL_WIDTHS: dict[str, int] = {"units": 64, "hidden": 64, "deter": 512, "classes": 4}


def checkpoints(rows: int, every: int) -> tuple[int, ...]:
    """Multiples of ``every`` up to ``rows``, ascending."""
    return tuple(range(every, rows + 1, every))


# --- random streams (protocol sections 4, 6 and 8) ------------------------------------------

#: Seeds of a run are unsigned numbers of 32 bits: others are cut, or refused, once it trains.
LARGEST_SEED = 2**32 - 1
#: Second entry of the seed sequence of every evaluation stream.
EVALUATION_TAG = 7_000_001
#: Third entry of the seed sequence from which evaluation policy seeds are drawn.
POLICY_TAG = 1_000_000
#: Second entry of the seed sequence of the seeded replay selector.
SAMPLER_TAG = 0x5EED

# --- statistic windows (protocol section 9) -------------------------------------------------

#: Rows of a window in every published table.
WINDOW_ROWS = 2_000
S1_ROWS: tuple[int, ...] = (16_000, 18_000, 20_000)
LATE_ROWS: tuple[int, ...] = tuple(range(12_000, 24_001, 400))
#: Concordance: a run reaches the cap when its evaluation mean is at least this.
CAP_RETURN = 400.0
CAP_ROWS: tuple[int, int] = (20_000, 24_000)
CAP_RATE_WINDOW: tuple[int, int] = (16_000, 24_000)
#: S2 averages this many of each environment's last finished training episodes.
S2_EPISODES = 10
S2_AUDIT_TOLERANCE = 1e-4
#: Reading of round 3: H1 needs this many runs at the cap at its last checkpoint ...
H1_RUNS = 4
#: ... and a late rate of the reference of at most this (as amended on 2026-10-04).
H1_LATE_RATE = 0.4
SIGNIFICANCE = 0.05


def s1_rows(grid: Sequence[int], *, smoke: bool) -> tuple[int, ...]:
    """Checkpoints that S1 averages: the protocol's, or the last three of a smoke run's grid."""
    return tuple(grid[-3:]) if smoke else S1_ROWS


# --- known differences (protocol section 3) -------------------------------------------------


@dataclass(frozen=True)
class KnownDifference:
    """A difference between the sides that the protocol cannot remove."""

    name: str
    text: str
    #: Whether a reference and an Ajax arm take it away.
    removed: Callable[[Arm, Arm], bool] = lambda *_: False


KNOWN_DIFFERENCES: tuple[KnownDifference, ...] = (
    KnownDifference(
        "D1",
        "the reference acts asynchronously: its acting parameters lag one to two ticks, one batch "
        "is prefetched, and write-back and metrics come one train call late, so that a metric "
        "window holds updates n0-1 to n1-1",
    ),
    KnownDifference(
        "D2",
        "the stock replay sampler is seeded 0 whatever the run's seed",
        removed=lambda reference, _: reference.seeded_sampler,
    ),
    KnownDifference(
        "D3", "the reference updates between the rows of a tick, Ajax after all of them"
    ),
    KnownDifference(
        "D22",
        "the two-hot expectation: literal in the reference, exact in Ajax (section 8)",
        removed=lambda reference, ajax: reference.expectation == ajax.expectation,
    ),
    KnownDifference("D23", "the kernel initialiser's constant differs by 4.16e-5 relative"),
    KnownDifference(
        "report stream",
        "the reference's report prefetch takes up to 32 early replay samples once and then blocks",
    ),
    KnownDifference(
        "random streams", "every draw differs: other generators, other keys, other order"
    ),
    KnownDifference(
        "arithmetic", "environment in numpy against XLA float32: last unit in the last place"
    ),
    KnownDifference(
        "repetition",
        "two runs of one reference seed differ: its prefetch threads take the first batches from "
        "the replay buffer while it fills, and thread timing decides what they hold",
    ),
    KnownDifference("NaN in a window", "skipped by the reference's window mean, kept by Ajax's"),
    KnownDifference(
        "evaluation keys",
        "the reference and Ajax at the published commit reuse an evaluation's random streams at "
        "every checkpoint of a seed; the Ajax release draws fresh ones",
    ),
)

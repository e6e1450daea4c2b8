"""Both parts of round 4, made up so that the form of the expectation decides.

Means near the published ones; a seed's values differ a little from another's, and a side's a little
from the other's. Reading: confirmed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.synthetic import Plan, write_run

SEEDS = (10, 11, 12)
#: The document of round 4 as it was when the round was run: it never changes.
REGISTERED = (
    "prereg/ROUND4.md; sha256: 57e83aa36e86168e097726c924b5673e4ab0eae185bb7c4f04617e114cfc486c"
)
#: Metric -> the window that decides, and its mean with the literal and with the exact form.
STATISTICS: dict[str, tuple[int, float, float]] = {
    "ret/std": (2_000, 0.135, 0.0095),
    "adv/std": (2_000, 0.160, 0.0100),
    "val/std": (4_000, 0.052, 0.0030),
    "ent/action/mean": (4_000, 0.5110, 0.4580),
    "rew/min": (4_000, -0.111, -0.0010),
}
LOSSES = {"rec_loss": 0.405, "rew_loss": 5.285, "con_loss": 0.391, "dyn_loss": 2.596}


def training(form: str) -> Callable[[str, int, int], Mapping[str, float]]:
    def values(side: str, seed: int, rows: int) -> dict[str, float]:
        own = 1 + 0.008 * (seed - 11) + (0.004 if side == "ajax" else 0) + rows * 1e-7
        means = {
            name: literal if form == "literal" else exact
            for name, (_, literal, exact) in STATISTICS.items()
        }
        slightly = 1.0 if form == "literal" else 1.0005
        means |= {name: value * slightly for name, value in LOSSES.items()}
        return {name: value * own for name, value in means.items()}

    return values


LITERAL = Plan(
    "4-literal",
    SEEDS,
    4_000,
    400,
    ajax_arm="literal",
    train=training("literal"),
    registered=REGISTERED,
)
EXACT = replace(
    LITERAL, round="4-exact", reference_arm="exact", ajax_arm="stock", train=training("exact")
)
PARTS = {"literal": LITERAL, "exact": EXACT}
#: Documents that a comparison writes into each part, beside its figures.
TABLES = {"compare.md", "summary.json", "figures.json"}


def write_round4(root: Path, *, packed: bool = False) -> Path:
    """``literal/`` and ``exact/`` below ``root``."""
    for name, plan in PARTS.items():
        write_run(root / name, replace(plan, packed=packed))
    return root

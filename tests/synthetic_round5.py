"""All blocks of round 5, made up: effects of the form, and what is left between the sides, planted.

Values of a seed differ from another's by a fixed pattern, so that tests have a spread to work with.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from shared.preregistration import registration_line
from tests.inside import ROOT
from tests.rounds import git
from tests.synthetic import Plan, write_run
from tests.synthetic_round4 import LOSSES, STATISTICS

BLOCKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "1-exact": ("exact", (20, 21, 22)),
    "2-literal": ("literal", (20, 21, 22)),
    "3-literal": ("literal", (23, 24, 25)),
    "4-exact": ("exact", (23, 24, 25)),
    "5-placebo": ("exact", (20, 21, 22)),
    "6-exact": ("exact", (26, 27, 28)),
    "7-literal": ("literal", (26, 27, 28)),
    "8-exact": ("exact", (29, 30, 31)),
}
ARMS = {"literal": ("stock", "literal"), "exact": ("exact", "stock")}
ENTROPY = 0.4567
#: Reading -> (effects of reference and Ajax, reference minus Ajax at the exact form).
PLANTED: dict[str, tuple[tuple[float, float], float]] = {
    "the cause, and nothing else beyond 0.03": ((0.064, 0.060), 0.0),
    "a further cause": ((0.064, 0.060), -0.06),
    "a cause, the rest open": ((0.064, 0.110), 0.001),
    "refuted": ((0.064, 0.005), 0.0),
    "undecided": ((0.064, 0.0215), 0.0),
}
SAME = {
    "reference": ("python: 3.11.7, jax 0.4.26", "packages: sha256 aa", "code: sha256 bb"),
    "ajax": ("python: 3.12.1, jax 0.7.2", "packages: sha256 cc", "code: sha256 dd"),
}


def training(
    form: str, block: str, effects: tuple[float, float], rest: float
) -> Callable[[str, int, int], Mapping[str, float]]:
    def values(side: str, seed: int, _rows: int) -> dict[str, float]:
        reference = side == "reference"
        found = {name: pair[form != "literal"] for name, (_, *pair) in STATISTICS.items()}
        found |= LOSSES
        wave = 0.004 * ((seed * 7) % 5 - 2) + 0.002 * ((seed * 3) % 4)
        entropy = ENTROPY + rest * reference + wave
        if form == "literal":
            entropy += effects[not reference] + 0.003 * ((seed * 5) % 3 - 1)
        if block == "5-placebo" and reference:
            entropy += 0.0011 * (seed - 21)
        return found | {"ent/action/mean": entropy}

    return values


def write_round5(
    root: Path,
    commit: str = "a" * 40,
    effects: tuple[float, float] = (0.064, 0.060),
    rest: float = 0.0,
    *,
    packed: bool = False,
) -> Path:
    """All blocks below ``root``, started by ``commit``."""
    for block, (form, seeds) in BLOCKS.items():
        arms = ARMS[form]
        train = training(form, block, effects, rest)
        plan = Plan(f"5-{block}", seeds, 4_000, 400, reference_arm=arms[0], ajax_arm=arms[1])
        line = registration_line("ROUND5.md")
        write_run(root / block, replace(plan, train=train, registered=line, packed=packed))
        path = root / block / "launch_info.txt"
        same = "".join(f"{side} {line}\n" for side, lines in SAME.items() for line in lines)
        path.write_text(path.read_text().replace("a" * 40, commit) + same)
    return root


def registering_repository(root: Path, when: str = "2026-11-20T12:00:00+0000") -> str:
    """A git checkout in ``root`` that has the document since ``when``; its commit."""
    (root / "prereg").mkdir(parents=True)
    document = (ROOT / "prereg" / "ROUND5.md").read_bytes()
    (root / "prereg" / "ROUND5.md").write_bytes(document)
    git(root, "init", "--quiet", ".")
    git(root, "add", ".")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    subprocess.run(
        ["git", "-C", str(root), *identity, "commit", "--quiet", "-m", "Registration"],
        check=True,
        env={"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when, "PATH": "/usr/bin:/bin"},
    )
    return git(root, "rev-parse", "HEAD")

"""Round 2: its two pre-registered cross pairs with round 1, and the reading of both."""

from dataclasses import asdict, replace
from typing import Any

from analysis.canvas import Data
from analysis.comparison import Comparison
from analysis.figures import entropy_data
from analysis.formats import markdown_table, number, yes
from analysis.readings import Round2Reading, read_round2
from analysis.sources import Request, Source
from analysis.study import Study, study
from shared.protocol import CAP_RETURN, PAIRINGS, READING2, SIDE_LABEL, Side
from shared.records.files import dump_json

#: The cross pairs of round 2.
PAIRS = READING2[1:]


def pair_requests(base: Request, sources: dict[int, Source]) -> dict[str, Request]:
    """Round 1 and both pairs as requests; ``sources`` maps round 1 and 2 to where they lie."""
    pairings = {name: PAIRINGS[name] for name in READING2}
    return {
        name: replace(
            base,
            round_name=str(pairing.round_number),
            sources={side: sources[number] for side, number in pairing.rounds.items()},
            rounds=pairing.round_names,
        )
        for name, pairing in pairings.items()
    }


def study_pairs(base: Request, sources: dict[int, Source]) -> dict[str, Study]:
    """Round 1, pair E and pair R, computed."""
    return {name: study(request) for name, request in pair_requests(base, sources).items()}


def reading_documents(comparisons: dict[str, Comparison]) -> tuple[dict[str, str], dict[str, Data]]:
    """``reading.md``, ``reading.json`` and the figure of all entropy windows."""
    pairs = {name: comparisons[name] for name in PAIRS}
    reading = read_round2(comparisons["round1"], pairs)
    figures = {"entropy_windows": entropy_data({c.title: c for c in comparisons.values()})}
    figures = {name: data for name, data in figures.items() if data}
    capped = _capped(comparisons)
    doubts = [f"{c.title}, {c.impossible}" for c in comparisons.values() if c.impossible]
    lacking = "; ".join(doubts) or "a pair lacks S1 or entropy windows"
    texts = {
        "reading.md": "\n".join([*_render(reading, lacking), *capped, ""]),
        "reading.json": dump_json(_json(reading)),
    }
    return texts, figures


def _json(reading: Round2Reading | None) -> dict[str, Any]:
    return {"format": 1, "reading": None} if reading is None else {
        "format": 1,
        "reading": reading.text,
        "round1": asdict(reading.round1),
        "pairs": {name: asdict(pair) for name, pair in reading.pairs.items()},
    }  # fmt: skip


def _render(reading: Round2Reading | None, lacking: str) -> list[str]:
    lines = [
        "# Reading of round 2",
        "",
        "D22 (the two-hot expectation) is the whole difference if, in both pairs, WITHIN_RANGE "
        "holds or the S1 gap is smaller than in round 1, and the entropy ranges overlap in most "
        "windows. The pre-registration did not define the gap; both senses are shown.",
        "",
    ]
    if reading is None:
        return [*lines, f"Reading: none, {lacking}."]
    entries = {"round 1": reading.round1} | {name: p.gap for name, p in reading.pairs.items()}
    rows = [
        [
            name,
            number(gap.of_means),
            number(gap.to_lowest),
            yes(gap.within_range),
            f"{gap.overlapping} of {gap.windows}",
        ]
        for name, gap in entries.items()
    ]
    head = ["", "reference mean - A", "lowest reference seed - A", "WITHIN_RANGE", "overlapping"]
    table = markdown_table(head, rows)
    return [*lines, *table, "", f"Reading: {reading.text}."]


#: The comparison in which each arm of rounds 1 and 2 stands once.
_ARMS: tuple[tuple[str, Side], ...] = (
    ("round1", "reference"),
    ("pairE", "reference"),
    ("round1", "ajax"),
    ("pairR", "ajax"),
)


def _capped(comparisons: dict[str, Comparison]) -> list[str]:
    """Evaluations of every seed at S1's checkpoints: what made round 3 ask about the last one."""
    s1 = comparisons["round1"].s1
    if s1 is None:
        return []
    rows, counts = [], []
    for name, side in _ARMS:
        data = comparisons[name].sides[side]
        if not data.seeds or not set(s1.rows) <= set(data.grid):
            return []
        means = data.means()[:, [data.grid.index(at) for at in s1.rows]]
        label = f"{SIDE_LABEL[side]}, {data.arm_label}"
        at_rows = (" ".join(map(number, map(float, column))) for column in means.T)
        reached = [
            f"seed {seed} ({number(float(last))})"
            for seed, last in zip(data.seed_numbers, means[:, -1], strict=True)
            if last >= CAP_RETURN
        ]
        rows.append([label, *at_rows])
        counts.append(f"- {label}: {len(reached)} of {len(data.seeds)}"
                      f"{': ' if reached else ''}{', '.join(reached)}")  # fmt: skip
    return [
        "",
        "## Evaluations at the last checkpoints (not pre-registered)",
        "",
        "Round 3 was asked because of these. Mean evaluation of every seed, seeds in their order.",
        "",
        *markdown_table(["arm", *(f"row {at}" for at in s1.rows)], rows),
        "",
        f"Runs that reach {CAP_RETURN:.0f} at row {s1.rows[-1]}:",
        "",
        *counts,
    ]

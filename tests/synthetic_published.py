"""A results tree in the published layout, with summaries made by a second implementation.

Rounds 1 to 3 as the published records have them (no format, gzipped records, final arrays of
unknown names), and ``summary.json`` / ``analysis3.json`` with the published keys only. Statistics
are recomputed here in plain Python from the files, so that ``reproduce`` is held against something
that shares no code with it.
"""

import gzip
import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from scipy import stats

from shared.provenance.roots import REPO
from tests.synthetic import ROUND1, ROUND2, ROUND3, buffers, episodes_of, write_run

KEYS = {"reference": "ref", "ajax": "ajax"}
FIGURES = REPO / "results" / "published"


def write_results(root: Path) -> Path:
    """Rounds 1, 2 and 3 with their recorded statistics below ``root``."""
    for name, plan in (("round1", ROUND1), ("round2", ROUND2), ("round3", ROUND3)):
        write_run(root / name, replace(plan, old=True))
    one, two = root / "round1", root / "round2"
    _write(one / "summary.json", summary(one, one))
    _write(two / "pairE" / "summary.json", summary(two, one))
    _write(two / "pairR" / "summary.json", summary(one, two))
    _write(root / "round3" / "analysis3.json", analysis3(root / "round3"))
    return root


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def _rows(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.decode().splitlines()]


def _directory(root: Path, side: str, seed: int) -> Path:
    return root / (f"ref_s{seed}" if side == "reference" else f"ajax/s{seed}")


def _means(root: Path, side: str, seed: int) -> dict[int, float]:
    rows = _rows(_directory(root, side, seed) / "evals.jsonl")
    return {row["rows"]: row["mean"] for row in rows}


def _s1(root: Path, side: str, seed: int) -> float:
    means = _means(root, side, seed)
    return (means[16_000] + means[18_000] + means[20_000]) / 3


def _s2_curve(root: Path, side: str, seed: int) -> list[float | None]:
    directory = _directory(root, side, seed)
    if side == "ajax":
        return [row["s2_logged"] for row in _rows(directory / "records.jsonl.gz")]
    episodes, curve = _rows(directory / "episodes.jsonl.gz"), []
    for rows in range(2_000, 20_001, 2_000):
        counts, sums = buffers(episodes, rows)
        complete = all(counts)
        curve.append(fmean(s / n for s, n in zip(sums, counts, strict=True)) if complete else None)
    return curve


def summary(reference: Path, ajax: Path) -> dict[str, Any]:
    """``summary.json`` with its published keys, of rounds 1 and 2."""
    roots = {"reference": reference, "ajax": ajax}
    s1 = {side: [_s1(root, side, seed) for seed in range(3)] for side, root in roots.items()}
    a, low, high = sum(s1["ajax"]) / 3, min(s1["reference"]), max(s1["reference"])
    curves = {(side, s): _s2_curve(root, side, s) for side, root in roots.items() for s in range(3)}
    audits = {}
    for seed in range(3):
        counts, sums = buffers(episodes_of("ajax", seed, 20_000), 20_000)
        audited = fmean(s / n for s, n in zip(sums, counts, strict=True))
        audits[str(seed)] = {"logged": curves["ajax", seed][-1], "audited": audited}
    return {
        "smoke": False,
        "seeds": [0, 1, 2],
        "rows": list(range(2_000, 20_001, 2_000)),
        "s1_rows": [16_000, 18_000, 20_000],
        "A": a,
        "ref_S1_min": low,
        "ref_S1_max": high,
        "LEARNS": a >= low,
        "WITHIN_RANGE": low <= a <= high,
        "per_seed": {
            KEYS[side]: {
                str(seed): {
                    "S1": s1[side][seed],
                    "S2": curves[side, seed][-1],
                    "eval": list(_means(root, side, seed).values()),
                    "S2_curve": curves[side, seed],
                }
                for seed in range(3)
            }
            for side, root in roots.items()
        },
        "ajax_s2_audit": audits,
        "checks": ["PASS exit codes: all 0"],
        "checks_failed": 0,
    }


def analysis3(root: Path) -> dict[str, Any]:
    """``analysis3.json`` with its published keys, of round 3."""
    means = {side: [_means(root, side, seed) for seed in range(5)] for side in KEYS}
    late = {
        side: [fmean(m for rows, m in each.items() if rows >= 12_000) for each in seeds]
        for side, seeds in means.items()
    }
    at = {
        f"{KEYS[side]}_{rows}": sum(each[rows] >= 400 for each in seeds)
        for rows in (20_000, 24_000)
        for side, seeds in means.items()
    }
    rates = {
        f"{KEYS[side]}_rate_16_24k": fmean(
            float(m >= 400) for each in seeds for rows, m in each.items() if rows >= 16_000
        )
        for side, seeds in means.items()
    }
    return {
        "late_ref": late["reference"],
        "late_ajax": late["ajax"],
        "s1_ref": [_s1(root, "reference", seed) for seed in range(5)],
        "s1_ajax": [_s1(root, "ajax", seed) for seed in range(5)],
        "p_late": _welch_p(late["reference"], late["ajax"]),
        "concordance": at | rates,
        "reading": "as read then",
    }


def _welch_p(first: list[float], second: list[float]) -> float:
    """Welch's two-sided p from its formula (Welch 1947; Satterthwaite's degrees of freedom)."""
    parts = [variance(sample) / len(sample) for sample in (first, second)]
    t = (fmean(first) - fmean(second)) / sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(
        part**2 / (len(sample) - 1) for part, sample in zip(parts, (first, second), strict=True)
    )
    return float(2 * stats.t.sf(abs(t), df))


# --- the published figures themselves -------------------------------------------------------


def write_published(root: Path) -> Path:
    """The published study as it was published, as far as its figures are recorded here.

    Evaluations, tables, and of Ajax the logged S2 are the published ones. Training episodes and
    window means were not: there are none of the former, and others' of the latter.
    """
    stated = [json.loads(line) for line in (FIGURES / "statistics.jsonl").read_text().splitlines()]
    for number, plan in ((1, ROUND1), (2, ROUND2), (3, ROUND3)):
        run = write_run(root / f"round{number}", replace(plan, old=True))
        lines = (FIGURES / f"round{number}.jsonl").read_text().splitlines()
        figures = [each for each in map(json.loads, lines) if each["kind"] == "evaluation"]
        for side in KEYS:
            for seed in plan.seeds:
                own = [each for each in figures if (each["side"], each["seed"]) == (side, seed)]
                _publish(_directory(run, side, seed), side, own, _curve(stated, number, side, seed))
    for name, directory in (
        ("round1", "round1"),
        ("pairE", "round2/pairE"),
        ("pairR", "round2/pairR"),
    ):
        _write(root / directory / "summary.json", _stated_summary(_of(stated, name), root, name))
    _write(root / "round3" / "analysis3.json", _stated_analysis3(_of(stated, "round3")))
    return root


def _publish(
    directory: Path, side: str, figures: list[dict[str, Any]], curve: list[float] | None
) -> None:
    """Put the published evaluations, and S2 of Ajax, into the files of one seed."""
    path = directory / "evals.jsonl"
    rows = [
        row | {"mean": each["mean"], "len_mean": each["mean"], "returns": each.get("returns")}
        for row, each in zip(_rows(path), figures, strict=True)
    ]
    if side == "reference":
        rows = [row | {"lengths": row["returns"]} for row in rows]
        (directory / "episodes.jsonl.gz").unlink()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = directory / "records.jsonl.gz"
    records = [
        row | {"eval_mean": each["mean"], "eval_returns": each.get("returns")}
        for row, each in zip(_rows(path), figures, strict=True)
    ]
    for row, value in zip(records, curve or [], strict=bool(curve)):
        row["s2_logged"] = value
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in records).encode()))


def _of(stated: list[dict[str, Any]], comparison: str) -> list[dict[str, Any]]:
    return [each for each in stated if each["comparison"] == comparison]


def _curve(stated: list[dict[str, Any]], number: int, side: str, seed: int) -> list[float] | None:
    """S2 of Ajax at every checkpoint, from the comparison that has this round's."""
    name = {1: "round1", 2: "pairR", 3: "round3"}[number]
    found = [each for each in _of(stated, name) if each["kind"] == "seed" and "S2_curve" in each]
    curves = [each["S2_curve"] for each in found if (each["side"], each["seed"]) == (side, seed)]
    return curves[0] if curves and side == "ajax" else None


def _stated_summary(stated: list[dict[str, Any]], root: Path, name: str) -> dict[str, Any]:
    (rule,) = (each for each in stated if each["kind"] == "rule")
    seeds = [each for each in stated if each["kind"] == "seed"]
    of_round = {
        "reference": "round2" if name == "pairE" else "round1",
        "ajax": "round2" if name == "pairR" else "round1",
    }
    per_seed: dict[str, dict[str, Any]] = {"ref": {}, "ajax": {}}
    for each in seeds:
        means = _means(root / of_round[each["side"]], each["side"], each["seed"])
        per_seed[KEYS[each["side"]]][str(each["seed"])] = {
            **{key: each[key] for key in ("S1", "S2", "S2_curve")},
            "eval": list(means.values()),
        }
    return {
        "smoke": False,
        "seeds": [0, 1, 2],
        "rows": seeds[0]["rows"],
        "s1_rows": rule["rows"],
        "A": rule["A"],
        "ref_S1_min": rule["reference_low"],
        "ref_S1_max": rule["reference_high"],
        "LEARNS": rule["LEARNS"],
        "WITHIN_RANGE": rule["WITHIN_RANGE"],
        "per_seed": per_seed,
        "ajax_s2_audit": {
            str(each["seed"]): {"logged": each["logged"], "audited": each["audited"]}
            for each in stated
            if each["kind"] == "s2_audit"
        },
        "checks": ["PASS  ref_s0: exit code 0 (ref_s0.DONE)"],
        "checks_failed": 0,
    }


def _stated_analysis3(stated: list[dict[str, Any]]) -> dict[str, Any]:
    seeds = [each for each in stated if each["kind"] == "seed"]
    (concordance,) = (each for each in stated if each["kind"] == "concordance")
    return {
        **{
            f"{name.lower()}_{KEYS[side]}": [each[name] for each in seeds if each["side"] == side]
            for name in ("LATE", "S1")
            for side in KEYS
        },
        "p_late": next(each["p"] for each in stated if each["kind"] == "welch"),
        "concordance": {
            key: value for key, value in concordance.items() if key not in ("kind", "comparison")
        },
        "reading": next(each["text"] for each in stated if each["kind"] == "reading"),
    }

"""Facts of protocol section 9 planted wrong in a run, each with the checks that must notice it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Plant = Callable[[Path], None]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def edit_lines(name: str, change: Callable[[list[dict[str, Any]]], object]) -> Plant:
    """Change the rows of a JSON-lines file in place."""

    def plant(root: Path) -> None:
        rows = lines(root / name)
        change(rows)
        (root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    return plant


def edit_last(name: str, **values: Any) -> Plant:
    return edit_lines(name, lambda rows: rows[-1].update(values))


def edit_json(name: str, *keys: str, value: Any) -> Plant:
    """Set the value below ``keys``; ``...`` removes it."""

    def plant(root: Path) -> None:
        whole = json.loads((root / name).read_text())
        inner = whole
        for key in keys[:-1]:
            inner = inner[key]
        if value is ...:
            del inner[keys[-1]]
        else:
            inner[keys[-1]] = value
        (root / name).write_text(json.dumps(whole))

    return plant


def replace_text(name: str, old: str, new: str) -> Plant:
    def plant(root: Path) -> None:
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))

    return plant


def remove(name: str) -> Plant:
    return lambda root: (root / name).unlink()


def edit_final(**values: Any) -> Plant:
    """Change arrays of ``ajax_final.npz``."""

    def plant(root: Path) -> None:
        path = root / "ajax" / "ajax_final.npz"
        arrays = dict(np.load(path))
        np.savez(path, **arrays | {key: np.array(value) for key, value in values.items()})  # type: ignore[arg-type]

    return plant


def both(*plants: Plant) -> Plant:
    def plant(root: Path) -> None:
        for each in plants:
            each(root)

    return plant


def shift_s2(amount: float) -> Plant:
    return edit_lines(
        "ajax/s0/records.jsonl",
        lambda rows: rows[-1].update(s2_logged=rows[-1]["s2_logged"] + amount),
    )


def set_metric(value: float | None) -> Callable[[list[dict[str, Any]]], object]:
    return lambda rows: rows[-1]["train"].update({"val/std": value})


EVALS, RECORDS, EPISODES = (f"ref_s1/{name}.jsonl" for name in ("evals", "records", "episodes"))
ARGUMENTS, CONFIG = "ref_s1/run_args.json", "ajax/config.json"

LISTS = ("returns", "lengths")


def too_long(row: dict[str, Any]) -> dict[str, Any]:
    lengths = [501, *row["lengths"][1:]]
    mean = sum(lengths) / len(lengths)
    return {"returns": [float(each) for each in lengths], "lengths": lengths, "mean": mean,
            "len_mean": mean}  # fmt: skip


#: What is planted -> (the plant, the checks that must fail, a part of the first one's line).
PLANTED: dict[str, tuple[Plant, list[str], str]] = {
    "reference exit code": (
        lambda root: (root / "ref_s1.DONE").write_text("137\n") and None,
        ["ref s1 exit code"],
        "137",
    ),
    "reference did not end": (remove("ref_s1.DONE"), ["ref s1 exit code"], "no DONE file"),
    "Ajax exit code": (
        lambda root: (root / "ajax.DONE").write_text("1\n") and None,
        ["ajax exit code"],
        "1",
    ),
    "reference configuration": (
        replace_text("ref_s1/config.yaml", "lr: 4e-05", "lr: 4e-04"),
        ["ref s1 configuration"],
        "opt.lr is '4e-04', expected 4e-05",
    ),
    "reference configuration lost": (
        remove("ref_s1/config.yaml"),
        ["ref s1 configuration"],
        "config.yaml is missing",
    ),
    "logdir of another run": (
        replace_text("ref_s1/config.yaml", "<out>/ref_s1", "<out>/ref_s0"),
        ["ref s1 configuration"],
        "logdir",
    ),
    "Ajax configuration": (
        edit_json(CONFIG, "dreamer_config", "actent", value=3e-3),
        ["ajax configuration"],
        "actent is 0.003, expected 0.0003",
    ),
    "Ajax configuration in one of two places": (
        edit_json(CONFIG, "agent_config", "train_ratio", value=256),
        ["ajax configuration"],
        "train_ratio is 256",
    ),
    "Ajax schedule": (
        edit_json(CONFIG, "schedule", "first_update_tick", value=65),
        ["ajax configuration"],
        "schedule.first_update_tick is 65, expected 64",
    ),
    "Ajax ring": (edit_json(CONFIG, "ring_rows", value=99), ["ajax configuration"], "ring_rows"),
    "Ajax configuration lost": (
        remove(CONFIG),
        ["ajax configuration"],
        "config.json is missing",
    ),
    "reference commit": (
        edit_json(ARGUMENTS, "reference_commit", value="b" * 40),
        ["ref s1 identity"],
        f"commit {'b' * 40}, expected 29eb964e",
    ),
    "reference dirty": (
        edit_json(ARGUMENTS, "reference_dirty", value=True),
        ["ref s1 identity"],
        "with uncommitted changes",
    ),
    "reference commit nowhere": (
        both(
            edit_json(ARGUMENTS, "reference_commit", value=None),
            edit_json("ref_s0/run_args.json", "reference_commit", value=None),
            replace_text("launch_info.txt", "reference: <", "reference was: <"),
        ),
        ["ref s0 identity", "ref s1 identity"],
        "no revision is recorded",
    ),
    "reference from elsewhere": (
        edit_json(ARGUMENTS, "agent_file", value="<elsewhere>/agent.py"),
        ["ref s1 arguments"],
        "agent_file",
    ),
    "another arm of one seed": (
        edit_json(ARGUMENTS, "arm", value="exact"),
        ["ref arm"],
        "mixed (exact, stock), round 1 has stock",
    ),
    "another arm of Ajax": (
        edit_json(CONFIG, "run", "arm", value="literal"),
        ["ajax arm"],
        "literal, round 1 has stock",
    ),
    "output nowhere": (
        replace_text("ref_s1/config.yaml", "<out>/ref_s1", "<elsewhere>/ref_s1"),
        ["ref s1 configuration"],
        "logdir is '<elsewhere>/ref_s1'",
    ),
    "reference arguments": (
        edit_json(ARGUMENTS, "eval_every", value=800),
        ["ref s1 arguments"],
        "eval_every is 800, expected 400",
    ),
    "changed release": (
        edit_json(CONFIG, "run", "ajax_distribution", "digest", value="0" * 64),
        ["ajax identity"],
        "files changed",
    ),
    "other release": (
        edit_json(CONFIG, "run", "ajax_distribution", "version", value="0.4.1"),
        ["ajax identity"],
        "ajax-rl 0.4.1, expected ajax-rl 0.4.0",
    ),
    "unexpected checkout": (
        edit_json(CONFIG, "run", "ajax_commit", value="c" * 40),
        ["ajax identity"],
        "--ajax-commit",
    ),
    "Ajax from elsewhere": (
        edit_json(CONFIG, "run", "ajax_file", value="<elsewhere>/ajax"),
        ["ajax identity"],
        "not where Ajax is",
    ),
    "Ajax arguments": (
        edit_json(CONFIG, "run", "eval_episodes", value=3),
        ["sizes of both sides"],
        "different sizes",
    ),
    "every episode twice": (
        edit_lines(EVALS, lambda rows: rows[2].update({k: rows[2][k] * 2 for k in LISTS})),
        ["ref s1 evaluation sizes"],
        "row 1200: 4 episodes of 2",
    ),
    "an episode too few": (
        edit_lines(EVALS, lambda rows: [rows[2][key].pop() for key in LISTS]),
        ["ref s1 evaluation sizes"],
        "is not that of its returns",
    ),
    "Ajax mean too low": (
        both(
            edit_last("ajax/s1/evals.jsonl", mean=0.5, len_mean=0.5),
            edit_last("ajax/s1/records.jsonl", eval_mean=0.5),
        ),
        ["ajax s1 evaluation sizes"],
        "row 1600: mean 0.5 outside 1..500",
    ),
    "mean return not the mean length": (
        edit_last("ajax/s1/evals.jsonl", len_mean=499.0),
        ["ajax s1 evaluation sizes"],
        "is not the mean length 499",
    ),
    "a return above the cap": (
        edit_lines(EVALS, lambda rows: rows[1].update(too_long(rows[1]))),
        ["ref s1 evaluation sizes", "ref s1 evaluations in both files"],
        "row 800: a return outside 1..500",
    ),
    "no returns": (
        edit_lines(EVALS, lambda rows: [row.update(returns=None, lengths=None) for row in rows]),
        ["ref s1 evaluation sizes"],
        "no returns are recorded",
    ),
    "mean not of its returns": (
        both(
            edit_lines(EVALS, lambda rows: rows[0].update(mean=rows[0]["mean"] + 0.5)),
            edit_lines(RECORDS, lambda rows: rows[0].update(eval_mean=rows[0]["eval_mean"] + 0.5)),
        ),
        ["ref s1 evaluation sizes"],
        "row 400: mean",
    ),
    "return not its length": (
        edit_lines(EVALS, lambda rows: rows[0].update(lengths=[7, 8])),
        ["ref s1 evaluation sizes"],
        "a return is not its length",
    ),
    "Ajax mean too high": (
        both(
            edit_last("ajax/s1/evals.jsonl", mean=500.5),
            edit_last("ajax/s1/records.jsonl", eval_mean=500.5),
        ),
        ["ajax s1 evaluation sizes"],
        "row 1600: mean 500.5 outside 1..500",
    ),
    "last evaluation lost": (
        edit_lines(EVALS, lambda rows: rows.pop()),
        ["ref s1 evaluations", "ref s1 finished"],
        "3 of 4 checkpoints, the last at row 1200",
    ),
    "last record lost": (
        edit_lines(RECORDS, lambda rows: rows.pop()),
        ["ref s1 records"],
        "3 of 4 checkpoints",
    ),
    "records lost": (remove(RECORDS), ["ref s1 records"], "records.jsonl is missing"),
    "files disagree": (
        edit_lines(RECORDS, lambda rows: rows[1].update(eval_mean=rows[1]["eval_mean"] + 1)),
        ["ref s1 evaluations in both files"],
        "row 800",
    ),
    "updates": (
        edit_lines(EVALS, lambda rows: rows[2].update(updates=82)),
        ["ref s1 updates"],
        "81 at row 1200 in records.jsonl, 82 in evals.jsonl",
    ),
    "updates that fall": (
        both(
            edit_lines(EVALS, lambda rows: rows[3].update(updates=80)),
            edit_lines(RECORDS, lambda rows: rows[3].update(updates=80)),
        ),
        ["ref s1 updates", "ref s1 finished"],
        "80 at row 1600, after 81",
    ),
    "Ajax updates": (
        edit_lines("ajax/s0/evals.jsonl", lambda rows: rows[1].update(updates=1)),
        ["ajax s0 updates"],
        "0 at row 800 in records.jsonl, 1 in evals.jsonl",
    ),
    "metric null": (
        edit_lines(RECORDS, set_metric(None)),
        ["ref s1 training metrics"],
        "row 1600: val/std is not a finite number",
    ),
    "patched": (
        lambda root: (root / "ref_s0/PATCH.txt").write_text("a patch"),
        ["ref s0 files"],
        "PATCH.txt is there, and the stock arm has no patch",
    ),
    "Ajax patched": (
        lambda root: (root / "ajax/PATCH.txt").write_text("a patch"),
        ["ajax files"],
        "PATCH.txt is there, and the stock arm has no patch",
    ),
    "negative time": (
        edit_json("ref_s1/timing.json", "total_s", value=-1.0),
        ["ref s1 files"],
        "total_s of timing.json is -1.0, not seconds",
    ),
    "time without end": (
        lambda root: (root / "ajax/timing.json").write_text('{"train_wall_s": 1e999}'),
        ["ajax files"],
        "train_wall_s of timing.json is inf, not seconds",
    ),
    "time in words": (
        edit_json("ref_s0/timing.json", "t_start", value="noon"),
        ["ref s0 files"],
        "t_start of timing.json is 'noon', not seconds",
    ),
    "no metrics": (
        edit_lines(RECORDS, lambda rows: rows[-1].update(train={})),
        ["ref s1 training metrics"],
        "no metric",
    ),
    "score not length": (
        edit_lines(EPISODES, lambda rows: rows[3].update(score=rows[3]["score"] + 1)),
        ["ref s1 episodes"],
        "is not its length",
    ),
    "episode too long": (
        edit_lines(EPISODES, lambda rows: rows[0].update(length=501, score=501.0)),
        ["ref s1 episodes"],
        "length 501 is outside 1..500",
    ),
    "ended without being terminal": (
        edit_lines(EPISODES, lambda rows: rows[5].update(terminal=False)),
        ["ref s1 episodes"],
        "without being terminal",
    ),
    "episode lost": (
        edit_lines(EPISODES, lambda rows: rows.pop(20)),
        ["ref s1 episodes"],
        "do not tile",
    ),
    "row numbers shifted": (
        edit_lines(EPISODES, lambda rows: rows[4].update(row_last=rows[4]["row_last"] - 1)),
        ["ref s1 episodes"],
        "do not tile",
    ),
    "episode past the end": (
        edit_lines(
            EPISODES,
            lambda rows: rows[-1].update(
                {key: rows[-1][key] + 1 for key in ("row_last", "length", "score")}
            ),
        ),
        ["ref s1 finished", "ref s1 episodes"],
        "0 episodes end on the flushed row, timing.json says 1",
    ),
    "unknown worker": (
        edit_lines(EPISODES, lambda rows: [r.update(worker=16) for r in rows if r["worker"] == 3]),
        ["ref s1 episodes"],
        "worker 16 is not one of 16",
    ),
    "episodes lost": (remove(EPISODES), ["ref s1 episodes"], "episodes.jsonl is missing"),
    "no flush": (
        edit_json("ref_s1/timing.json", "flush_episodes", value=...),
        ["ref s1 finished"],
        "flush_episodes is missing",
    ),
    "no end": (
        edit_json("ref_s1/timing.json", "t_end", value=...),
        ["ref s1 finished"],
        "t_end is missing",
    ),
    "flush counted wrong": (
        edit_json("ref_s1/timing.json", "flush_episodes", value=5),
        ["ref s1 finished"],
        "1 episodes end on the flushed row, timing.json says 5",
    ),
    "no timing": (remove("ref_s1/timing.json"), ["ref s1 finished"], "flush_episodes is missing"),
    "S2 above the cap": (
        edit_lines("ajax/s0/records.jsonl", lambda rows: rows[2].update(s2_logged=500.5)),
        ["ajax s0 training metrics"],
        "row 1200: S2 500.5 outside 1..500",
    ),
    "S2 audit": (shift_s2(2e-4), ["ajax s0 S2 audit"], "audited"),
    "final rows": (
        edit_final(rows=[1600, 1584]),
        ["ajax final rows"],
        "seed 1: 1584, expected 1600",
    ),
    "final updates": (
        edit_final(updates=[281, 280]),
        ["ajax final updates"],
        "seed 1: 280, expected 281",
    ),
    "final state lost": (
        remove("ajax/ajax_final.npz"),
        ["ajax final state"],
        "ajax_final.npz is missing",
    ),
}

#: The faults after which the data cannot be right: no rule is applied to them.
IMPOSSIBLE = {
    "an episode too few",
    "mean not of its returns",
    "return not its length",
    "Ajax mean too high",
    "Ajax mean too low",
    "mean return not the mean length",
    "a return above the cap",
    "files disagree",
    "updates",
    "updates that fall",
    "Ajax updates",
    "score not length",
    "episode too long",
    "ended without being terminal",
    "episode lost",
    "row numbers shifted",
    "episode past the end",
    "unknown worker",
    "flush counted wrong",
    "S2 above the cap",
    "S2 audit",
}

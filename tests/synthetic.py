"""Complete run directories with made-up figures, as the real writers leave them.

:func:`write_run` writes protocol section 7's layout for both sides: a run that passes every check
of ``analysis.compare``. Values are spelled out here and not taken from ``shared``, so that a wrong
table there is noticed. ``old=True`` writes what the published rounds left: rows without format
and with other names for two things, gzipped records, commits in ``launch_info.txt`` only, final
arrays of unknown names.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shared.records.digests import finish
from shared.records.layout import RunLayout
from shared.records.own_directory import OwnDirectories

REFERENCE_SHA = "29eb964e2918a3f4db04086f7f51b60388e97f3d"
OLD_AJAX_SHA = "5cb0738f3a2e127a3f8d64994eac3be1bc8c926e"
RELEASE = {
    "name": "ajax-rl",
    "version": "0.4.0",
    "digest": "3fcdd352e076be824d435aba26bd7f090bf24f8de0bb2d75025acff3d2845be1",
}
EMPTY_DIFF = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
ENVS = 16

Json = dict[str, Any]


def some_level(side: str, seed: int, rows: int) -> float:
    """Expected evaluation return, 9 to 500: a learning curve that differs by side and seed."""
    ceiling = (430.0 if side == "reference" else 380.0) - 25.0 * seed
    return 9.0 + ceiling / (1.0 + np.exp((13_000 - rows) / 2_500))


@dataclass(frozen=True)
class Plan:
    """What ran. ``level`` gives the expected evaluation return of ``(side, seed, rows)``."""

    round: int | str = 1
    seeds: tuple[int, ...] = (0, 1)
    rows: int = 4000
    every: int = 2000
    episodes: int = 10
    tiny: bool = False
    reference_arm: str = "stock"
    ajax_arm: str = "stock"
    sides: tuple[str, ...] = ("reference", "ajax")
    level: Callable[[str, int, int], float] = some_level
    old: bool = False
    #: Training metrics of ``(side, seed, rows)`` that replace the made-up ones.
    train: Callable[[str, int, int], Mapping[str, float]] | None = None
    #: Gzipped records and episodes, as results/ keeps them.
    packed: bool = False
    #: The line of launch_info.txt about the document that was fixed before.
    registered: str = ""

    @property
    def checkpoints(self) -> range:
        return range(self.every, self.rows + 1, self.every)


ROUND1 = Plan(1, (0, 1, 2), 20_000, 2_000)
ROUND2 = Plan(2, (0, 1, 2), 20_000, 2_000, reference_arm="exact", ajax_arm="literal")
ROUND3 = Plan(3, (0, 1, 2, 3, 4), 24_000, 400, reference_arm="exact-seeded")
SMOKE = Plan(1, (0, 1), 1_600, 400, 2, tiny=True)


def write_run(root: Path, plan: Plan = SMOKE) -> Path:
    """Write the run of ``plan`` into ``root`` and return ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "launch_info.txt").write_text(_launch_info(plan))
    if "reference" in plan.sides:
        for seed in plan.seeds:
            _reference(root, plan, seed)
    if "ajax" in plan.sides:
        _ajax(root, plan)
    return root


def updates(rows: int) -> int:
    return 0 if rows < 1040 else 1 + (rows - 1040) // 2


# --- training episodes ----------------------------------------------------------------------


def episodes_of(side: str, seed: int, rows: int) -> list[Json]:
    """Finished training episodes, in the order in which they ended.

    An environment's rows are numbered from 0 to rows / 16: the flush takes one step more than the
    loop. Worker 3 ends an episode on that step.
    """
    rng = np.random.default_rng([seed, len(side), 1])
    last_row = rows // ENVS
    found = []
    for worker in range(ENVS):
        first = 0
        while True:
            length = min(500, 8 + int(rng.exponential(12 + 60 * first / 1500)))
            left = last_row - first
            if worker == 3 and left - length <= 30 and left <= 500:
                length = left
            if first + length > last_row or length < 1:
                break
            first += length + 1
            found.append(
                {
                    "seed": seed,
                    "worker": worker,
                    "row_last": first - 1,
                    "length": length,
                    "score": float(length),
                    "terminal": length < 500,
                }
            )
    return sorted(found, key=lambda each: (each["row_last"], each["worker"]))


def buffers(episodes: Sequence[Json], rows: int) -> tuple[list[int], list[float]]:
    """Ajax's rolling buffer at ``rows``: how many returns each environment holds, and their sum."""
    scores: list[list[float]] = [[] for _ in range(ENVS)]
    for each in episodes:
        if each["row_last"] <= rows / ENVS:
            scores[each["worker"]].append(each["score"])
    return [len(each[-10:]) for each in scores], [sum(each[-10:]) for each in scores]


def s2_of(episodes: Sequence[Json], rows: int) -> float | None:
    counts, sums = buffers(episodes, rows)
    return sum(s / n for s, n in zip(sums, counts, strict=True)) / ENVS if all(counts) else None


# --- evaluations and records ----------------------------------------------------------------


def _returns(plan: Plan, side: str, seed: int, rows: int) -> list[float]:
    """Whole episode returns, 1 to 500, around the plan's level."""
    rng = np.random.default_rng([seed, len(side), rows, 2])
    drawn = plan.level(side, seed, rows) * (1 + 0.15 * rng.standard_normal(plan.episodes))
    return [float(each) for each in np.clip(np.round(drawn), 1, 500)]


_DISTRIBUTIONS = (
    "ent/action rand/action act/action adv rew weight val ret ret_normed replay_ret prior_ent "
    "post_ent"
).split()
_LOSSES = "rec rew con dyn rep actor critic repval".split()
_OPTIMISER = "opt_loss opt_grad_norm opt_update_norm opt_param_norm opt_grad_steps".split()
METRICS: tuple[str, ...] = (
    *(f"{name}_loss{suffix}" for name in _LOSSES for suffix in ("", "_std")),
    *_OPTIMISER,
    *(f"{name}/{part}" for name in _DISTRIBUTIONS for part in "mean std mag min max".split()),
    *(f"{name}/{part}" for name in ("data_rew", "pred_rew") for part in "max mean std".split()),
    *("td_error", "ret_rate", "activation/embed"),
)
_REFERENCE_NAMES = {
    "rec_loss": "vector_loss",
    "rew_loss": "reward_loss",
    "con_loss": "cont_loss",
    "repval_loss": "replay_critic_loss",
}


def _window(side: str, seed: int, rows: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, len(side), rows, 3])
    base = np.linspace(0.1, 3.0, len(METRICS)) * (1 + rows / 40_000)
    values = base * (1 + 0.05 * rng.standard_normal(len(METRICS)))
    window = {name: float(value) for name, value in zip(METRICS, values, strict=True)}
    spread = 0.02 * float(rng.standard_normal())
    window["ent/action/mean"] = min(0.69, 0.6 - rows / 100_000 + 0.01 * seed + spread)
    return window


def _reference_name(name: str) -> str:
    stem = name.removesuffix("_std")
    return _REFERENCE_NAMES.get(stem, stem) + name[len(stem) :]


def _lines(plan: Plan, side: str, seed: int) -> tuple[list[Json], list[Json]]:
    """Rows of ``evals.jsonl`` and ``records.jsonl``."""
    episodes = episodes_of(side, seed, plan.rows)
    evaluations, records, before = [], [], 0
    for rows in plan.checkpoints:
        done = updates(rows)
        returns = _returns(plan, side, seed, rows)
        mean = sum(returns) / len(returns)
        head = {"seed": seed, "rows": rows, "updates": done}
        listed: list[float] | None = returns
        if side == "ajax":  # logs the float32 mean only
            mean, listed = float(np.float32(mean)), None
        evaluation = {
            **head,
            "returns": listed,
            "lengths": listed and list(map(int, listed)),
            "mean": mean,
            "len_mean": mean,
            "wall_s": 100.0 + rows / 2,
        }
        record = {
            **head,
            "side": "ajax" if side == "ajax" else "ref",
            "eval_mean": mean,
            "eval_len_mean": mean,
            "eval_returns": listed,
            "s2_logged": _logged(plan, episodes, rows) if side == "ajax" else None,
            **_training(plan, side, seed, rows, done > before),
            "retnorm": {"low": 0.0, "high": rows / 4_000, "scale": max(1.0, rows / 4_000)},
            "wall_s": evaluation["wall_s"],
            "window_samples": done - before - (side == "reference" and before == 0 < done),
        }
        before = done
        evaluations.append(evaluation)
        records.append(record)
    return evaluations, records


def _logged(plan: Plan, episodes: Sequence[Json], rows: int) -> float | None:
    value = s2_of(episodes, rows)
    nothing = float("nan") if plan.old else None
    return nothing if value is None else float(np.float32(value))


def _training(plan: Plan, side: str, seed: int, rows: int, trained: bool) -> Json:
    window = _window(side, seed, rows) if trained else {}
    if trained and plan.train is not None:
        window |= plan.train(side, seed, rows)
    done = updates(rows)
    if side == "ajax":
        nothing = float("nan") if plan.old else None
        values = {name: window.get(name, nothing) for name in METRICS}
        return {"train": {**values, "n_updates": done}, "train_raw": None}
    derived = window["ret/std"] / window["ret_normed/std"] if trained else None
    raw = {_reference_name(name): value for name, value in window.items()}
    only = {"constats/avg": 0.9, "rewstats/avg": 0.9, "opt_param_count": 637511.0} if raw else {}
    train = {**window, "n_updates": done, "retnorm_scale_derived": derived}
    return {"train": train, "train_raw": {**raw, **only}}


def write_lines(path: Path, rows: Sequence[Json], *, plan: Plan, packed: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [_published(row) if plan.old else {"format": 1, **row} for row in rows]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        path.write_text(text)


def _published(row: Json) -> Json:
    """A row as the published rounds have it: other names, and Ajax's without what it lacks."""
    names = {"window_samples": "n_metric_samples"}
    found = {names.get(key, key): value for key, value in row.items()}
    if "mean" in row and row["returns"] is None:
        return {key: value for key, value in found.items() if key not in ("lengths", "wall_s")}
    if row.get("side") == "ajax":
        return found | {"train_raw": row["train"], "retnorm": None}
    if bounds := row.get("retnorm"):
        found["retnorm"] = {"lo": bounds["low"], "hi": bounds["high"], "scale": bounds["scale"]}
    return found


# --- the reference side ---------------------------------------------------------------------


def _reference(root: Path, plan: Plan, seed: int) -> None:
    name = f"ref_s{seed}"
    directory = root / name
    evaluations, records = _lines(plan, "reference", seed)
    episodes = episodes_of("reference", seed, plan.rows)
    write_lines(directory / "evals.jsonl", evaluations, plan=plan)
    write_lines(directory / "records.jsonl", records, plan=plan, packed=plan.old or plan.packed)
    write_lines(directory / "episodes.jsonl", episodes, plan=plan, packed=plan.old or plan.packed)
    (directory / "config.yaml").write_text(_yaml(_reference_config(plan, seed)))
    _write(directory / "run_args.json", _run_args(plan, seed))
    flushed = sum(each["row_last"] == plan.rows // ENVS for each in episodes)
    timing = {
        "t_start": 1.0e9,
        "t_loop_start": 1.0e9 + 300,
        "first_update_step": 1040,
        "t_first_update": 1.0e9 + 310,
        "flush_episodes": flushed,
        "t_end": 1.0e9 + 9000,
        "build_and_compile_s": 300.0,
        "total_s": 9000.0,
    }
    observed = {} if plan.old else {"observer_s": 3.0, "evaluation_s": 60.0}
    _write(directory / "timing.json", timing | observed)
    if plan.reference_arm != "stock":
        (directory / "PATCH.txt").write_text("dreamerv3.jaxutils.TwoHotDist.mean is replaced\n")
    (root / f"{name}.DONE").write_text("0\n")
    (root / f"{name}.log").write_text(f"{name}: done\n")


def seal(root: Path) -> None:
    """Leave the digests that the processes leave when they end."""
    for path in root.glob("*.DONE"):
        finish(RunLayout(root), path.stem, OwnDirectories(root))


def _reference_config(plan: Plan, seed: int) -> Json:
    units, hidden, deter, classes = (16, 16, 64, 4) if plan.tiny else (64, 64, 512, 4)
    head = {"units": units, "layers": 3, "act": "silu", "norm": "rms", "winit": "normal"}
    return {
        "seed": seed,
        "task": "gymnax_cartpole",
        "logdir": f"<out>/ref_s{seed}",
        "batch_size": 16,
        "batch_length": 65,
        "batch_length_eval": 33,
        "replay_length": 65,
        "replay_length_eval": 33,
        "replay_context": 1,
        "replay": {"size": 5e6, "online": True, "chunksize": 1024},
        "horizon": 333,
        "imag_length": 15,
        "contdisc": True,
        "opt": {"lr": 4e-5, "warmup": 1000, "eps": 1e-20, "scaler": "rms"},
        "jax": {
            "platform": "cpu",
            "compute_dtype": "float32",
            "param_dtype": "float32",
            "prealloc": False,
            "transfer_guard": False,
        },
        "dyn": {
            "typ": "rssm",
            "rssm": {
                "deter": deter,
                "hidden": hidden,
                "stoch": 32,
                "classes": classes,
                "blocks": 8,
            },
        },
        "enc": {"spaces": ".*", "simple": head},
        "dec": {"spaces": ".*", "simple": head},
        **dict.fromkeys(("rewhead", "conhead", "actor", "critic"), head),
        "run": {
            "train_ratio": 512.0,
            "steps": float(plan.rows),
            "num_envs": 16,
            "log_every": -1,
            "eval_every": -1,
            "save_every": -1,
            "driver_parallel": False,
            "train_fill": 0,
        },
    }


def _yaml(value: Mapping[str, Any], indent: str = "") -> str:
    """YAML as the reference writes it: 4e-05 without a dot, which YAML 1.1 reads as text."""
    lines = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            lines.append(f"{indent}{key}:\n{_yaml(item, indent + '  ')}")
        else:
            text = str(item).lower() if isinstance(item, bool) else str(item)
            lines.append(f"{indent}{key}: {text}\n")
    return "".join(lines)


def _run_args(plan: Plan, seed: int) -> Json:
    checkout = "<reference-checkout>"
    arguments: Json = {
        "seed": seed,
        "rows": plan.rows,
        "eval_every": plan.every,
        "eval_episodes": plan.episodes,
        "progress_every": 160,
        "out": f"<out>/ref_s{seed}",
        "tiny": plan.tiny,
        "overrides": {"seed": seed},
        "jax": "0.4.26",
        "xla_flags": "",
        "agent_file": f"{checkout}/dreamerv3/agent.py",
        "embodied_file": f"{checkout}/embodied/__init__.py",
    }
    if plan.old:
        return arguments
    recorded = {"reference_commit": REFERENCE_SHA, "reference_dirty": False, "python": "3.11.7"}
    return arguments | {"arm": plan.reference_arm} | recorded | {"packages": {"jax": "0.4.26"}}


# --- the Ajax side --------------------------------------------------------------------------


def _ajax(root: Path, plan: Plan) -> None:
    directory = root / "ajax"
    final: dict[str, list[Any]] = {"return_count": [], "return_sum": []}
    for seed in plan.seeds:
        evaluations, records = _lines(plan, "ajax", seed)
        write_lines(directory / f"s{seed}" / "evals.jsonl", evaluations, plan=plan)
        path = directory / f"s{seed}" / "records.jsonl"
        write_lines(path, records, plan=plan, packed=plan.old or plan.packed)
        counts, sums = buffers(episodes_of("ajax", seed, plan.rows), plan.rows)
        final["return_count"].append(counts)
        final["return_sum"].append(sums)
    _write(directory / "config.json", _ajax_config(plan))
    _write(directory / "timing.json", {"train_wall_s": 5000.0})
    save_final(directory / "ajax_final.npz", plan, final["return_count"], final["return_sum"])
    if plan.ajax_arm != "stock":
        (directory / "PATCH.txt").write_text("ajax.distributional.TwoHot.decode is replaced\n")
    (root / "ajax.DONE").write_text("0\n")
    (root / "ajax.log").write_text("ajax: done\n")


def save_final(path: Path, plan: Plan, counts: list[list[int]], sums: list[list[float]]) -> None:
    n = len(plan.seeds)
    arrays = {
        "seeds": np.array(plan.seeds),
        "rows": np.full(n, plan.rows, np.int32),
        "updates": np.full(n, updates(plan.rows), np.int32),
        "retnorm_low": np.zeros(n, np.float32),
        "retnorm_high": np.full(n, plan.rows / 4_000, np.float32),
        "return_buffer": np.zeros((n, 10, ENVS), np.float32),
        "return_count": np.array(counts, np.int8),
        "return_index": np.array(counts, np.int8) % 10,
        "return_sum": np.array(sums, np.float32),
    }
    if plan.old:
        arrays = {f"state/{name}": value for name, value in arrays.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type]


_MODEL = """
stoch 32 blocks 8 enc_layers 3 dec_layers 3 rew_layers 1 con_layers 1 actor_layers 3
critic_layers 3 bins 255 unimix 0.01 actor_unimix 0.01 free_nats 1.0 rec_scale 1.0 rew_scale 1.0
con_scale 1.0 dyn_scale 1.0 rep_scale 0.1 actor_scale 1.0 critic_scale 1.0 repval_scale 0.3
return_horizon 333.0 imag_horizon 15 lam 0.95 repval_lam 0.95 actent 0.0003 slowreg 1.0
slow_rate 0.02 retnorm_rate 0.01 retnorm_limit 1.0 minstd 0.1 maxstd 1.0 learning_rate 4e-05
agc 0.3 agc_pmin 0.001 beta1 0.9 beta2 0.999 eps 1e-20 warmup 1000 weight_decay 0.0
"""


def values(text: str) -> Json:
    words = text.split()
    return dict(zip(words[::2], map(json.loads, words[1::2]), strict=True))


def _ajax_config(plan: Plan) -> Json:
    units, hidden, deter, classes = (16, 16, 64, 4) if plan.tiny else (64, 64, 512, 4)
    width = {"units": units, "hidden": hidden, "deter": deter, "classes": classes}
    model = width | values(_MODEL)
    agent = {"train_ratio": 512, "batch_size": 16, "batch_length": 64, "replay_capacity": 5000000}
    given = {"env_id": "CartPole-v1", "model_size": "1m"}
    chosen: dict[str, int | None] = dict(width) if plan.tiny else dict.fromkeys(width)
    run: Json = {
        "seeds": list(plan.seeds),
        "rows": plan.rows,
        "log_every": plan.every,
        "eval_episodes": plan.episodes,
        "out": "<out>/ajax",
        "tiny": plan.tiny,
        "mode": "vmap",
        "jax": "0.7.2",
        "xla_flags": "",
        "ajax_file": "<ajax-src>/ajax/__init__.py"
        if plan.old
        else "<site-packages>/ajax/__init__.py",
    }
    if not plan.old:
        identity = {"ajax_commit": None, "ajax_dirty": None, "ajax_distribution": dict(RELEASE)}
        run |= {"arm": plan.ajax_arm} | identity | {"packages": {"jax": "0.7.2"}}
    return {
        "constructor": given | chosen | agent,
        "dreamer_config": model,
        "agent_config": {"expose_recent_rollout": False} | agent,
        "schedule": {
            "first_update_step": 1040,
            "first_update_tick": 64,
            "total_updates": updates(plan.rows),
        },
        "n_envs": ENVS,
        "ring_rows": plan.rows // ENVS,
        "run": run,
    }


# --- the launch -----------------------------------------------------------------------------


def _launch_info(plan: Plan) -> str:
    if plan.old:
        return (
            "launched: 2026-10-03 20:29:57 +0200\n"
            "host: Darwin arm64\n"
            "load: 20:29  up 16 days,  1:09, 1 user, load averages: 22.39 22.57 24.61\n"
            f"reference: <reference-checkout> @ {REFERENCE_SHA}\n"
            f"ajax: <ajax-root> @ {OLD_AJAX_SHA}; uncommitted diff vs HEAD sha1: {EMPTY_DIFF}\n"
            "REF_XLA_FLAGS='' AJAX_XLA_FLAGS=''\n"
            f"rows {plan.rows}, every {plan.every}, eval episodes {plan.episodes}, "
            f"seeds {' '.join(map(str, plan.seeds))}\n"
        )
    release = f"{RELEASE['name']} {RELEASE['version']}; digest sha256: {RELEASE['digest']}"
    registered = f"pre-registration: {plan.registered}\n" if plan.registered else ""
    return (
        "format: 1\nlaunched: 2026-11-29 18:32:58 +0000\nsystem: Linux x86_64\n"
        f"round: {plan.round}\nsmoke: {'yes' if plan.tiny else 'no'}\n"
        f"sides: {' '.join(plan.sides)}\n"
        f"reference arm: {plan.reference_arm}\najax arm: {plan.ajax_arm}\n"
        f"reference: <reference-checkout> @ {REFERENCE_SHA}; dirty: no\n"
        f"ajax: {release}\nproject: <repo> @ {'a' * 40}; dirty: no\n"
        f"REF_XLA_FLAGS:\nAJAX_XLA_FLAGS:\nrows: {plan.rows}\nevery: {plan.every}\n"
        f"episodes: {plan.episodes}\nseeds: {' '.join(map(str, plan.seeds))}\n"
        f"departs from the protocol: no\n{registered}"
        "jobs: 2\ncommand: python -m launch.round --out <out>\n"
    )


def _write(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")

"""Both sides' configurations (protocol section 3): what is set, and what must come out resolved."""

from collections.abc import Mapping
from typing import Any

from shared.protocol import FULL_WIDTHS, N_ENVS, TINY_WIDTHS

#: A label only: the environment factory is replaced.
REFERENCE_TASK = "gymnax_cartpole"
#: Sub-configurations of the reference with a ``units`` width (the regex key ``.*\.units``).
REFERENCE_UNITS = (
    "enc.simple.units",
    "dec.simple.units",
    "rewhead.units",
    "conhead.units",
    "actor.units",
    "critic.units",
)


def widths(*, tiny: bool) -> dict[str, int]:
    """Layer widths by name: units, hidden, deter, classes."""
    return dict(TINY_WIDTHS if tiny else FULL_WIDTHS)


def reference_overrides(*, seed: int, rows: int, logdir: str, tiny: bool) -> dict[str, Any]:
    """Overrides on ``defaults`` of the reference's ``configs.yaml``; keys are its flat keys."""
    width = widths(tiny=tiny)
    return {
        "seed": seed,
        "task": REFERENCE_TASK,
        "logdir": logdir,
        "jax.platform": "cpu",
        "jax.compute_dtype": "float32",
        "jax.param_dtype": "float32",
        "jax.prealloc": False,
        "jax.transfer_guard": False,
        "dyn.rssm.deter": width["deter"],
        "dyn.rssm.hidden": width["hidden"],
        "dyn.rssm.classes": width["classes"],
        r".*\.units": width["units"],
        "run.train_ratio": 512.0,
        "run.steps": rows,
        "run.num_envs": N_ENVS,
        "run.log_every": -1,
        "run.eval_every": -1,
        "run.save_every": -1,
        "run.driver_parallel": False,
    }


def reference_resolved(*, seed: int, rows: int, logdir: str, tiny: bool) -> dict[str, Any]:
    """Values that a run's ``config.yaml`` must hold; flat keys (``dyn.rssm.deter``)."""
    expected = reference_overrides(seed=seed, rows=rows, logdir=logdir, tiny=tiny)
    units = expected.pop(r".*\.units")
    return (
        expected
        | dict.fromkeys(REFERENCE_UNITS, units)
        | {
            "dyn.rssm.stoch": 32,
            "dyn.rssm.blocks": 8,
            "run.train_fill": 0,
            "batch_size": 16,
            "batch_length": 65,
            "replay_length": 65,
            "replay_length_eval": 33,
            "replay_context": 1,
            "replay.size": 5e6,
            "replay.online": True,
            "opt.lr": 4e-5,
            "opt.warmup": 1000,
            "horizon": 333,
            "imag_length": 15,
            "contdisc": True,
        }
    )


#: Resolved values of ``DreamerV3("CartPole-v1", model_size="1m")``, wherever its configuration
#: keeps them; the four widths come from :func:`widths`.
_AJAX_RESOLVED: dict[str, Any] = {
    "stoch": 32,
    "blocks": 8,
    "enc_layers": 3,
    "dec_layers": 3,
    "rew_layers": 1,
    "con_layers": 1,
    "actor_layers": 3,
    "critic_layers": 3,
    "bins": 255,
    "unimix": 0.01,
    "actor_unimix": 0.01,
    "free_nats": 1.0,
    "rec_scale": 1.0,
    "rew_scale": 1.0,
    "con_scale": 1.0,
    "dyn_scale": 1.0,
    "rep_scale": 0.1,
    "actor_scale": 1.0,
    "critic_scale": 1.0,
    "repval_scale": 0.3,
    "return_horizon": 333,
    "imag_horizon": 15,
    "lam": 0.95,
    "repval_lam": 0.95,
    "actent": 3e-4,
    "slowreg": 1.0,
    "slow_rate": 0.02,
    "retnorm_rate": 0.01,
    "retnorm_limit": 1.0,
    "minstd": 0.1,
    "maxstd": 1.0,
    "learning_rate": 4e-5,
    "agc": 0.3,
    "agc_pmin": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-20,
    "warmup": 1000,
    "train_ratio": 512,
    "batch_size": 16,
    "batch_length": 64,
    "replay_capacity": 5e6,
}


def ajax_resolved(*, tiny: bool) -> dict[str, Any]:
    """Values that a run's ``config.json`` must hold, by the configuration's own field names."""
    return widths(tiny=tiny) | _AJAX_RESOLVED


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one mapping with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{name}."))
        else:
            flat[name] = value
    return flat

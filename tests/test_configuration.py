"""Both sides' configurations against the protocol's text (section 3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.configuration import (
    ajax_resolved,
    flatten,
    reference_overrides,
    reference_resolved,
    widths,
)

REGEX = r".*\.units"


@pytest.mark.parametrize(
    ("tiny", "expected"),
    [
        (False, {"units": 64, "hidden": 64, "deter": 512, "classes": 4}),
        (True, {"units": 16, "hidden": 16, "deter": 64, "classes": 4}),
    ],
)
def test_widths_are_those_of_the_protocol(tiny: bool, expected: dict[str, int]) -> None:
    assert widths(tiny=tiny) == expected
    widths(tiny=tiny)["units"] = 0
    assert widths(tiny=tiny) == expected, "the table itself is not handed out"


def test_overrides_of_the_reference_are_those_of_the_protocol() -> None:
    assert reference_overrides(seed=2, rows=20_000, logdir="<out>/ref_s2", tiny=False) == {
        "seed": 2,
        "task": "gymnax_cartpole",
        "logdir": "<out>/ref_s2",
        "jax.platform": "cpu",
        "jax.compute_dtype": "float32",
        "jax.param_dtype": "float32",
        "jax.prealloc": False,
        "jax.transfer_guard": False,
        "dyn.rssm.deter": 512,
        "dyn.rssm.hidden": 64,
        "dyn.rssm.classes": 4,
        REGEX: 64,
        "run.train_ratio": 512.0,
        "run.steps": 20_000,
        "run.num_envs": 16,
        "run.log_every": -1,
        "run.eval_every": -1,
        "run.save_every": -1,
        "run.driver_parallel": False,
    }


@given(st.integers(0, 9), st.integers(16, 30_000), st.booleans())
def test_resolved_values_hold_every_override_and_what_stays_at_its_default(
    seed, rows, tiny
) -> None:
    arguments = {"seed": seed, "rows": rows, "logdir": "x", "tiny": tiny}
    overrides, resolved = reference_overrides(**arguments), reference_resolved(**arguments)
    units = overrides.pop(REGEX)
    assert REGEX not in resolved
    assert overrides.items() <= resolved.items()
    owners = ("enc.simple", "dec.simple", "rewhead", "conhead", "actor", "critic")
    assert {f"{owner}.units": units for owner in owners}.items() <= resolved.items()
    defaults = {
        "dyn.rssm.stoch": 32,
        "dyn.rssm.blocks": 8,
        "run.train_fill": 0,
        "batch_size": 16,
        "batch_length": 65,
        "replay_length": 65,
        "replay_length_eval": 33,
        "replay_context": 1,
        "replay.size": 5_000_000,
        "replay.online": True,
        "opt.lr": 4e-5,
        "opt.warmup": 1_000,
        "horizon": 333,
        "imag_length": 15,
        "contdisc": True,
    }
    assert defaults.items() <= resolved.items()
    assert len(resolved) == len(overrides) + len(owners) + len(defaults)


@pytest.mark.parametrize("tiny", [False, True])
def test_resolved_values_of_ajax_are_those_of_the_protocol(tiny: bool) -> None:
    text = (
        "stoch 32 blocks 8 enc_layers 3 dec_layers 3 rew_layers 1 con_layers 1 actor_layers 3 "
        "critic_layers 3 bins 255 unimix 0.01 actor_unimix 0.01 free_nats 1 rec_scale 1 "
        "rew_scale 1 con_scale 1 dyn_scale 1 rep_scale 0.1 actor_scale 1 critic_scale 1 "
        "repval_scale 0.3 return_horizon 333 imag_horizon 15 lam 0.95 repval_lam 0.95 actent "
        "3e-4 slowreg 1 slow_rate 0.02 retnorm_rate 0.01 retnorm_limit 1 minstd 0.1 maxstd 1 "
        "learning_rate 4e-5 agc 0.3 agc_pmin 1e-3 beta1 0.9 beta2 0.999 eps 1e-20 warmup 1000 "
        "train_ratio 512 batch_size 16 batch_length 64 replay_capacity 5e6"
    ).split()
    expected = dict(zip(text[::2], map(float, text[1::2]), strict=True))
    found = ajax_resolved(tiny=tiny)
    assert found == expected | widths(tiny=tiny)
    ajax_resolved(tiny=tiny).clear()
    assert ajax_resolved(tiny=tiny) == found


def test_nested_mappings_are_flattened_to_dotted_keys() -> None:
    nested = {"a": {"b": {"c": 1}, "d": [1, {"e": 2}]}, "f": None, "g": {}}
    assert flatten(nested) == {"a.b.c": 1, "a.d": [1, {"e": 2}], "f": None}


@given(st.dictionaries(st.tuples(st.sampled_from("ab"), st.sampled_from("cd")), st.integers()))
def test_flattening_loses_nothing(values: dict[tuple[str, str], int]) -> None:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), value in values.items():
        nested.setdefault(outer, {})[inner] = value
    assert flatten(nested) == {".".join(key): value for key, value in values.items()}

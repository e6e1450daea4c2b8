"""Metric names of both sides against the protocol's table (section 10)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics import (
    AJAX_TO_REFERENCE,
    DERIVED_SCALE,
    EXACT_SCALE,
    REFERENCE_TO_AJAX,
    TABLE_METRICS,
    derived_scale,
    to_ajax_names,
)


def table_of_section_10() -> dict[str, str]:
    names = dict(
        zip(
            "rec_loss rew_loss con_loss repval_loss".split(),
            "vector_loss reward_loss cont_loss replay_critic_loss".split(),
            strict=True,
        )
    )
    for name in "dyn_loss rep_loss actor_loss critic_loss".split():
        names[name] = name
    names |= {f"{ajax}_std": f"{reference}_std" for ajax, reference in names.items()}
    same = [f"opt_{what}" for what in "loss grad_norm update_norm param_norm grad_steps".split()]
    for name in (
        "ent/action rand/action act/action adv rew weight val ret ret_normed replay_ret "
        "prior_ent post_ent"
    ).split():
        same += [f"{name}/{moment}" for moment in ("mean", "std", "mag", "min", "max")]
    same += ["td_error", "ret_rate", "activation/embed"]
    for name in ("data_rew", "pred_rew"):
        same += [f"{name}/{moment}" for moment in ("max", "mean", "std")]
    return names | {name: name for name in same} | {"n_updates": "updates"}


def test_the_name_map_is_the_protocols_table() -> None:
    assert table_of_section_10() == AJAX_TO_REFERENCE


def test_the_name_map_goes_both_ways() -> None:
    assert len(REFERENCE_TO_AJAX) == len(AJAX_TO_REFERENCE)
    assert all(REFERENCE_TO_AJAX[ref] == ajax for ajax, ref in AJAX_TO_REFERENCE.items())


@given(st.dictionaries(st.sampled_from([*REFERENCE_TO_AJAX, "rewstats/x", "else"]), st.floats()))
def test_a_window_is_renamed_and_nothing_in_it_changed(window: dict[str, float]) -> None:
    found = to_ajax_names(window)
    known = {name for name in window if name in REFERENCE_TO_AJAX}
    assert set(found) == {REFERENCE_TO_AJAX[name] for name in known}
    assert all(found[REFERENCE_TO_AJAX[name]] is window[name] for name in known)


def test_the_published_tables_have_31_known_metrics() -> None:
    assert len(TABLE_METRICS) == len(set(TABLE_METRICS)) == 31
    assert set(TABLE_METRICS) <= {*AJAX_TO_REFERENCE, DERIVED_SCALE, EXACT_SCALE}


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"ret/std": 3.0, "ret_normed/std": 2.0}, 1.5),
        ({"ret/std": 0.0, "ret_normed/std": 2.0}, 0.0),
        ({"ret/std": 3.0, "ret_normed/std": 0.0}, None),
        ({"ret/std": 3.0}, None),
        ({"ret_normed/std": 3.0}, None),
        ({}, None),
    ],
)
def test_the_derived_scale_is_a_quotient_of_window_means(window, expected) -> None:
    assert derived_scale(window) == expected


@given(st.floats(0.01, 100), st.floats(1, 100))
def test_the_derived_scale_is_the_divisor_of_the_returns(spread: float, scale: float) -> None:
    found = derived_scale({"ret/std": spread, "ret_normed/std": spread / scale})
    assert found is not None and math.isclose(found, scale, rel_tol=1e-12)

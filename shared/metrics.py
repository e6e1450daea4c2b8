"""Names of training metrics on both sides (protocol section 10)."""

import math
from collections.abc import Iterable, Mapping

_RENAMED_LOSSES = {
    "rec_loss": "vector_loss",
    "rew_loss": "reward_loss",
    "con_loss": "cont_loss",
    "repval_loss": "replay_critic_loss",
}
_SAME_LOSSES = ("dyn_loss", "rep_loss", "actor_loss", "critic_loss")
_OPTIMISER = ("opt_loss", "opt_grad_norm", "opt_update_norm", "opt_param_norm", "opt_grad_steps")
_DISTRIBUTIONS = (
    "ent/action",
    "rand/action",
    "act/action",
    "adv",
    "rew",
    "weight",
    "val",
    "ret",
    "ret_normed",
    "replay_ret",
    "prior_ent",
    "post_ent",
)
_MOMENTS = ("mean", "std", "mag", "min", "max")
_SCALARS = (
    "td_error",
    "ret_rate",
    *(f"{name}/{moment}" for name in ("data_rew", "pred_rew") for moment in ("max", "mean", "std")),
    "activation/embed",
)


def _ajax_to_reference() -> dict[str, str]:
    names: dict[str, str] = {"n_updates": "updates"}
    for ajax, reference in [*_RENAMED_LOSSES.items(), *((name, name) for name in _SAME_LOSSES)]:
        names[ajax] = reference
        names[f"{ajax}_std"] = f"{reference}_std"
    for name in (*_OPTIMISER, *_SCALARS):
        names[name] = name
    for name in _DISTRIBUTIONS:
        for moment in _MOMENTS:
            names[f"{name}/{moment}"] = f"{name}/{moment}"
    return names


#: Ajax's name of a metric -> the reference's, without either side's logging prefix.
AJAX_TO_REFERENCE: dict[str, str] = _ajax_to_reference()
REFERENCE_TO_AJAX: dict[str, str] = {ref: ajax for ajax, ref in AJAX_TO_REFERENCE.items()}

#: Ajax's names of the losses that an update minimises: once one is not finite, no parameter is.
LOSSES: tuple[str, ...] = (*_RENAMED_LOSSES, *_SAME_LOSSES, "opt_loss")
#: The same under the reference's names.
REFERENCE_LOSSES: tuple[str, ...] = tuple(AJAX_TO_REFERENCE[name] for name in LOSSES)

#: Window mean of ``ret/std`` over that of ``ret_normed/std``: the return normaliser's scale.
DERIVED_SCALE = "retnorm_scale_derived"
EXACT_SCALE = "retnorm_scale_exact"

#: The 31 window metrics of the published tables, in their order.
TABLE_METRICS: tuple[str, ...] = (
    "rec_loss",
    "rew_loss",
    "con_loss",
    "dyn_loss",
    "rep_loss",
    "actor_loss",
    "critic_loss",
    "repval_loss",
    "ent/action/mean",
    "rand/action/mean",
    "ret/mean",
    "ret/std",
    "ret_normed/std",
    "val/mean",
    "adv/std",
    "replay_ret/mean",
    "weight/mean",
    "rew/mean",
    "prior_ent/mean",
    "post_ent/mean",
    "td_error",
    "data_rew/mean",
    "pred_rew/mean",
    "activation/embed",
    "opt_loss",
    "opt_grad_norm",
    "opt_update_norm",
    "opt_param_norm",
    "opt_grad_steps",
    DERIVED_SCALE,
    EXACT_SCALE,
)


def to_ajax_names(metrics: Mapping[str, float]) -> dict[str, float]:
    """The mapped metrics of one reference window, under Ajax's names; others are left out."""
    return {
        REFERENCE_TO_AJAX[name]: value
        for name, value in metrics.items()
        if name in REFERENCE_TO_AJAX
    }


def derived_scale(window: Mapping[str, float]) -> float | None:
    """Return-normaliser scale from a window's means; ``None`` where a mean is absent or zero."""
    plain, normed = window.get("ret/std"), window.get("ret_normed/std")
    if plain is None or not normed:
        return None
    return plain / normed


def not_finite(metrics: Mapping[str, float | None], names: Iterable[str]) -> tuple[str, ...]:
    """Those of ``names`` whose metric is there and is NaN or infinite."""
    found = ((name, metrics.get(name)) for name in names)
    return tuple(name for name, value in found if value is not None and not math.isfinite(value))

"""What follows the form of the expectation and what does not: claims over four matched runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import numpy as np

from diagnose.departures import Departure, Series, family
from diagnose.findings import Claim, number
from shared.matched_case import Form
from shared.protocol import SIDES, Side

Arm = tuple[Side, Form]
#: Every arm's series.
Runs = Mapping[Arm, Series]

FORMS: tuple[Form, ...] = get_args(Form)
ARMS: tuple[Arm, ...] = tuple((side, form) for side in SIDES for form in FORMS)

#: Published to follow the form early (protocol section 11).
FOLLOWERS = ("ret/std", "adv/std", "val/std")
#: Losses of the world model, which no expectation enters.
WORLD_LOSSES = ("vector_loss", "reward_loss", "cont_loss", "dyn_loss", "rep_loss")
#: Largest relative difference of their means over all updates. What noise in the returns does to
#: them comes through the replay critic's gradient; a draw of other noise moves them as much.
WORLD_TOLERANCE = 0.02
#: Families of what reward head and critic predict, and of returns, which are made of it.
PREDICTED = ("rew", "pred_rew", "val", "ret", "ret_normed", "replay_ret", "adv", "td_error")
ENTROPY = "ent/action/mean"
#: From here on the entropy must follow the form. It does in the published window that ends at 4000
#: rows, of updates 482 to 1481: its middle, so that the last third of a run lies where it shows.
LONG_UPDATES = 1000
#: Share of the last updates over which it is averaged then.
_LAST = 1 / 3


def other(arm: Arm) -> tuple[Arm, Arm]:
    """The same form on the other side, and the other form on the same side."""
    side, form = arm
    return (SIDES[1 - SIDES.index(side)], form), (side, FORMS[1 - FORMS.index(form)])


def label(arm: Arm) -> str:
    """As it is called in tables."""
    return " ".join(arm)


def form_claims(
    runs: Runs, parting: Mapping[tuple[Arm, Arm], Sequence[Departure]]
) -> Iterator[Claim]:
    """The published statements about the form; ``parting`` has the departures of every pair."""
    for metric in FOLLOWERS:
        levels = {arm: float(np.mean(runs[arm][metric])) for arm in ARMS}
        yield _follows(metric, levels, "its mean", logarithmic=True)
    yield _world(runs)
    yield _parts_in_predictions(parting)
    if len(runs[ARMS[0]][ENTROPY]) >= LONG_UPDATES:
        first = int(len(runs[ARMS[0]][ENTROPY]) * (1 - _LAST))
        levels = {arm: float(np.mean(runs[arm][ENTROPY][first:])) for arm in ARMS}
        yield _follows(ENTROPY, levels, f"its mean from update {first + 1} on", logarithmic=False)


def _follows(metric: str, levels: Mapping[Arm, float], what: str, *, logarithmic: bool) -> Claim:
    scaled = {arm: float(np.log(x)) if logarithmic else x for arm, x in levels.items()}
    holds = []
    for arm in ARMS:
        near, far = (abs(scaled[arm] - scaled[each]) for each in other(arm))
        holds.append(near < far)
    ratio = " in ratio" if logarithmic else ""
    return Claim(
        f"{metric} follows the form: in every arm {what} is nearer{ratio} to the same form on the "
        "other side than to the other form on its own",
        ", ".join(f"{label(arm)} {levels[arm]:.4g}" for arm in ARMS),
        all(holds),
        "an arm that is nearer to its own side",
    )


def _world(runs: Runs) -> Claim:
    spread = {}
    for loss in WORLD_LOSSES:
        means = [np.mean(runs[arm][loss]) for arm in ARMS]
        # Of numpy, whose extremes of a NaN are NaN.
        spread[loss] = float(np.max(means) / np.min(means) - 1)
    worst = max(spread, key=lambda loss: (math.isnan(spread[loss]), spread[loss]))
    return Claim(
        f"the world model's losses do not: their means agree within {100 * WORLD_TOLERANCE:g} % in "
        "all four arms",
        f"largest difference {100 * spread[worst]:.2g} % ({worst})",
        all(each <= WORLD_TOLERANCE for each in spread.values()),
        "a larger difference",
    )


def _parts_in_predictions(parting: Mapping[tuple[Arm, Arm], Sequence[Departure]]) -> Claim:
    firsts = {}
    for side in SIDES:
        found = parting[(side, "literal"), (side, "exact")]
        firsts[side] = [each for each in found if each.update == found[0].update]
    measured = "; ".join(
        f"{side}: {found[0].metric} and {len(found) - 1} others at update {found[0].update}"
        if found
        else f"{side}: nothing"
        for side, found in firsts.items()
    )
    return Claim(
        "within each side the forms part at the first update, most in what the critic or the "
        "reward head predicts, and there no loss of the world model differs",
        measured,
        all(
            found
            and found[0].update == 1
            and family(found[0].metric) in PREDICTED
            and not {each.metric for each in found} & {*WORLD_LOSSES}
            for found in firsts.values()
        ),
        "forms that do not part at once or in something else, or a loss of the world model that "
        "does",
    )


def levels_of(runs: Runs) -> dict[str, dict[str, str]]:
    """Metric -> arm -> mean over all updates, for the table of what follows the form."""
    return {
        metric: {label(arm): number(float(np.mean(runs[arm][metric]))) for arm in ARMS}
        for metric in (*FOLLOWERS, ENTROPY, *WORLD_LOSSES)
    }

"""What part ``expectation`` measures: cases of logits, and each form's errors on them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shared.probes.parameter_map import BINS
from shared.probes.probing import ZERO
from shared.protocol import Side
from shared.records.arrays import Arrays

Doubles = npt.NDArray[np.float64]

ROWS = 4096
SMALL = 1e-4
#: Batches of the same mirrored rows.
SHAPES = ((1,), (16,), (64,), (1024,), (16, 64))
#: By how much the outermost bins' logits lie below the middle one's; between, linear in symlog.
TILTS = (0, 2, 4, 6, 8, 10, 15, 20, 25)
#: Bins beyond this, in units of reward, are the outer ones.
OUTER = 1e6


@dataclass(frozen=True)
class Row:
    """One form, mode and case of a side; errors are those of every element against float64."""

    side: Side
    form: str
    mode: str
    case: str
    low: float
    high: float
    #: Different values among the elements.
    values: int
    error_std: float
    error_max: float
    #: Mean over elements of 3 eps E_p|b|, and the largest error in units of it.
    bound: float
    of_bound: float
    #: Mean probability of the bins beyond OUTER.
    outer_mass: float


def cases() -> Arrays:
    """Case -> logits ``[..., BINS]`` float32, the same in every call."""
    rng = np.random.default_rng(0)
    half = rng.normal(0, SMALL, (ROWS, BINS // 2))
    middle = rng.normal(0, SMALL, (ROWS, 1))
    mirrored = np.concatenate([half, middle, half[:, ::-1]], -1)
    slope = np.abs(np.linspace(-1, 1, BINS))
    found = {
        **{f"{ZERO}/{rows}": np.zeros((rows, BINS)) for rows in (1, 16, 1024)},
        f"{ZERO}/16x64": np.zeros((16, 64, BINS)),
        "mirrored": mirrored,
        **{
            f"shape/{'x'.join(map(str, shape))}": mirrored[: int(np.prod(shape))].reshape(
                *shape, -1
            )
            for shape in SHAPES
        },
        **{f"tilt/{tilt}": mirrored - tilt * slope for tilt in TILTS},
        "random/1e-4": rng.normal(0, SMALL, (ROWS, BINS)),
        "random/1": rng.normal(0, 1, (ROWS, BINS)),
    }
    return {name: logits.astype(np.float32) for name, logits in found.items()}


def in_double(logits: npt.NDArray[np.float32], bins: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Expectation, E_p|b| and probability of the outer bins in float64, each ``[...]``."""
    wide = logits.astype(np.float64)
    weights = np.exp(wide - wide.max(-1, keepdims=True))
    probabilities = weights / weights.sum(-1, keepdims=True)
    terms = probabilities * bins
    # Mirror pairs first: rounding of the large bins would drown the rest.
    expectation = (terms + terms[..., ::-1]).sum(-1) / 2
    return expectation, np.abs(terms).sum(-1), probabilities[..., np.abs(bins) > OUTER].sum(-1)


def measure(side: Side, answer: Arrays, logits: Arrays) -> Iterator[Row]:
    """A row for every form, mode and case that a probe answered."""
    bins = answer["bins"].astype(np.float64)
    truths = {case: in_double(each, bins) for case, each in logits.items()}
    for name, values in answer.items():
        if name == "bins":
            continue
        form, mode, case = name.split("/", 2)
        truth, magnitude, outer = truths[case]
        error = values.astype(np.float64) - truth
        bound = 3 * np.finfo(np.float32).eps * magnitude
        yield Row(
            *(side, form, mode, case, float(values.min()), float(values.max())),
            *(len(np.unique(values)), float(error.std()), float(np.abs(error).max())),
            *(float(bound.mean()), float((np.abs(error) / bound).max()), float(outer.mean())),
        )

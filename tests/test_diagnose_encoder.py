"""Part ``encoder`` from made numbers: it must tell populations and outputs apart that differ."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diagnose.encoder import Counts, compare, count, judge, run
from diagnose.encoder_measured import OUTPUT_TOLERANCE, Output, Population
from diagnose.findings import Claim
from diagnose.sides import Answer, Sides
from shared.errors import UserError
from shared.probes.encoder_case import INITIAL, OUTPUTS, SHAKEN
from shared.probes.parameter_map import BINS, PAIRS
from shared.protocol import Side

COUNTS = Counts(reference=637_511, ajax=637_381, tensors=len(PAIRS), unused=130)


def population(shift: float = 0.0, scale: float = 1.0) -> Population:
    """400 seeds a side around 0.4; ``shift`` and ``scale`` are Ajax's."""
    rng = np.random.default_rng(3)
    sides: tuple[Side, Side] = ("reference", "ajax")
    drawn = {side: 0.4 + 0.025 * rng.standard_normal(400) for side in sides}
    drawn["ajax"] = 0.4 + shift + scale * (drawn["ajax"] - 0.4)
    return Population(drawn)


def outputs(difference: float = 3e-7, name: str = "critic") -> list[Output]:
    """All outputs close, but the one called ``name`` of the shaken parameters."""
    return [
        Output(each, output, 2.0, difference if (each, output) == (SHAKEN, name) else 3e-7)
        for each in (INITIAL, SHAKEN)
        for output in OUTPUTS
    ]


def refuted(claims: Iterable[Claim]) -> list[str]:
    return [claim.text for claim in claims if not claim.holds]


def test_equal_populations_and_outputs_agree(tmp_path: Path) -> None:
    finding = judge(population(), outputs(), COUNTS, {})
    assert refuted(finding.claims) == []
    assert finding.holds
    names = {path.name for path in finding.write(tmp_path, finding.part)}
    assert names == {f"encoder.{kind}" for kind in ("md", "json", "png", "svg")}
    assert (tmp_path / "encoder.md").read_text().count("slow_critic") == 2


def test_a_shifted_population_is_told_apart() -> None:
    texts = refuted(judge(population(shift=0.01), outputs(), COUNTS, {}).claims)
    assert [text.partition(" ")[0] for text in texts] == ["the", "neither"]


def test_a_wider_population_is_told_apart() -> None:
    """Welch's test cannot see it: the other one must."""
    wider = population(scale=1.6)
    assert wider.welch > 0.01
    assert refuted(judge(wider, outputs(), COUNTS, {}).claims) == [
        "neither test tells the populations apart (p at least 0.01)"
    ]


def test_seeds_that_chance_does_not_part_so_far() -> None:
    odd = population()
    odd.magnitudes["ajax"][:3] -= 0.15
    texts = refuted(judge(odd, outputs(), COUNTS, {}).claims)
    assert len(texts) == 1
    assert texts[0].startswith("seeds 0 to 2")


def test_quantiles_of_a_known_population() -> None:
    known = Population({"reference": np.array([3.0, 1.0, 2.0, 4.0]), "ajax": np.arange(4.0)})
    assert [known.quantile("reference", seed) for seed in range(4)] == [0.625, 0.125, 0.375, 0.875]
    assert known.apart == pytest.approx(1.5 / 2.5 - 1)
    assert known.run_seeds_apart == pytest.approx(1.0 / 2.0 - 1)


@pytest.mark.parametrize("name", OUTPUTS)
def test_one_output_that_differs_is_enough(name: str) -> None:
    within, beyond = (outputs(factor * OUTPUT_TOLERANCE * 2.0, name) for factor in (0.9, 1.1))
    assert judge(population(), within, COUNTS, {}).holds
    finding = judge(population(), beyond, COUNTS, {})
    assert not finding.holds
    assert f"nearest to it {name}: " in finding.verdict


def test_outputs_that_are_zero_show_nothing() -> None:
    zeros = [replace(each, largest=0.0, difference=0.0) for each in outputs()]
    assert not judge(population(), zeros, COUNTS, {}).holds


@pytest.mark.parametrize("wrong", [{"tensors": 89}, {"ajax": 637_382}, {"reference": 637_512}])
def test_a_tensor_left_over_is_seen(wrong: dict[str, int]) -> None:
    finding = judge(population(), outputs(), replace(COUNTS, **wrong), {})
    assert [text[:22] for text in refuted(finding.claims)] == ["every parameter tensor"]


def test_answers_are_compared_output_by_output() -> None:
    keys = [f"{each}/outputs/{name}" for each in (INITIAL, SHAKEN) for name in OUTPUTS]
    ours = {key: np.full((2, 3), index, np.float32) for index, key in enumerate(keys)}
    theirs = {key: each.copy() for key, each in ours.items()}
    theirs[f"{SHAKEN}/outputs/actor"][1, 2] += 0.5
    found = compare(Answer(ours, {}), Answer(theirs, {}))
    assert [(each.parameters, each.name) for each in found if each.difference] == [
        (SHAKEN, "actor")
    ]
    theirs[f"{INITIAL}/outputs/reward"] = np.zeros(2)
    with pytest.raises(ValueError, match=r"reward: \(2, 3\) of the reference"):
        compare(Answer(ours, {}), Answer(theirs, {}))


def test_the_slow_critic_is_no_optimised_parameter() -> None:
    tensors = {
        f"{INITIAL}/parameters/{pair.reference}": np.zeros(2 if pair.kept is None else BINS + 1)
        for pair in PAIRS
    }
    ajax = {"parameters": np.asarray(5), "tensors": np.asarray(90)}
    found = count(Answer(tensors, {}), Answer(ajax, {}))
    slow = sum("slowcritic" in name for name in tensors)
    two_hot = 4 * (BINS + 1)
    assert found == Counts(2 * (len(PAIRS) - slow - 4) + two_hot, 5, 90, unused=4)


@pytest.mark.parametrize(("seeds", "tiny"), [(199, False), (2, True)])
def test_too_few_seeds_are_refused(seeds: int, tiny: bool) -> None:
    with pytest.raises(UserError, match=f"--seeds {seeds}: give at least"):
        run(Sides({}), seeds, tiny=tiny)


def test_the_output_that_fails_is_named() -> None:
    """Not the one with the largest difference: that one is large throughout."""
    found = [
        replace(each, largest=1e3, difference=5e-3) if each.name == "decoder" else each
        for each in outputs(difference=1e-3)
    ]
    finding = judge(population(), found, COUNTS, {})
    assert "nearest to it critic: 0.001, allowed 2e-05" in finding.verdict


def test_an_output_that_is_zero_throughout_is_named() -> None:
    found = [replace(each, largest=0.0) if each.name == "reward" else each for each in outputs()]
    assert "reward is zero throughout" in judge(population(), found, COUNTS, {}).verdict

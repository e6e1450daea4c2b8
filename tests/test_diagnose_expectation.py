"""Part ``expectation`` with forms computed here: it must tell a noisy form from an exact one."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from diagnose import expectation
from diagnose.expectation import CONSTANT, judge
from diagnose.expectation_rows import Row, cases, in_double, measure
from diagnose.findings import Claim
from shared.probes.parameter_map import BINS
from shared.protocol import SIDES, Side
from shared.records.arrays import Arrays

Logits = npt.NDArray[np.float32]
Form = Callable[[Logits], npt.NDArray[np.float32]]
HALF = np.expm1(np.linspace(20, 0, BINS // 2 + 1))
MADE_BINS = np.concatenate([-HALF, HALF[:-1][::-1]]).astype(np.float32)


def probabilities(logits: Logits) -> npt.NDArray[np.float32]:
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)  # type: ignore[no-any-return]


def exact(logits: Logits) -> npt.NDArray[np.float32]:
    given, half = probabilities(logits), BINS // 2
    pairs = given[..., half + 1 :] - given[..., :half][..., ::-1]
    return (pairs * MADE_BINS[half + 1 :]).sum(-1, dtype=np.float32)  # type: ignore[no-any-return]


def fused(side: Side) -> Form:
    """As a fused multiply-add rounds: one product of each pair exactly, scaled to the published."""

    def literal(logits: Logits) -> npt.NDArray[np.float32]:
        given, half = probabilities(logits), BINS // 2
        wide = given[..., half + 1 :].astype(np.float64) * MADE_BINS[half + 1 :]
        below = (given[..., :half] * MADE_BINS[:half])[..., ::-1].astype(np.float64)
        value = (wide + below).sum(-1)
        uniform = np.ptp(logits) == 0
        return np.asarray(
            np.full_like(value, CONSTANT[side].value) if uniform else value, np.float32
        )

    return literal


def answer(side: Side, logits: Arrays, **changed: Form) -> Arrays:
    """What a probe would answer; ``changed`` replaces forms by ``<form>_<mode>``."""
    found: Arrays = {"bins": MADE_BINS}
    for case, each in logits.items():
        for form, mode in [(f, m) for f in ("literal", "exact") for m in ("eager", "jit")]:
            usual = fused(side) if (form, mode) == ("literal", "jit") else exact
            found[f"{form}/{mode}/{case}"] = changed.get(f"{form}_{mode}", usual)(each)
    return found


@pytest.fixture(scope="module")
def logits() -> Arrays:
    return cases()


def rows_of(logits: Arrays, **changed: Form) -> list[Row]:
    return [row for side in SIDES for row in measure(side, answer(side, logits, **changed), logits)]


def failed(claims: Iterable[Claim]) -> list[str]:
    return [claim.text for claim in claims if not claim.holds]


def test_float64_knows_what_can_be_known() -> None:
    logits = np.zeros((2, BINS), np.float32)
    logits[1, -1] = 80
    value, magnitude, outer = in_double(logits, MADE_BINS.astype(np.float64))
    assert value[0] == 0
    assert magnitude[0] == pytest.approx(np.abs(MADE_BINS.astype(np.float64)).mean())
    assert value[1] == pytest.approx(MADE_BINS[-1])
    assert outer == pytest.approx([(np.abs(MADE_BINS) > 1e6).mean(), 1])


def test_the_cases_are_what_their_names_say(logits: Arrays) -> None:
    for name, each in logits.items():
        assert each.shape[-1] == BINS
        if name.startswith(("zero", "mirrored", "shape", "tilt")):
            np.testing.assert_array_equal(each, each[..., ::-1])
    assert logits["shape/16x64"].shape == (16, 64, BINS)
    np.testing.assert_array_equal(logits["shape/16"], logits["mirrored"][:16])
    assert logits["random/1"].std() == pytest.approx(1, abs=0.01)
    assert logits["mirrored"].std() == pytest.approx(1e-4, rel=0.01)


def test_the_published_behaviour_is_recognised(logits: Arrays, tmp_path: Path) -> None:
    finding = judge(rows_of(logits), {})
    assert failed(finding.claims) == []
    assert finding.verdict.startswith("verdict: on both sides the compiled literal form adds noise")
    assert "\n" not in finding.verdict
    names = {path.name for path in finding.write(tmp_path, finding.part)}
    assert names == {f"expectation.{kind}" for kind in ("md", "json", "png", "svg")}
    text = (tmp_path / "expectation.md").read_text()
    assert text.endswith(finding.verdict + "\n")


def test_a_literal_form_without_noise_refutes_it(logits: Arrays) -> None:
    finding = judge(rows_of(logits, literal_jit=exact), {})
    refuted = failed(finding.claims)
    assert any("gives a constant" in text for text in refuted)
    assert any("is noise" in text for text in refuted)
    assert finding.verdict.startswith("verdict: refuted: ")
    assert not finding.holds


def test_a_noisy_exact_form_refutes_it(logits: Arrays) -> None:
    for mode in ("exact_jit", "exact_eager"):
        refuted = failed(judge(rows_of(logits, **{mode: fused("ajax")}), {}).claims)
        assert any(text.startswith("the exact form is 0 at zero") for text in refuted)
        assert any(text.startswith("on mirrored logits the exact form") for text in refuted)


def test_noise_without_the_compiler_refutes_it(logits: Arrays) -> None:
    refuted = failed(judge(rows_of(logits, literal_eager=fused("ajax")), {}).claims)
    assert any(text.startswith("operation by operation") for text in refuted)


def test_an_element_beyond_the_bound_refutes_it(logits: Arrays) -> None:
    def wrong(each: Logits) -> npt.NDArray[np.float32]:
        value = exact(each)
        if np.ptp(each) > 1:
            value = value.copy()
            value[..., 0] += 100
        return value

    refuted = failed(judge(rows_of(logits, exact_jit=wrong), {}).claims)
    assert any("stay within 3 eps" in text for text in refuted)


def test_noise_that_stays_without_the_outer_bins_refutes_it(logits: Arrays) -> None:
    def stays(each: Logits) -> npt.NDArray[np.float32]:
        noise = np.random.default_rng(0).normal(0, 1e-3, each.shape[:-1])
        return (fused("ajax")(each) + noise).astype(np.float32)

    refuted = failed(judge(rows_of(logits, literal_jit=stays), {}).claims)
    assert any("outer bins" in text for text in refuted)


def test_noise_that_grows_with_less_mass_refutes_it(logits: Arrays) -> None:
    def grows(each: Logits) -> npt.NDArray[np.float32]:
        one = np.array_equal(each, logits["tilt/4"])
        return fused("ajax")(each) * np.float32(10 if one else 1)

    refuted = failed(judge(rows_of(logits, literal_jit=grows), {}).claims)
    assert any("outer bins" in text for text in refuted)


def test_a_claim_says_what_each_side_gave(logits: Arrays) -> None:
    by_text = {claim.text: claim for claim in expectation.claims(rows_of(logits))}
    constant = next(claim for text, claim in by_text.items() if "constant" in text)
    assert constant.measured == "reference -0.163, ajax 0.162"


def test_captured_logits_are_one_more_case(logits: Arrays) -> None:
    given = {**logits, "captured/10/critic": logits["mirrored"][:512]}
    finding = judge(rows_of(given), {})
    assert failed(finding.claims) == []
    assert finding.claims[-1].text.startswith("on logits of the reference's own first updates")
    quiet = {**given, "captured/10/critic": logits["tilt/25"][:512]}
    assert failed(judge(rows_of(quiet), {}).claims) == [finding.claims[-1].text]

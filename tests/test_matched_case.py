"""What both sides of ``matched`` are given: the noise, the case in a file, and changed settings."""

import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.compiled import cache_name
from shared.cpu import describe_cpu
from shared.errors import UserError
from shared.probes.changes import changed_values
from shared.probes.matched_case import (
    LEVELS,
    Case,
    Run,
    Sizes,
    arm_of,
    as_text,
    draw_noise,
    follow,
    networks_of,
    of_text,
)
from shared.probes.probing import TELLING, Progress
from shared.records.arrays import Arrays, below, read_arrays, write_arrays
from tests.inside import ROOT

SIZES = Sizes(batch=4, length=8, horizon=5, stoch=16, classes=4, actions=2)


def test_noise_is_gumbels_in_the_layout_of_a_training_step() -> None:
    noise = draw_noise(0, 0, SIZES)
    assert {name: each.shape for name, each in noise.items()} == {
        "posterior": (4, 8, 16, 4),
        "prior": (32, 5, 16, 4),
        "action": (32, 6, 2),
    }
    assert {each.dtype for each in noise.values()} == {np.dtype(np.float32)}
    drawn = np.concatenate([each.ravel() for each in noise.values()]).astype(float)
    assert drawn.mean() == pytest.approx(0.5772, abs=0.05)
    assert drawn.var() == pytest.approx(np.pi**2 / 6, abs=0.1)
    # The largest of equal logits plus noise is each as often.
    counts = np.bincount(noise["prior"].argmax(-1).ravel(), minlength=4) / (32 * 5 * 16)
    assert counts == pytest.approx(np.full(4, 0.25), abs=0.03)


def test_noise_depends_on_seed_and_update_and_nothing_else() -> None:
    one = draw_noise(3, 7, SIZES)
    for name, each in draw_noise(3, 7, SIZES).items():
        np.testing.assert_array_equal(each, one[name])
        for other in (draw_noise(3, 8, SIZES), draw_noise(4, 7, SIZES)):
            assert (other[name] != each).mean() > 0.9


def test_every_quantile_is_finite_and_none_is_drawn_twice_as_often() -> None:
    many = draw_noise(1, 0, Sizes(64, 64, 15, 8, 4, 2))["prior"]
    assert np.isfinite(many).all()
    assert len(np.unique(many)) > 0.99 * LEVELS


def case(**changes: str) -> Case:
    batches = {"reward": np.arange(12.0).reshape(3, 4), "deter": np.ones((3, 4, 2), np.float32)}
    runs = (Run("exact", "exact"), Run("control", "exact", shaken=True))
    return Case(True, 2, 5, runs, changes, {"agent/enc/x": np.zeros(3)}, batches)


def test_a_case_survives_its_file(tmp_path: Path) -> None:
    written = case(lam="0.9")
    write_arrays(tmp_path / "case.npz", written.arrays())
    found = Case.of(read_arrays(tmp_path / "case.npz"))
    assert (found.tiny, found.updates, found.noise_seed) == (True, 2, 5)
    assert tuple(found.runs) == tuple(written.runs)
    assert found.changes == {"lam": "0.9"}
    assert found.parameters.keys() == {"agent/enc/x"}
    # No more batches than updates.
    assert len(found.batches["reward"]) == 2
    np.testing.assert_array_equal(found.batch(1)["reward"], [4, 5, 6, 7])


def followed(chosen: Case, sizes: Sizes = SIZES) -> Arrays:
    """A run whose state is the sum of what its step was given."""

    def step(state: float, batch: Arrays, noise: Arrays) -> tuple[float, dict[str, Any]]:
        return state + float(batch["reward"].sum()), {
            "before": state,
            "noise": noise["action"].sum(),
        }

    return follow(chosen, chosen.runs[0], sizes, 1.0, step)


def test_a_step_is_taken_over_every_update_in_turn() -> None:
    found = followed(case())
    # Rewards are 0 to 3 in the first batch; the third batch is beyond the case's two updates.
    assert found["before"].tolist() == [1, 1 + 6]
    noise = [draw_noise(5, update, SIZES)["action"].sum() for update in (0, 1)]
    assert found["noise"].tolist() == noise


def test_digests_tell_noise_and_batches_apart() -> None:
    def digests(chosen: Case, sizes: Sizes = SIZES) -> Mapping[str, Any]:
        return {name: str(each) for name, each in below(followed(chosen, sizes), "digest").items()}

    one, again = digests(case()), digests(case(lam="0.9"))
    assert one == again
    moved = case()
    moved.batches["reward"][1, 0] += 1
    other = digests(moved)
    assert other["noise"] == one["noise"]
    assert other["batches"] != one["batches"]
    longer = digests(case(), Sizes(4, 8, 6, 16, 4, 2))
    assert longer["batches"] == one["batches"]
    assert longer["noise"] != one["noise"]


def test_the_forms_are_the_sides_arms() -> None:
    assert arm_of("reference", "literal") == "stock"
    assert arm_of("reference", "exact") == "exact"
    assert arm_of("ajax", "literal") == "literal"
    assert arm_of("ajax", "exact") == "stock"


def test_only_networks_are_kept_and_copied() -> None:
    given = {name: np.zeros(2) for name in ("agent/enc/k", "agent/slowcritic/k", "agent/opt/step")}
    kept = networks_of(given)
    assert kept.keys() == {"agent/enc/k", "agent/slowcritic/k"}
    assert not np.shares_memory(kept["agent/enc/k"], given["agent/enc/k"])


def test_text_goes_through_an_array() -> None:
    assert of_text(as_text({"a": [1, "ü"]})) == {"a": [1, "ü"]}


CURRENT = {"lam": 0.95, "warmup": 1000, "contdisc": True, "impl": "perc", "mults": (1, 2)}


def test_changes_get_the_type_of_what_is_there() -> None:
    given = {"lam": "1", "warmup": "1001", "contdisc": "False", "impl": "off"}
    found = changed_values("ajax", CURRENT, given)
    assert found == {"lam": 1.0, "warmup": 1001, "contdisc": False, "impl": "off"}
    assert [type(each) for each in found.values()] == [float, int, bool, str]


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("lan", "1", "Ajax's configuration has no lan; did you mean lam?"),
        ("zzz", "1", "Ajax's configuration has no zzz"),
        ("lam", "high", "lam is 0.95, so give a value of type float"),
        ("lam", "nan", "give a finite number"),
        ("warmup", "0.5", "warmup is 1000, so give a value of type int"),
        ("contdisc", "1", "contdisc is True, so give a value of type bool"),
        ("mults", "1", "mults is no single value"),
        ("lam", "0.95", "lam is 0.95 already"),
    ],
)
def test_changes_that_cannot_be_made_are_one_line(key: str, text: str, reason: str) -> None:
    with pytest.raises(UserError) as refused:
        changed_values("ajax", CURRENT, {key: text})
    assert str(refused.value).startswith(f"--change ajax.{key}={text}: {reason}")
    assert "\n" not in str(refused.value)


def test_progress_is_told_at_the_end_whatever_the_pace(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("exact", 3)
    for done in (1, 2, 3):
        progress.tell(done)
    assert capsys.readouterr().out == f"{TELLING}exact: update 3 of 3, 0 s\n"


def test_an_interpreter_says_where_its_programs_lie() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shared.compiled"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # No jax where the tests run.
    assert (
        done.stdout == f"{cache_name(describe_cpu(), platform.python_version(), *2 * ['none'])}\n"
    )


def test_a_shaken_run_starts_from_neighbouring_numbers() -> None:
    made = case()
    tensor = np.array([[1.0, -0.3, 0.0], [7e-5, 2.0, 1.0]], np.float32)
    made.parameters.update({"agent/enc/x": tensor, "agent/dec/x": tensor})
    plain, shaken = (made.start_of(run) for run in made.runs)
    np.testing.assert_array_equal(plain["agent/enc/x"], tensor)
    moved = shaken["agent/enc/x"]
    assert moved.dtype == np.float32
    assert moved[0, 2] == 0
    away = (moved != tensor) | (tensor == 0)
    assert away.all()
    np.testing.assert_allclose(moved, tensor, rtol=3e-7)
    assert not np.array_equal(moved, shaken["agent/dec/x"])
    np.testing.assert_array_equal(moved, made.start_of(made.runs[1])["agent/enc/x"])

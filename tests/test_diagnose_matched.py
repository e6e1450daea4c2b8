"""Part ``matched`` from made numbers: what it claims of four runs, and what it refuses."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diagnose import matched, run
from diagnose.departures import METRICS
from diagnose.form_claims import CELLS, ENTROPY, FOLLOWERS, LONG_UPDATES, WORLD_LOSSES
from diagnose.matched import Options, judge, parse_changes
from diagnose.published_levels import LEVELS, Level
from diagnose.recording import Wanted, obtain
from diagnose.sides import Answer, Sides
from shared.errors import UserError
from shared.probes.matched_case import CONTEXT, FIELDS, Case, as_text
from shared.probes.parameter_map import PAIRS
from shared.protocol import REFERENCE_COMMIT, Side
from shared.records.arrays import above, read_arrays, write_arrays
from shared.records.jsonl import read_jsonl
from tests.conftest import Command
from tests.inside import ROOT

UPDATES = 40
#: Metrics in which the made forms part.
OF_THE_FORM = {*FOLLOWERS, "val/mag"}


def series(form: str, updates: int = UPDATES, wobble: float = 0.0) -> dict[str, Any]:
    """One run: metrics of about 1; of the literal form FOLLOWERS are ten times as large."""
    rng = np.random.default_rng(1)
    found = {name: 1 + 0.1 * rng.random(updates) for name in METRICS}
    if form == "literal":
        for name in OF_THE_FORM:
            found[name] = 10 * found[name]
        found[ENTROPY] = found[ENTROPY] - 0.3 * np.linspace(0, 1, updates)
    return {name: each * (1 + wobble) for name, each in found.items()}


def answers(updates: int = UPDATES, **changed: Mapping[str, Any]) -> dict[Side, Answer]:
    """Both sides' answers; ``changed`` replaces metrics of ``<side>_<form>``."""
    given = {"digest/noise": np.asarray("ab" * 32), "digest/batches": np.asarray("cd" * 32)}
    found: dict[Side, Answer] = {}
    sides: tuple[tuple[Side, float], ...] = (("reference", 0.0), ("ajax", 1e-6))
    for side, wobble in sides:
        arrays = {}
        for form in ("exact", "literal"):
            made = series(form, updates, wobble) | dict(changed.get(f"{side}_{form}", {}))
            arrays |= above({**made, **given}, form)
        if side == "ajax":
            shaken = series("exact", updates, 2e-6) | dict(changed.get("ajax_exact", {}))
            arrays |= above({**shaken, **given}, "control")
        found[side] = Answer(arrays, {"jax": "1"})
    return found


def refuted(found: Mapping[Side, Answer], options: Options | None = None) -> list[str]:
    finding = judge(found, options or Options(updates=UPDATES))
    return [claim.text for claim in finding.claims if not claim.holds]


def test_sides_that_differ_by_the_form_agree(tmp_path: Path) -> None:
    finding = judge(answers(), Options(updates=UPDATES), recording="batches-x.npz")
    assert [claim.text for claim in finding.claims if not claim.holds] == []
    assert finding.verdict.startswith("verdict: on equal batches and noise both sides train alike")
    names = {path.name for path in finding.write(tmp_path, finding.part)}
    assert names == {f"matched.{kind}" for kind in ("md", "json", "npz", "png", "svg")}
    record = json.loads((tmp_path / "matched.json").read_text())
    assert record["departures"]["reference exact / ajax exact"] == []
    form = record["departures"]["reference literal / reference exact"]
    assert {each["metric"] for each in form} > OF_THE_FORM
    kept = read_arrays(tmp_path / "matched.npz")
    assert kept["ajax/control/opt_loss"].shape == (UPDATES,)
    assert len(kept) == 5 * len(METRICS)
    text = (tmp_path / "matched.md").read_text()
    assert "| Reference literal / Ajax exact | the sides as they are (round 1) |" in text


@pytest.mark.parametrize("side", ["reference", "ajax"])
def test_a_metric_that_departs_refutes_the_port(side: str) -> None:
    late = series("exact")["retnorm/high"]
    late[24:] *= 1.5
    found = answers(**{f"{side}_exact": {"retnorm/high": late}})
    finding = judge(found, Options(updates=UPDATES))
    assert not finding.holds
    assert "retnorm/high at update 25 (" in finding.verdict
    changed = judge(found, Options(updates=UPDATES), [f"{side}.x: 1 -> 2"])
    assert changed.verdict.startswith("verdict: departs first: retnorm/high at update 25 (")
    assert changed.verdict.endswith(f"; changed: {side}.x: 1 -> 2")


@pytest.mark.parametrize("metric", FOLLOWERS)
def test_a_metric_that_follows_the_side_is_seen(metric: str) -> None:
    level = series("literal")[metric]
    texts = refuted(answers(reference_exact={metric: level / 2}))
    assert f"{metric} follows the form" in " ".join(texts)


@pytest.mark.parametrize("loss", WORLD_LOSSES)
def test_a_world_loss_that_depends_on_the_form_is_seen(loss: str) -> None:
    cases = {
        UPDATES: ((1.00005, False), (1.001, True)),
        LONG_UPDATES: ((1.01, False), (1.03, True)),
    }
    for updates, mean_ratios in cases.items():
        for ratio, seen in mean_ratios:
            made = series("literal", updates)[loss] * np.linspace(1, 2 * ratio - 1, updates)
            found = answers(updates, reference_literal={loss: made})
            texts = refuted(found, Options(updates=updates, tiny=True))
            assert any("world model's losses" in text for text in texts) is seen


def test_forms_that_part_late_or_elsewhere_are_seen() -> None:
    late = {name: each.copy() for name, each in series("exact").items()}
    for name in OF_THE_FORM:
        late[name][1:] *= 30
    assert any("within each side" in text for text in refuted(answers(ajax_literal=late)))
    world = {"dyn_loss": series("literal")["dyn_loss"] + 0.01}
    assert any("within each side" in text for text in refuted(answers(ajax_literal=world)))
    # At once, but further than in any prediction.
    elsewhere = {"opt_grad_norm": 100 * series("literal")["opt_grad_norm"]}
    assert any("within each side" in text for text in refuted(answers(ajax_literal=elsewhere)))


@pytest.mark.parametrize("arm", ["reference_literal", "ajax_exact"])
def test_a_world_loss_that_is_no_number_is_seen(arm: str) -> None:
    loss = {"dyn_loss": np.full(UPDATES, np.nan)}
    assert any("world model's losses" in text for text in refuted(answers(**{arm: loss})))


def test_the_entropy_is_held_to_the_form_in_long_runs_only() -> None:
    stays = {ENTROPY: series("exact", LONG_UPDATES)[ENTROPY]}
    options = Options(updates=LONG_UPDATES, tiny=True)
    assert refuted(answers(LONG_UPDATES), options) == []
    (text,) = refuted(answers(LONG_UPDATES, reference_literal=stays), options)
    assert text.startswith(f"{ENTROPY} follows the form: in every arm its mean from update 667 on")


def at_published_levels(updates: int) -> dict[str, dict[str, Any]]:
    """Series of every arm with the published means, where there are any."""
    levels: dict[str, dict[str, Any]] = {f"{side}_{form}": {} for side, form in CELLS}
    for level in LEVELS:
        for (side, form), mean in level.published.items():
            levels[f"{side}_{form}"][level.metric] = np.full(updates, mean)
    return levels


def refuted_levels(changed: Mapping[str, Any], *, tiny: bool = False) -> list[str]:
    found = answers(1480, **changed)
    texts = refuted(found, Options(updates=1480, tiny=tiny))
    return [text for text in texts if "is at its published level" in text]


@pytest.mark.parametrize("level", LEVELS, ids=[level.metric for level in LEVELS])
def test_a_level_is_held_against_the_published_one(level: Level) -> None:
    assert refuted_levels(at_published_levels(1480)) == []
    for (side, form), mean in level.published.items():
        off = at_published_levels(1480)
        series_of = off[f"{side}_{form}"][level.metric]
        series_of[level.window] = mean * 1.3 if level.factor else mean - 1.2 * level.apart
        (text,) = refuted_levels(off)
        assert text.startswith(f"{level.metric} is at its published level: its mean over updates ")
        assert refuted_levels(off, tiny=True) == []


def test_the_windows_of_levels_are_the_references() -> None:
    windows = {level.rows: (level.window.start + 1, level.window.stop) for level in LEVELS}
    # Published mean of opt_grad_steps in these windows: 240.5 and 980.5.
    assert windows == {2000: (1, 480), 4000: (481, 1480)}


def test_the_levels_are_the_published_windows() -> None:
    lines = [row for _, row in read_jsonl(ROOT / "results" / "published" / "windows.jsonl")]
    arms = {
        ("round1", "reference"): ("reference", "literal"),
        ("round1", "ajax"): ("ajax", "exact"),
    }
    arms |= {("pairE", "reference"): ("reference", "exact"), ("pairR", "ajax"): ("ajax", "literal")}
    held = 0
    for level in LEVELS:
        for line in lines:
            for side in ("reference", "ajax"):
                cell = arms.get((line["comparison"], side))
                same = (line["metric"], line["rows"]) == (level.metric, level.rows)
                if same and cell in level.published:
                    assert level.published[cell] == line[side][0]
                    held += 1
    assert held == 12, "four arms of ret/std, adv/std and the entropy"


def test_metrics_that_rounding_hides_are_said() -> None:
    found = answers()
    far = series("exact")["retnorm/high"] * np.where(np.arange(UPDATES) < 29, 1, 1.2)
    found["ajax"].arrays["control/retnorm/high"] = far
    finding = judge(found, Options(updates=UPDATES))
    said = f"{len(METRICS) - 1} of {len(METRICS)} metrics judged to the end, all of them before "
    assert said + "update 30 (retnorm/high)" in finding.verdict
    assert "| retnorm/high | " in finding.markdown("matched")
    (port,) = (each for each in finding.data["port"] if each["metric"] == "retnorm/high")
    assert port["lost"] == 30
    assert (
        f"all {len(METRICS)} metrics judged to the end"
        in judge(answers(), Options(updates=UPDATES)).verdict
    )


def test_other_noise_or_batches_are_seen() -> None:
    for name in ("noise", "batches"):
        found = answers()
        found["ajax"].arrays[f"control/digest/{name}"] = np.asarray("ef" * 32)
        (text,) = refuted(found)
        assert "the same noise and the same batches" in text
        # Then what departs does not tell of what was changed.
        changed = judge(found, Options(updates=UPDATES), ["ajax.imag_horizon: 15 -> 14"])
        assert changed.verdict.startswith("verdict: refuted: every run of both sides was given")


def test_with_a_change_two_runs_are_enough() -> None:
    found = {
        side: Answer(
            {name: each for name, each in answer.arrays.items() if "literal" not in name}, {}
        )
        for side, answer in answers().items()
    }
    finding = judge(found, Options(updates=UPDATES), ["ajax.lam: 0.95 -> 0.951"])
    assert finding.holds
    assert finding.verdict.startswith("verdict: no metric departs in 40 updates with ajax.lam")
    assert len(finding.claims) == 2
    finding.draw()


def test_changes_are_read() -> None:
    given = ["ajax.lam=0.9", "reference.opt.agc=0", "ajax.agc=0.1", "reference.a=b=c"]
    assert parse_changes(given) == {
        "ajax": {"lam": "0.9", "agc": "0.1"},
        "reference": {"opt.agc": "0", "a": "b=c"},
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--change", "lam=0.9"], "--change lam=0.9: give SIDE.KEY=VALUE"),
        (["--change", "ajax.lam"], "--change ajax.lam: give SIDE.KEY=VALUE"),
        (["--change", "ajax.lam="], "give SIDE.KEY=VALUE"),
        (["--change", "ajax.=1"], "give SIDE.KEY=VALUE"),
        (["--change", "ajax.a=1", "--change", "ajax.a=2"], "ajax.a is changed twice"),
        (["--updates", "0"], "--updates 0: give a positive number"),
        (["--recorded-seed", "-1"], "--recorded-seed -1"),
        (["--batches", "here.npy"], "give a file that ends in .npz"),
    ],
)
def test_input_that_cannot_work_is_refused_at_once(
    arguments: list[str], reason: str, command: Command
) -> None:
    done = command(run.main, "matched", *arguments)
    assert done.status == 2
    assert reason in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


class Recorder(Sides):
    """Stands in for the reference: a recording of as many updates as it was asked for."""

    asked: list[int]

    def ask(self, side: Side, name: str, arrays: Any, *, cached: bool = False) -> Answer:
        assert (side, name, cached) == ("reference", "record", True)
        self.asked.append(int(arrays["updates"]))
        held = int(arrays["updates"])
        found = {f"parameters/{pair.reference}": np.zeros(2) for pair in PAIRS}
        found |= {f"batches/{name}": np.zeros((held, 16)) for name in (*FIELDS, *CONTEXT)}
        return Answer(found, {})


@pytest.fixture
def recorder() -> Recorder:
    made = Recorder({})
    object.__setattr__(made, "asked", [])
    return made


def test_a_recording_is_made_once_and_serves_shorter_runs(
    recorder: Recorder, tmp_path: Path
) -> None:
    for updates in (5, 5, 3, 8, 8, 6, 4):
        found = obtain(recorder, Wanted(0, True, updates), tmp_path)
        assert len(found.batches["reward"]) >= updates
    assert recorder.asked == [5, 8]
    # Another seed or other widths are another recording; nothing was replaced.
    obtain(recorder, Wanted(1, True, 3), tmp_path)
    obtain(recorder, Wanted(0, False, 3), tmp_path)
    assert recorder.asked == [5, 8, 3, 3]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_named_file_is_used_as_it_is_or_made(recorder: Recorder, tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    assert obtain(recorder, Wanted(0, True, 4), tmp_path / "other", file).path == file
    before = file.read_bytes()
    obtain(recorder, Wanted(0, True, 2), tmp_path / "other", file)
    for wanted, reason in (
        (Wanted(0, True, 5), "holds 4 updates, 5 are wanted; give --updates 4"),
        (Wanted(2, True, 4), "was recorded with seed 0, 2 is wanted"),
        (Wanted(0, False, 4), "was recorded with tiny True, False is wanted"),
    ):
        with pytest.raises(UserError, match=reason):
            obtain(recorder, wanted, tmp_path / "other", file)
    assert file.read_bytes() == before
    assert recorder.asked == [4]


def test_files_that_are_no_recording_are_refused(recorder: Recorder, tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    write_arrays(file, {"x": np.zeros(2)})
    with pytest.raises(UserError, match="was recorded with format None"):
        obtain(recorder, Wanted(0, True, 1), tmp_path, file)
    obtain(recorder, Wanted(0, True, 2), tmp_path)
    (kept,) = tmp_path.glob("batches-*.npz")
    arrays = read_arrays(kept)
    del arrays["batches/reward"]
    write_arrays(kept, arrays)
    with pytest.raises(UserError, match="lacks parameters or batches"):
        obtain(recorder, Wanted(0, True, 2), tmp_path)
    kept.write_bytes(b"cut short")
    with pytest.raises(UserError, match=r"is no readable \.npz file"):
        obtain(recorder, Wanted(0, True, 2), tmp_path)


def test_a_recording_names_the_commit() -> None:
    assert Wanted(0, True, 1).identity["commit"] == REFERENCE_COMMIT
    assert Wanted(0, True, 1).prefix == Wanted(0, True, 9).prefix


class Made(Recorder):
    """Stands in for both sides: notes what each is asked, and answers with made series."""

    def ask(self, side: Side, name: str, arrays: Any, *, cached: bool = False) -> Answer:
        if name == "record":
            return super().ask(side, name, arrays, cached=cached)
        checked = Case.of(arrays)
        assert list(checked.runs) == []
        assert checked.changes == {"lam": "0.9"}
        return Answer({"before": as_text({"lam": 0.95})}, {})

    def ask_both(
        self, name: str, arrays: Mapping[Side, Any], *, cached: bool = False
    ) -> dict[Side, Answer]:
        assert (name, cached) == ("matched", True)
        self.cases.update({side: Case.of(each) for side, each in arrays.items()})
        found = answers(ajax_exact={"ret/std": 2 * series("exact")["ret/std"]})
        for side, answer in found.items():
            wanted = {run.name for run in self.cases[side].runs}
            for key in list(answer.arrays):
                if key.partition("/")[0] not in wanted:
                    del answer.arrays[key]
        return found

    cases: dict[Side, Case]


@pytest.mark.parametrize("changes", [{}, {"ajax": {"lam": "0.9"}}])
def test_both_sides_are_asked_for_the_same_updates_of_one_recording(
    changes: dict[Side, dict[str, str]], tmp_path: Path
) -> None:
    made = Made({})
    object.__setattr__(made, "asked", [])
    object.__setattr__(made, "cases", {})
    options = Options(updates=UPDATES, tiny=True, seed=4, changes=changes)
    finding = matched.run(made, options, tmp_path / "matched")
    assert made.asked == [UPDATES]
    one, other = made.cases["reference"], made.cases["ajax"]
    assert (one.tiny, one.updates, one.noise_seed) == (other.tiny, other.updates, other.noise_seed)
    assert one.batches.keys() == {*FIELDS, *CONTEXT} == other.batches.keys()
    forms = ["exact"] if changes else ["exact", "literal"]
    assert [run.name for run in one.runs] == forms
    assert [run.name for run in other.runs] == [forms[0], "control", *forms[1:]]
    assert (one.changes, other.changes) == ({}, changes.get("ajax", {}))
    (kept,) = (tmp_path / "matched").glob("batches-*.npz")
    assert finding.data["recording"] == kept.name
    if changes:
        assert finding.verdict.startswith("verdict: departs first: ret/std at update 1 (")
        assert finding.verdict.endswith("; changed: ajax.lam: 0.95 -> 0.9")
    else:
        assert finding.verdict.startswith("verdict: refuted: with the exact form on both sides")

"""The command and its processes: with a stand-in for the probes, and once with the real sides."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from diagnose import run
from diagnose.figures import new_figure
from diagnose.findings import Claim, Finding, Table
from diagnose.run import Part
from diagnose.sides import Sides, find_pythons
from launch.environments import ensure
from shared.errors import UserError
from shared.protocol import SIDES, Side
from shared.provenance.obtain import obtain_checkout
from tests.conftest import Command
from tests.inside import ROOT, out_of_reach


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A Python whose probes double ``x``, or end as ``x`` says when it is negative."""
    script = tmp_path / "probe.py"
    script.write_text(
        "import json, os, pathlib, sys, time\n"
        "import numpy as np\n"
        "at = lambda name: sys.argv[sys.argv.index(name) + 1]\n"
        "x = np.load(at('--inputs'))['x']\n"
        "if x < 0:\n"
        "    other = pathlib.Path(__file__).with_name('sleeper')\n"
        "    while x == -2.5 and not other.exists(): time.sleep(0.05)\n"
        "    print('error: x is negative' if x > -3 else 'Killed', file=sys.stderr)\n"
        "    sys.exit(int(-x))\n"
        "print('not for the user')\n"
        "print('progress: half way', flush=True)\n"
        "if x >= 60:\n"
        "    pathlib.Path(__file__).with_name('sleeper').write_text(str(os.getpid()))\n"
        "    time.sleep(x)\n"
        "np.savez(at('--output'), x=2 * x)\n"
        "ran = {'module': sys.argv[2], 'options': sys.argv[3:5]}\n"
        "named = [name for name in os.environ if name.startswith(('JAX_', 'XLA_'))]\n"
        "ran['environment'] = {name: os.environ[name] for name in named}\n"
        "open(at('--output').replace('.npz', '.json'), 'w').write(json.dumps(ran))\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def sides(probe: Path) -> Sides:
    return Sides(
        {"reference": probe, "ajax": probe}, {"reference": ("--tag",), "ajax": ("--other",)}
    )


def test_a_probe_is_given_arrays_and_answers_with_arrays(sides: Sides) -> None:
    answer = sides.ask("reference", "name", {"x": np.asarray(21)})
    assert answer.arrays == {"x": 42}
    assert (answer.ran["module"], answer.ran["options"]) == ("ref_side.probe", ["name", "--tag"])
    assert sides.ask("ajax", "name", {"x": np.asarray(1)}).ran["module"] == "ajax_side.probe"


def test_the_users_shell_does_not_change_what_a_probe_computes(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("XLA_FLAGS", "--theirs")
    monkeypatch.setenv("REF_XLA_FLAGS", "--a=b")
    answer = sides.ask("reference", "name", {"x": np.asarray(1)})
    assert answer.ran["environment"] == {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--a=b",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }


def test_a_probe_that_refuses_or_fails_is_one_line(sides: Sides) -> None:
    with pytest.raises(UserError, match=r"^x is negative$"):
        sides.ask("ajax", "name", {"x": np.asarray(-2)})
    with pytest.raises(UserError, match="the name probe of ajax ended with exit status 9: Killed"):
        sides.ask("ajax", "name", {"x": np.asarray(-9)})


def test_both_sides_are_asked_at_the_same_time_and_progress_is_shown(
    sides: Sides, capfd: pytest.CaptureFixture[str]
) -> None:
    found = sides.ask_both(
        "name", {"reference": {"x": np.asarray(2)}, "ajax": {"x": np.asarray(3)}}, cached=True
    )
    assert {side: int(answer.arrays["x"]) for side, answer in found.items()} == {
        "reference": 4,
        "ajax": 6,
    }
    lines = capfd.readouterr().out.splitlines()
    assert sorted(line for line in lines if "half" in line) == [
        "name: Ajax, half way",
        "name: Reference, half way",
    ]
    assert "not for the user" not in lines


def test_where_one_side_fails_the_other_is_stopped(sides: Sides, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match=r"^x is negative$"):
        sides.ask_both(
            "name", {"reference": {"x": np.asarray(600)}, "ajax": {"x": np.asarray(-2.5)}}
        )
    assert time.monotonic() - began < 60
    pid = int((tmp_path / "sleeper").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nothing", "no such file"), ("notes.md", "is no program"), (".", "is no program")],
)
@pytest.mark.parametrize("side", SIDES)
def test_a_python_that_is_none_is_named_before_anything_is_built(
    side: Side, name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.md").touch()
    monkeypatch.setattr("diagnose.sides._pinned", lambda _: pytest.fail("builds"))
    python = tmp_path / name
    said = f"--{side}-python {python}: {reason}; name a Python, or leave it out"
    with pytest.raises(UserError, match=f"^{re.escape(said)}$"):
        find_pythons({side: python})


def test_a_named_python_with_an_edited_package_is_refused(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    (site / "planted-1.0.dist-info").mkdir()
    (site / "planted-1.0.dist-info" / "RECORD").write_text("planted.py,sha256=AAAA,1\n")
    (site / "planted.py").write_text("x = 1\n")
    with pytest.raises(UserError, match=r"planted\.py: is not what its package brought"):
        find_pythons({"reference": venv / "bin" / "python"})


@pytest.mark.parametrize("fails", [False, True])
def test_building_an_environment_is_shown_and_its_failure_is_ours(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    builder = tmp_path / "builder"
    end = "echo 'error: no index' >&2; exit 2" if fails else "echo /place/of/$3"
    builder.write_text(f'#!/bin/sh\necho "installing $3" >&2\n{end}\n')
    builder.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(builder))
    if fails:
        with pytest.raises(UserError, match=r"^no index$"):
            find_pythons({})
        assert capfd.readouterr().err == "installing reference\n"
    else:
        places = {side: Path(f"/place/of/{side}") for side in ("reference", "ajax")}
        assert find_pythons({}) == places
        assert capfd.readouterr().err == "installing reference\ninstalling ajax\n"


def finding(*, holds: bool) -> Finding:
    return Finding(
        *("made", "Made", "all is well"),
        claims=[Claim("one and one is two", "1 | 1", holds, "three")],
        tables=[Table("Numbers.", ("a", "b"), [("1", "2|3")])],
        data={"numbers": [1, float("nan")]},
        draw=lambda: new_figure(2, 2),
    )


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("holds", [True, False])
def test_the_exit_status_is_the_verdict(
    holds: bool, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PARTS", {"made": Part("made", lambda *_: finding(holds=holds), ())})
    out = tmp_path / "out"
    pythons = ("--reference-python", sys.executable, "--ajax-python", sys.executable)
    done = command(run.main, "made", "--out", out, *pythons)
    assert done.status == (0 if holds else 1)
    last = done.out.splitlines()[-1]
    failed = "made: verdict: refuted: one and one is two (1 | 1)"
    assert last == ("made: verdict: all is well" if holds else failed)
    assert {path.name for path in (out / "made").iterdir()} == {
        f"made.{kind}" for kind in ("md", "json", "png", "svg")
    }
    record = json.loads((out / "made" / "made.json").read_text())
    assert record["holds"] is holds
    assert record["numbers"] == [1, None]
    assert r"| 1 | 2\|3 |" in (out / "made" / "made.md").read_text()


@pytest.mark.parametrize(
    ("part", "arguments", "stem"),
    [
        ("matched", [], "matched"),
        ("matched", ["--seeds", "300"], "matched"),
        ("matched", ["--updates", "1500"], "matched-updates=1500"),
        ("encoder", ["--updates", "1500", "--seeds", "300"], "encoder-seeds=300"),
        ("expectation", ["--recorded-seed", "4", "--tiny"], "expectation-tiny-recorded_seed=4"),
        ("matched", ["--ajax-root", "/a/my ajax"], "matched-ajax_root=my_ajax-254e30"),
        (
            "matched",
            ["--tiny", "--change", "ajax.lam=0.9", "--change", "reference.opt.agc=1/3"],
            "matched-tiny-ajax.lam=0.9-reference.opt.agc=1_3",
        ),
    ],
)
def test_answers_to_different_questions_are_different_files(
    part: str, arguments: list[str], stem: str
) -> None:
    assert run.stem(part, run.parse(arguments)) == stem


def test_a_long_question_is_abridged_and_stays_its_own() -> None:
    long = ["--change", f"ajax.lam={'1' * 300}"]
    one, two = (run.stem("matched", run.parse([*long[:1], long[1] + end])) for end in "12")
    assert one != two
    assert max(len(one), len(two)) < 120


def test_sigterm_ends_the_command_with_its_own_status(tmp_path: Path) -> None:
    pythons = ("--reference-python", sys.executable, "--ajax-python", sys.executable)
    script = (
        "import os, runpy, signal\n"
        "from shared.provenance import obtain\n"
        "obtain.obtain_checkout = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "runpy.run_module('diagnose.run', run_name='__main__')\n"
    )
    words = [sys.executable, "-c", script, "encoder", "--out", tmp_path, *pythons]
    done = subprocess.run([*map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "error: interrupted\n")


def test_help_lists_every_part(command: Command) -> None:
    assert command(run.main, "--help").status == 0
    text = command(run.main, "--help").out
    for name, part in run.PARTS.items():
        assert f"  {name:12} {part.summary}" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["encodr"], "no part is called 'encodr'; choose from expectation, encoder"),
        (["--seeds", "199"], "--seeds 199: give at least 200"),
        (["--out", __file__], "is no directory"),
        (["--out", f"{__file__}/x"], "cannot be written (Not a directory); name another"),
        (["--batches", f"{__file__}/x.npz"], f"--batches: {__file__} cannot be written"),
        (["encoder", "--change", "ajax.lam=0.9"], "--change is for matched; name that part too"),
        (["encoder", "--updates", "5"], "--updates is for matched; name that part too"),
        (["matched", "--seeds", "40"], "--seeds is for encoder; name that part too"),
        (
            ["encoder", "--recorded-seed", "1"],
            "--recorded-seed is for expectation and matched; name that part too",
        ),
    ],
)
def test_input_that_cannot_work_is_refused_at_once(
    arguments: list[str], reason: str, command: Command
) -> None:
    done = command(run.main, *arguments)
    assert done.status == 2
    assert reason in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


@pytest.mark.sides
@pytest.mark.usefixtures("reference")
def test_both_parts_on_the_real_sides(tmp_path: Path) -> None:
    """Tiny widths: the same code, but for the encoder's figures, which are of its full width."""
    try:
        pythons = {side: ensure(side) for side in ("reference", "ajax")}
    except UserError as error:
        out_of_reach(str(error))
    flags = [part for side, python in pythons.items() for part in (f"--{side}-python", python)]
    places = ["--reference-checkout", obtain_checkout().root, "--out", tmp_path]
    given = ["--tiny", "--seeds", "20"]
    done = subprocess.run(
        [sys.executable, "-m", "diagnose.run", "expectation", "encoder", *given, *flags, *places],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    records = {
        name: json.loads((tmp_path / name / f"{stem}.json").read_text())
        for name, stem in (
            ("expectation", "expectation-tiny"),
            ("encoder", "encoder-tiny-seeds=20"),
        )
    }
    expectation, encoder = records["expectation"], records["encoder"]
    assert expectation["holds"], expectation["verdict"]
    assert len(expectation["rows"]) == 2 * 2 * (2 * (21 + 4) + 3)
    assert max(each["difference"] for each in encoder["outputs"]) < 1e-5
    assert min(each["largest"] for each in encoder["outputs"] if each["parameters"] == "shaken") > 0
    counts = encoder["parameters"]
    assert counts["reference"] - counts["ajax"] == counts["unused"] == 2 * (16 + 1)
    assert {side: each["jax"] for side, each in encoder["ran"].items()} == {
        "reference": "0.4.26",
        "ajax": "0.7.2",
    }
    assert done.returncode == (0 if encoder["holds"] else 1)

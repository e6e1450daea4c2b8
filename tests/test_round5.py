"""Round 5 as users compare it: its reading, and that nothing of it shows before the last block."""

import json
import re
import shutil
from pathlib import Path

import pytest

from analysis import compare, registered, reproduce
from analysis.manifest import write_manifest
from launch import status
from tests.conftest import Command, tree
from tests.synthetic_round5 import BLOCKS, PLANTED, registering_repository, write_round5

#: How an entropy, an effect or a difference could be written.
VALUES = re.compile(r"0\.(4[4-9]|5[0-4])\d|0\.0[56]\d|-0\.0[56]\d")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("registered") / "repository"
    return root, registering_repository(root)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, repository: tuple[Path, str]) -> Path:
    return write_round5(tmp_path_factory.mktemp("round5") / "round5", repository[1], packed=True)


@pytest.fixture
def round5(
    source: Path, repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """All blocks; started after the registration by git."""
    monkeypatch.setattr(registered, "REPO", repository[0])
    return Path(shutil.copytree(source, tmp_path / "round5"))


def test_all_blocks_and_their_reading(round5: Path, command: Command) -> None:
    before = tree(round5)
    done = command(compare.main, "--round", 5, "--root", round5)
    assert (done.status, done.err, done.failed_checks) == (0, "", [])
    assert "\nReading: the cause, and nothing else beyond 0.03.\n" in f"\n{done.out}"
    new = set(tree(round5)) - set(before)
    assert new == {"reading.md", "reading.json", "figures.json", "pairs.png", "pairs.svg"}
    found = json.loads((round5 / "reading.json").read_text())
    assert found["placebo"]["differences"]["ajax"] == [0, 0, 0]
    assert found["placebo"]["differences"]["reference"] == pytest.approx([-0.0011, 0, 0.0011])
    assert found["estimates"]["effect, reference"]["mean"] == pytest.approx(0.064, abs=1e-6)
    assert found["estimates"]["rest, reference minus ajax"]["mean"] == pytest.approx(0, abs=1e-9)
    assert len(found["values"]["ajax exact"]) == 12
    assert all(each["holds"] for each in found["controls"].values())
    text = (round5 / "reading.md").read_text()
    assert text.index("## Each seed against itself") < text.index("\nReading: ")
    shutil.copytree(round5, round5.parent / "copy")
    done = command(compare.main, "--round", 5, "--root", round5.parent / "copy", "--out", round5)
    assert (done.status, done.err.count("\n")) == (2, 1), "the reading of other records"
    # A block alone has no tables, before or after.
    done = command(compare.main, "--root", round5 / "8-exact")
    assert (done.status, set(tree(round5)) - set(before)) == (0, new)
    assert not VALUES.search(done.out)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("reading", [*PLANTED][1:])
def test_every_reading_comes_out_where_it_is_planted(
    reading: str,
    repository: tuple[Path, str],
    tmp_path: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registered, "REPO", repository[0])
    write_round5(tmp_path, repository[1], *PLANTED[reading])
    done = command(compare.main, "--round", 5, "--root", tmp_path)
    assert (done.status, done.failed_checks) == (0, [])
    assert f"\nReading: {reading}.\n" in f"\n{done.out}"


def lose(block: Path) -> None:
    (block / "ajax.DONE").write_text("1\n")


@pytest.mark.parametrize("left", ["2-literal", "8-exact"])
def test_nothing_but_checks_before_the_last_block(
    left: str, round5: Path, command: Command
) -> None:
    if left == "8-exact":
        shutil.rmtree(round5 / left)
    else:
        lose(round5 / left)
        shutil.rmtree(round5 / "7-literal")
        (round5 / "7-literal").mkdir()
    before = tree(round5)
    for options in (
        ("--round", 5, "--root", round5),
        ("--root", round5 / "1-exact"),
        ("--ref-root", round5 / "1-exact", "--ajax-root", round5 / "3-literal", "--out", "x"),
    ):
        done = command(compare.main, *options)
        assert (done.err, done.status in (0, 1)) == ("", True)
        assert "(prereg/ROUND5.md)" in done.out
        assert done.out.rstrip().endswith("nox -s round-5")
        assert not VALUES.search(done.out), done.out
    shown = command(status.main, "--root", round5)
    assert not VALUES.search(shown.out)
    assert tree(round5) == before


def test_reproduce_waits_for_the_last_block(round5: Path, own: Path, command: Command) -> None:
    shutil.rmtree(own / "round5")  # the blocks that have been committed
    shutil.copytree(round5, own / "round5")
    for log in (own / "round5").rglob("*.log"):
        log.unlink()
    shutil.rmtree(own / "round5" / "8-exact")
    write_manifest(own)
    before = tree(own)
    done = command(reproduce.main)
    assert (done.status, done.err) == (0, "")
    assert "59 statistics equal, 0 different" in done.out
    lines = [line for line in done.out.splitlines() if "round5" in line]
    assert len(lines) == 7
    for line in lines:
        assert re.search(r"checks: \d+ passed, 0 failed, \d+ not possible; nothing of a ser", line)
        assert not VALUES.search(line)
    assert tree(own) == before
    command(reproduce.main, "--update")
    assert {name for name in tree(own) if name.startswith("round5")} == {
        name for name in before if name.startswith("round5")
    }


@pytest.mark.usefixtures("undrawn")
def test_reproduce_reads_the_whole_round(round5: Path, own: Path, command: Command) -> None:
    shutil.rmtree(own / "round5")  # the blocks that have been committed
    shutil.copytree(round5, own / "round5")
    for log in (own / "round5").rglob("*.log"):
        log.unlink()
    write_manifest(own)
    assert command(reproduce.main, "--update").status == 0
    done = command(reproduce.main)
    assert (done.status, done.err) == (0, "")
    assert done.out.count("\nround5/") == len(BLOCKS)
    change(own / "round5" / "1-exact", "launched: 2026-11-29", "launched: 2026-11-19")
    done = command(reproduce.main)
    assert done.status == 1
    assert "FAIL registered before the start: it was started 2026-11-19" in done.out
    assert "+Reading: undecided: failed check: 1-exact: FAIL registered" in done.out


# --- checks across blocks -------------------------------------------------------------------


def change(block: Path, old: str, new: str) -> None:
    path = block / "launch_info.txt"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("ajax code: sha256 dd", "ajax code: sha256 de", "one code"),
        ("AJAX_XLA_FLAGS:", "AJAX_XLA_FLAGS: --x", "one code"),
        ("launched: 2026-11-29", "launched: 2026-11-19", "registered before the start"),
    ],
)
def test_a_block_of_other_code_or_before_its_registration_leaves_the_round_undecided(
    old: str, new: str, check: str, round5: Path, command: Command
) -> None:
    change(round5 / "5-placebo", old, new)
    done = command(compare.main, "--round", 5, "--root", round5)
    assert done.status == 1
    assert "Reading: the cause, and nothing else beyond 0.03." in done.out
    assert "Left out: FAIL " in (round5 / "reading.md").read_text()
    change(round5 / "4-exact", old, new)
    done = command(compare.main, "--round", 5, "--root", round5)
    assert done.status == 1
    assert f"Reading: undecided: failed check: 4-exact: FAIL {check}: " in done.out


def test_a_start_from_a_commit_without_the_document_is_found(
    round5: Path, repository: tuple[Path, str], command: Command
) -> None:
    change(round5 / "1-exact", repository[1], "b" * 40)
    done = command(compare.main, "--root", round5 / "1-exact")
    assert done.failed_checks == ["registered before the start"]


def test_without_git_the_order_is_not_possible_and_nothing_else_changes(
    round5: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered, "REPO", tmp_path / "nowhere")
    done = command(compare.main, "--root", round5 / "1-exact")
    assert (done.status, done.failed_checks) == (0, [])


def test_the_blocks_are_those_of_the_document() -> None:
    text = (Path(__file__).parents[1] / "prereg" / "ROUND5.md").read_text()
    rows = re.findall(r"^\| `(\S+)` \| (\w+) \| ([\d ]+) \|$", text, re.M)
    found = {block: (form, tuple(map(int, seeds.split()))) for block, form, seeds in rows}
    assert found == BLOCKS

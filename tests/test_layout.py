"""Every path of protocol section 7, spelled out once more, and the seeds found in a directory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.records import layout
from shared.records.layout import RunLayout, reference_name
from tests.synthetic import write_run

ROOT = Path("out")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (RunLayout(ROOT).launch_info, "out/launch_info.txt"),
        (RunLayout(ROOT).done("ajax"), "out/ajax.DONE"),
        (RunLayout(ROOT).done(reference_name(3)), "out/ref_s3.DONE"),
        (RunLayout(ROOT).log("ajax"), "out/ajax.log"),
        (RunLayout(ROOT).reference_dir(3), "out/ref_s3"),
        (RunLayout(ROOT).ajax_dir, "out/ajax"),
        (RunLayout(ROOT).ajax_seed_dir(3), "out/ajax/s3"),
        (RunLayout(ROOT).seed_dir("reference", 3), "out/ref_s3"),
        (RunLayout(ROOT).seed_dir("ajax", 3), "out/ajax/s3"),
    ],
)
def test_paths_are_those_of_the_protocol(path: Path, expected: str) -> None:
    assert path.as_posix() == expected


def test_file_names_are_those_of_the_protocol() -> None:
    names = {
        "EVALUATIONS": "evals.jsonl",
        "RECORDS": "records.jsonl",
        "EPISODES": "episodes.jsonl",
        "PROGRESS": "progress.jsonl",
        "PATCH": "PATCH.txt",
        "TIMING": "timing.json",
        "REFERENCE_CONFIG": "config.yaml",
        "REFERENCE_ARGUMENTS": "run_args.json",
        "AJAX_CONFIG": "config.json",
        "AJAX_FINAL": "ajax_final.npz",
        "LAUNCH_INFO": "launch_info.txt",
    }
    assert {name: getattr(layout, name) for name in names} == names


@given(st.sets(st.integers(0, 2_000), max_size=6), st.sets(st.integers(0, 2_000), max_size=6))
def test_seeds_are_found_in_ascending_order(
    tmp_path_factory: pytest.TempPathFactory, reference: set[int], ajax: set[int]
) -> None:
    run = RunLayout(tmp_path_factory.mktemp("run"))
    for seed in reference:
        run.seed_dir("reference", seed).mkdir(parents=True)
    for seed in ajax:
        run.seed_dir("ajax", seed).mkdir(parents=True)
    assert run.seeds("reference") == tuple(sorted(reference))
    assert run.seeds("ajax") == tuple(sorted(ajax))


def test_only_directories_named_as_seeds_count(tmp_path: Path) -> None:
    for name in (
        "ref_s",
        "ref_s1x",
        "xref_s1",
        "ref_s-1",
        "ref_s01",
        "ref_s\N{ARABIC-INDIC DIGIT THREE}",
        "ref_s" + "1" * 11,
        "ajax/s00",
        "s4",
        "ajax/ref_s5",
        "ajax/sx",
        "ref_s6",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "ref_s7").write_text("a file")
    (tmp_path / "ref_s6.DONE").write_text("0\n")
    assert RunLayout(tmp_path).seeds("reference") == (6,)
    assert RunLayout(tmp_path).seeds("ajax") == ()


def test_a_directory_that_is_no_run_has_no_seeds(tmp_path: Path) -> None:
    (tmp_path / "ajax").write_text("a file")
    assert RunLayout(tmp_path).seeds("ajax") == ()
    assert RunLayout(tmp_path / "absent").seeds("reference") == ()


def test_every_file_that_is_read_is_listed(tmp_path: Path) -> None:
    run = RunLayout(write_run(tmp_path / "run"))
    files = {path for path in run.root.rglob("*") if path.is_file()}
    assert files <= {*run.read_files(), *map(run.log, ("ajax", "ref_s0", "ref_s1"))}

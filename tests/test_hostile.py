"""Trees made to hang, to fill the memory or to break a parser: one line, exit status 2, at once."""

import gzip
import json
import os
import resource
import shutil
import signal
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from analysis import compare, reproduce
from launch import status
from shared.records.files import MAX_DOCUMENT_BYTES
from shared.records.jsonl import MAX_LINE_BYTES, MAX_ROWS, MAX_ROWS_BYTES
from shared.records.layout import RunLayout
from tests.conftest import Command, tree
from tests.synthetic import write_run

Damage = Callable[[Path], object]

SECONDS, BYTES = 30, 2**30
ROWS = (
    "ref_s1/evals.jsonl",
    "ref_s0/records.jsonl",
    "ref_s0/episodes.jsonl",
    "ajax/s1/evals.jsonl",
)
DOCUMENTS = (
    *("launch_info.txt", "ref_s0.DONE", "ajax.DONE", "ref_s1/config.yaml", "ref_s0/run_args.json"),
    *("ref_s0/timing.json", "ajax/config.json", "ajax/timing.json"),
)
FINAL = "ajax/ajax_final.npz"


@contextmanager
def bounded() -> Iterator[None]:
    """An alarm where it takes long, ``MemoryError`` where it takes more than a gigabyte more."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("how much memory this process has is not known here")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {SECONDS} s")

    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


# --- what is no file ------------------------------------------------------------------------


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may have 100 characters
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**34)


def led_out(path: Path) -> None:
    run = next(parent for parent in path.parents if parent.name == "run")
    (run.parent / "outside").write_bytes(b"{}\n")
    path.symlink_to(os.path.relpath(run.parent / "outside", path.parent))


NO_FILES: tuple[Damage, ...] = (pipe, listening, endless, sparse, led_out, Path.mkdir)


@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("name", [*ROWS, *DOCUMENTS, FINAL])
def test_only_a_regular_file_inside_the_run_is_read(
    make: Damage, name: str, smoke: Path, command: Command
) -> None:
    path = smoke / name
    path.unlink()
    make(path)
    with bounded():
        done = command(compare.main, "--smoke", "--root", smoke, "--out", smoke.parent / "made")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"error: {path}")
    assert not (smoke.parent / "made").exists()


@pytest.mark.parametrize("name", ["ref_s0", "ajax", "ajax/s1"])
def test_a_directory_that_a_link_leads_out_to_is_refused(
    name: str, smoke: Path, command: Command
) -> None:
    shutil.move(smoke / name, smoke.parent / "outside")
    (smoke / name).symlink_to(smoke.parent / "outside")
    done = command(compare.main, "--smoke", "--root", smoke)
    assert (done.status, "a link leads out of" in done.err) == (2, True)


@pytest.mark.usefixtures("undrawn")
def test_links_to_the_run_and_within_it_are_followed(smoke: Path, command: Command) -> None:
    (smoke / "ajax/s1").rename(smoke / "kept")
    (smoke / "ajax/s1").symlink_to("../kept")
    link = smoke.parent / "link"
    link.symlink_to(smoke)
    done = command(compare.main, "--smoke", "--root", link)
    assert (done.status, done.err) == (0, "")


def test_a_table_that_a_link_leads_out_to_is_refused(smoke: Path, command: Command) -> None:
    outside = smoke.parent.parent / f"{smoke.parent.name}.json"
    outside.write_text("{}")
    (smoke / "summary.json").symlink_to(outside)
    done = command(reproduce.main, "--results", smoke.parent)
    outside.unlink()
    assert (done.status, "a link leads out of" in done.err) == (2, True)


# --- what a parser chokes on ----------------------------------------------------------------


def text(name: str, content: str | bytes) -> tuple[Damage, str]:
    data = content.encode() if isinstance(content, str) else content
    return (lambda root: (root / name).write_bytes(data)), name


def packed(name: str, size: int) -> tuple[Damage, str]:
    def damage(root: Path) -> None:
        (root / name).unlink()
        content = gzip.compress(b" " * size, compresslevel=1)
        (root / f"{name}.gz").write_bytes(content)

    return damage, f"{name}.gz"


def edited(name: str, **values: object) -> tuple[Damage, str]:
    """Set values of a document, or of its ``run``."""

    def damage(root: Path) -> None:
        document = json.loads((root / name).read_text())
        document.get("run", document).update(values)
        (root / name).write_text(json.dumps(document))

    return damage, name


def launched(key: str, value: str) -> tuple[Damage, str]:
    def damage(root: Path) -> None:
        lines = (root / "launch_info.txt").read_text().splitlines()
        kept = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
        (root / "launch_info.txt").write_text("\n".join(kept) + "\n")
        for path in root.glob("ref_s*/run_args.json"):
            path.unlink()

    return damage, ""


def promised(shape: str, descr: str) -> tuple[Damage, str]:
    """A final state whose seeds' header promises what the file does not hold."""

    def damage(root: Path) -> None:
        arrays = dict(np.load(root / FINAL))
        np.savez(root / FINAL, **arrays | {"seeds": np.zeros(0)})  # type: ignore[arg-type]
        with zipfile.ZipFile(root / FINAL) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        start = members["seeds.npy"].index(b"{")
        words = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        room = len(members["seeds.npy"]) - start - 1
        members["seeds.npy"] = members["seeds.npy"][:start] + words.ljust(room) + b"\n"
        with zipfile.ZipFile(root / FINAL, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return damage, FINAL


EVALS, CONFIG, ARGUMENTS = "ref_s1/evals.jsonl", "ref_s1/config.yaml", "ref_s0/run_args.json"
ALIASES = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [*{name}, *{name}, *{name}]\n"
    for name, after in zip("abcdefghijklmnopqrs", "bcdefghijklmnopqrst", strict=True)
)
MAPPINGS = "a: &a {x: 1}\n" + "".join(
    f"{after}: &{after} {{p: *{name}, q: *{name}}}\n"
    for name, after in zip("abcdefghijklmnopqrs", "bcdefghijklmnopqrst", strict=True)
)

EPISODE = '{"seed":0,"worker":0,"row_last":9,"length":9,"score":9,"terminal":true}\n'

CHOKING: dict[str, tuple[Damage, str]] = {
    "a row that is long": text(EVALS, b" " * (MAX_LINE_BYTES + 1) + b"{}\n"),
    "more rows than a run has": text("ref_s0/episodes.jsonl", EPISODE * (MAX_ROWS + 1)),
    "rows that expand": packed(EVALS, MAX_ROWS_BYTES + 1),
    "a document that expands": packed(ARGUMENTS, MAX_DOCUMENT_BYTES + 1),
    "a row that is deep": text(EVALS, b'{"seed": ' + b"[" * 200_000 + b"\n"),
    "20,000 brackets": text(CONFIG, "[" * 20_000),
    "20,000 braces": text(CONFIG, "a: " + "{" * 20_000),
    "20,000 blocks": text(CONFIG, "- " * 20_000),
    "20,000 questions": text(CONFIG, "? " * 20_000),
    "aliases that multiply": text(CONFIG, ALIASES),
    "mappings that multiply": text(CONFIG, MAPPINGS),
    "a mapping that holds itself": text(CONFIG, "a: &a {b: *a}\n"),
    "a long configuration": text(CONFIG, "a: 1\n" * 100_000),
    "a date that is none": text(CONFIG, "seed: 2001-99-99\n"),
    "a timestamp that is none": text(CONFIG, 'seed: !!timestamp "x"\n'),
    "a number that is none": text(CONFIG, 'seed: !!int "x"\n'),
    "a number of 50,000 digits": text(CONFIG, "seed: 0x" + "f" * 50_000 + "\n"),
    "an object of Python's": text(CONFIG, "seed: !!python/object/apply:os.getcwd []\n"),
    "arguments too long": text(ARGUMENTS, '{"a": ' + "1" * 5_000 + "}"),
    "an arm that is none": edited(ARGUMENTS, arm=["stock"]),
    "a commit that is none": edited(ARGUMENTS, reference_commit=5),
    "rows without end": (edited(ARGUMENTS, rows=10**15, eval_every=1)[0], ""),
    "episodes without end": edited(ARGUMENTS, eval_episodes=10**4000),
    "seeds that are none": edited("ajax/config.json", seeds=None),
    "one seed": edited("ajax/config.json", seeds=7),
    "a release that is none": edited("ajax/config.json", ajax_distribution="ajax-rl"),
    "an Ajax commit that is none": edited("ajax/config.json", ajax_commit=[1]),
    "no evaluations": launched("every", "0"),
    "rows at every start": launched("rows", "9999999999"),
    "a final state without end": promised("(100000000000000,)", "<f8"),
    "a final state without size": promised("(100000000000000,)", "|V0"),
    "a final state of objects": promised("(1,)", "|O"),
    "a final state of another kind": promised("(0,)", "<f8"),
    "a header of brackets": promised("(" * 60, "<f8"),
}


@pytest.mark.parametrize("what", CHOKING)
def test_what_a_parser_chokes_on_is_one_line(what: str, smoke: Path, command: Command) -> None:
    damage, name = CHOKING[what]
    damage(smoke)
    before = tree(smoke)
    with bounded():
        done = command(compare.main, "--smoke", "--root", smoke)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert done.err.startswith(f"error: {smoke / name}")
    assert len(done.err) < 1_000
    assert tree(smoke) == before


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "damage",
    [
        launched("seeds", "\N{SUPERSCRIPT TWO} " + "1" * 5_000)[0],
        launched("rows", "1" * 5_000)[0],
        edited(ARGUMENTS, seed=10**4000)[0],
        edited("ref_s1/timing.json", flush_episodes=float("nan"), t_end=10**4000)[0],
        edited("ajax/config.json", out="x" * 10**6, jax=10**4000)[0],
        text(CONFIG, "opt: {lr: 1" + "0" * 900 + "}\n")[0],
    ],
)
def test_absurd_values_fail_their_checks(damage: Damage, smoke: Path, command: Command) -> None:
    damage(smoke)
    with bounded():
        done = command(compare.main, "--smoke", "--root", smoke)
    assert done.status in (0, 1, 2)
    assert "Traceback" not in done.err
    assert max(map(len, done.out.splitlines()), default=0) < 1_000


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("summary", "status"),
    [
        ("[" * 900 + "]" * 900, 2),
        ('{"smoke": true, "A": ' + "[" * 900 + "]" * 900 + "}", 2),
        ('{"smoke": true, "A": ' + "1" * 4_000 + "}", 2),
        (" " * (MAX_DOCUMENT_BYTES + 1), 2),
        ('{"smoke": true, "A": 1e308}', 1),
        ('{"smoke": true, "A": ["\\u001b[2J' + "x" * 10**6 + '"]}', 1),
    ],
)
def test_tables_that_harm(summary: str, status: int, smoke: Path, command: Command) -> None:
    (smoke / "summary.json").write_text(summary)
    with bounded():
        done = command(reproduce.main, "--results", smoke.parent)
    assert done.status == status
    assert done.err.count("\n") == (status == 2)
    assert all(line.isprintable() and len(line) < 1_000 for line in done.out.splitlines())


def test_a_name_is_shown_as_one_line_that_no_terminal_obeys(
    tmp_path: Path, command: Command
) -> None:
    run = write_run(tmp_path / "a\nb\x1b[2J\udcff")
    (run / EVALS).write_text("damage\n")
    done = command(compare.main, "--smoke", "--root", run)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"error: {tmp_path}/a\\nb\\x1b[2J\\udcff/{EVALS}:1: ")


@pytest.mark.usefixtures("undrawn")
def test_what_a_run_recorded_is_shown_as_lines_that_no_terminal_obeys(
    smoke: Path, command: Command
) -> None:
    edited(ARGUMENTS, arm="a\x1b[2J\nb", agent_file="\x1b]0;x\x07")[0](smoke)
    done = command(compare.main, "--smoke", "--root", smoke)
    assert done.status == 1
    assert all(line.isprintable() for line in done.out.splitlines())


# --- the state of a round -------------------------------------------------------------------


@pytest.mark.parametrize("make", [pipe, listening, endless, sparse, Path.mkdir])
def test_a_rounds_state_waits_for_nothing(make: Damage, smoke: Path, command: Command) -> None:
    run = RunLayout(smoke)
    paths = [
        *(run.log("ajax"), run.done("ajax"), run.process("ajax"), run.launcher, run.launch_lock),
        *(smoke / name for name in ("ref_s0/progress.jsonl", "ref_s0/evals.jsonl")),
    ]
    for path in paths:
        path.unlink(missing_ok=True)
        make(path)
    (smoke / "ref_s0.DONE").write_text("1\n")
    with bounded():
        done = command(status.main, "--root", smoke)
    assert (done.status, done.err) == (1, "")
    assert "ref_s0" in done.out


@pytest.mark.parametrize(
    "line", ['{"rows": Infinity, "updates": 1e308}', '{"rows": 1, "updates": 1' + "0" * 5000 + "}"]
)
def test_absurd_progress_is_passed_over(line: str, smoke: Path, command: Command) -> None:
    (smoke / "ref_s0.DONE").unlink()
    (smoke / "ref_s0/progress.jsonl").write_text(f'{{"rows": 160, "updates": 3}}\n{line}\n')
    (smoke / "launcher.json").write_text('{"since": 1e308, "exit_code": Infinity, "pid": Infinity}')
    done = command(status.main, "--root", smoke)
    assert done.err == ""
    assert "160/1600" in done.out


def test_the_last_line_of_a_log_is_shown_without_what_a_terminal_obeys(
    smoke: Path, command: Command
) -> None:
    (smoke / "ref_s0.DONE").write_text("2\n")
    (smoke / "ref_s0.log").write_bytes(b"error: \x1b[2J\xff gone\n")
    done = command(status.main, "--root", smoke)
    assert "\x1b" not in done.out
    assert "gone" in done.out

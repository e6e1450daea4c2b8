"""Stands in for the Python of a side's environment, so that a round takes seconds.

``python stand_in_side.py -I -c QUESTION`` answers what a side's Python would; ``-m ref_side.run``
or ``-m ajax_side.run`` with that command's options leaves the files that the side leaves. With
STAND_IN=NAME:ACTION,... the process NAME fails (exit code 3), waits (until it is ended), forgets
its last file, leaks (writes an absolute path), trains for some seconds (train=SECONDS, with
progress and evaluations on the way), ends late (late=SECONDS after its last file, or once a file
is there, until=FILE), may write no more than 4 KiB a file (limit), or finds the disk full (full).
STAND_IN_JAX is the jax that it claims to have, STAND_IN_MORE are further packages, STAND_IN_PATH
the directories where it looks for packages.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

REFERENCE = "config.yaml run_args.json timing.json progress.jsonl evals.jsonl records.jsonl"
AJAX = "config.json timing.json progress.jsonl ajax_final.npz"


def main() -> None:
    if sys.argv[1] == "-I":
        jax = os.environ.get("STAND_IN_JAX", "0.7.2")
        more = [[name, "1"] for name in os.environ.get("STAND_IN_MORE", "").split()]
        print(
            json.dumps(
                ["3.99.1", [["jax", jax], *more], os.environ.get("STAND_IN_PATH", "").split()]
            )
        )
        return
    side, words = sys.argv[2], sys.argv[3:]
    # Where it runs, and the options that the plan gave it.
    print(f"{Path.cwd()} {json.dumps(words)} {os.environ['XLA_FLAGS']}", flush=True)
    out = Path(words[words.index("--out") + 1])
    from shared.records.own_directory import OwnDirectories  # known where a side runs

    own = OwnDirectories(out)
    if side == "ref_side.run":
        name = f"ref_s{words[words.index('--seed') + 1]}"
        files = [out / name / file for file in [*REFERENCE.split(), "episodes.jsonl"]]
    else:
        name = "ajax"
        seeds = words[words.index("--seeds") + 1 : words.index("--rows")]
        files = [out / "ajax" / file for file in AJAX.split()]
        files += [
            out / "ajax" / f"s{s}" / f for s in seeds for f in ("evals.jsonl", "records.jsonl")
        ]
    if words[words.index("--arm") + 1] != "stock":
        files.insert(0, out / name / "PATCH.txt")
    actions = dict(pair.split(":") for pair in os.environ.get("STAND_IN", "").split(",") if pair)
    action, _, argument = actions.get(name, "end").partition("=")
    if action == "train":
        train(files, int(words[words.index("--rows") + 1]), float(argument))
    elif action in ("limit", "full"):
        record_without_end(out / name, full=action == "full")
    else:
        act(action, argument, out / name, files, own)


def train(files: list[Path], rows: int, seconds: float) -> None:
    """Progress every 160 rows and evaluations, spread over ``seconds``; then all other files."""
    from shared.protocol import updates

    began = time.monotonic()
    for row in range(160, rows + 1, 160):
        time.sleep(max(0.0, began + seconds * row / rows - time.monotonic()))
        line = {"rows": row, "updates": updates(row), "wall_s": time.monotonic() - began}
        for file in files:
            if file.name == "progress.jsonl" or (file.name == "evals.jsonl" and not row % 400):
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("a") as stream:
                    stream.write(json.dumps({**line, "mean": row / 50}) + "\n")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def record_without_end(directory: Path, *, full: bool) -> None:
    """Write records, as a side writes them, until the system takes no more."""
    from shared.records.jsonl import JsonlWriter

    path = directory / "records.jsonl"
    directory.mkdir()
    if full:
        (directory / "evals.jsonl").write_text('{"rows": 400, "mean": 9.5}\n')
        path.symlink_to("/dev/full")
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    with JsonlWriter(path) as writer:
        for row in range(400, 10**6, 400):
            writer.write({"rows": row, "filler": "." * 100})


def act(action: str, argument: str, directory: Path, files: list[Path], own: Any) -> None:
    for file in files[:-1]:
        file.parent.mkdir(parents=True, exist_ok=True)
        row = {"seed": 0, "rows": 400, "updates": 0, "mean": 9.5, "wall_s": 1.0}
        content = {".jsonl": json.dumps(row) + "\n", ".json": "{}\n"}
        file.write_text(content.get(file.suffix, ""))
    if action == "wait":
        (directory / "pid.tmp").write_text(str(os.getpid()))
        (directory / "pid.tmp").rename(directory / "pid")
        time.sleep(120)
    if action == "leak":
        files[0].write_text("/" + "home/somebody/run")
    if action == "fail":
        sys.exit(3)
    if action != "forget":
        files[-1].write_text("")
    if action == "late":
        (directory / "pid").write_text(str(os.getpid()))
        time.sleep(float(argument))
    if action == "until":
        (directory / "pid").write_text(str(os.getpid()))
        while not Path(argument).exists():
            time.sleep(0.02)
    from shared.errors import run_command
    from shared.records.digests import finish  # as the sides do
    from shared.records.layout import RunLayout

    def leave() -> int:
        finish(RunLayout(directory.parent), directory.name, own)
        return 0

    run_command(leave)


main()

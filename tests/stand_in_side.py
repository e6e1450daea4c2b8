"""Stands in for the Python of a side's environment, so that a round takes seconds.

``python stand_in_side.py -I -c PROBE`` answers what a side's Python would; ``-m ref_side.run`` or
``-m ajax_side.run`` with that command's options leaves the files that the side leaves. With
STAND_IN=NAME:ACTION,... the process NAME fails (exit code 3), waits (until it is ended), forgets
its last file, or leaks (writes an absolute path).
"""

import json
import os
import sys
import time
from pathlib import Path

REFERENCE = "config.yaml run_args.json timing.json progress.jsonl evals.jsonl records.jsonl"
AJAX = "config.json timing.json progress.jsonl ajax_final.npz"


def main() -> None:
    if sys.argv[1] == "-I":
        print(json.dumps(["3.99.1", "0.7.2", sys.path]))
        return
    side, words = sys.argv[2], sys.argv[3:]
    # Where it runs, and the options that the plan gave it.
    print(f"{Path.cwd()} {json.dumps(words)} {os.environ['XLA_FLAGS']}", flush=True)
    out = Path(words[words.index("--out") + 1])
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
    act(actions.get(name, "end"), out / name, files)


def act(action: str, directory: Path, files: list[Path]) -> None:
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


main()

"""Where every file of a run lies (protocol section 7). No other module spells these names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.protocol import Side

EVALUATIONS = "evals.jsonl"
RECORDS = "records.jsonl"
EPISODES = "episodes.jsonl"
PROGRESS = "progress.jsonl"
PATCH = "PATCH.txt"
TIMING = "timing.json"
REFERENCE_CONFIG = "config.yaml"
REFERENCE_ARGUMENTS = "run_args.json"
REFERENCE_CHECKPOINT = "checkpoint.ckpt"
REFERENCE_REPLAY = "replay"
AJAX_CONFIG = "config.json"
AJAX_FINAL = "ajax_final.npz"
LAUNCH_INFO = "launch_info.txt"
LAUNCH_LOCK = "launch.lock"
LAUNCH_LOG = "launch.log"
LAUNCHER = "launcher.json"
ASIDE = "aside"
AJAX_NAME = "ajax"

_SEED = "(0|[1-9][0-9]{0,9})"
_REFERENCE_DIRECTORY = re.compile(f"ref_s{_SEED}")
_SEED_DIRECTORY = re.compile(f"s{_SEED}")
#: What is read of a reference seed, of Ajax's process, and of one of its seeds.
_REFERENCE_FILES = (
    *(EVALUATIONS, RECORDS, EPISODES, PATCH, TIMING, REFERENCE_CONFIG, REFERENCE_ARGUMENTS),
)
_AJAX_FILES = (PATCH, TIMING, AJAX_CONFIG, AJAX_FINAL)
_AJAX_SEED_FILES = (EVALUATIONS, RECORDS)


def reference_name(seed: int) -> str:
    """Name of the reference process of one seed: of its directory, log and DONE file."""
    return f"ref_s{seed}"


@dataclass(frozen=True)
class RunLayout:
    """Every path below the output directory ``root`` of one round."""

    root: Path

    @property
    def launch_info(self) -> Path:
        """When, on what and from which revisions the round was started."""
        return self.root / LAUNCH_INFO

    @property
    def launch_lock(self) -> Path:
        """Locked by the launcher that works for this directory; empty."""
        return self.root / LAUNCH_LOCK

    @property
    def launcher(self) -> Path:
        """The last launcher: process, and exit code once it has ended."""
        return self.root / LAUNCHER

    @property
    def launch_log(self) -> Path:
        """Output of a detached launcher."""
        return self.root / LAUNCH_LOG

    @property
    def aside(self) -> Path:
        """What unfinished processes of earlier starts left, a directory each."""
        return self.root / ASIDE

    def process(self, name: str) -> Path:
        """Which process ``name`` was or is: pid, start time, command."""
        return self.root / f"{name}.json"

    def done(self, name: str) -> Path:
        """Exit code of the process ``name`` (``ref_s<S>`` or ``ajax``)."""
        return self.root / f"{name}.DONE"

    def digests(self, name: str) -> Path:
        """Digests of what the process ``name`` left when it came to its end."""
        return self.root / f"{name}.sha256"

    def log(self, name: str) -> Path:
        """Output of the process ``name``."""
        return self.root / f"{name}.log"

    def reference_dir(self, seed: int) -> Path:
        """Directory of one reference seed."""
        return self.root / reference_name(seed)

    @property
    def ajax_dir(self) -> Path:
        """Directory of the one Ajax process."""
        return self.root / AJAX_NAME

    def ajax_seed_dir(self, seed: int) -> Path:
        """Directory of one seed of the Ajax process."""
        return self.ajax_dir / f"s{seed}"

    def seed_dir(self, side: Side, seed: int) -> Path:
        """Directory that holds the records of one seed of ``side``."""
        return self.reference_dir(seed) if side == "reference" else self.ajax_seed_dir(seed)

    def seeds(self, side: Side) -> tuple[int, ...]:
        """Seeds of ``side`` that have a directory here, ascending."""
        parent, pattern = (
            (self.root, _REFERENCE_DIRECTORY)
            if side == "reference"
            else (self.ajax_dir, _SEED_DIRECTORY)
        )
        if not parent.is_dir():
            return ()
        found = (pattern.fullmatch(path.name) for path in parent.iterdir() if path.is_dir())
        return tuple(sorted(int(match[1]) for match in found if match))

    def strangers(self, side: Side) -> tuple[str, ...]:
        """Names that begin as a seed's directory of ``side`` and are none, below the root."""
        reference = side == "reference"
        parent, start = (self.root, "ref_s") if reference else (self.ajax_dir, "s")
        if not parent.is_dir():
            return ()
        seeds = {str(self.seed_dir(side, seed)) for seed in self.seeds(side)}
        return tuple(
            path.relative_to(self.root).as_posix()
            for path in sorted(parent.iterdir())
            if path.name.lower().startswith(start)
            and str(path) not in seeds
            # The files of a process are named after it.
            and not path.is_file()
        )

    def read_files(self) -> Iterator[Path]:
        """Every file that a comparison may read here, whether it is there or not."""
        yield self.launch_info
        yield from (self.done(AJAX_NAME), self.digests(AJAX_NAME))
        yield from (self.ajax_dir / name for name in _AJAX_FILES)
        for seed in self.seeds("ajax"):
            yield from (self.ajax_seed_dir(seed) / name for name in _AJAX_SEED_FILES)
        for seed in self.seeds("reference"):
            name = reference_name(seed)
            yield from (self.done(name), self.digests(name))
            yield from (self.reference_dir(seed) / name for name in _REFERENCE_FILES)

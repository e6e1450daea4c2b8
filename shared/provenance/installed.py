"""Are the files of an environment those that its packages brought? Every one is looked at.

A package's RECORD lists its files with their sha256. What no RECORD vouches for (RECORDs, the
``pyvenv.cfg``, scripts of the environment) is held against digests that were taken when the
environment was built. Bytecode is left out: processes of the project read none beside the sources
(:data:`shared.variables.FIXED`). Nothing says anything about the base interpreter.
"""

import csv
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from shared.errors import UserError
from shared.provenance.distributions import RecordLine, record_hash

#: Path relative to the environment -> how RECORD spells the sha256 of its content.
Digests = dict[str, str]
_THREADS = 4
#: What uv itself puts among the packages.
_OF_UV = frozenset({"_virtualenv.py", "_virtualenv.pth"})
#: Written to by whoever uses the environment.
_WRITTEN = frozenset({".lock"})


class IncompleteError(UserError):
    """Something of an environment is missing, so that it may be built anew."""


def verify_environment(
    prefix: Path, packages: Mapping[str, str], known: Digests | None = None
) -> Digests:
    """Hold the environment ``prefix`` against the RECORDs of its packages, and against ``known``.

    ``packages`` are the listed ones, name -> version. Returns the digests of what no RECORD vouches
    for, as ``known`` of a later look. Raises :class:`IncompleteError` for a missing file or package
    and ``UserError`` for a changed or an additional one, in one line.
    """
    remedy = f"remove {prefix}, and the next command builds it anew"
    site = next(iter(sorted(prefix.glob("lib/python3*/site-packages"))), None)
    if site is None:
        raise IncompleteError(f"{prefix}: holds no packages; {remedy}")
    installed = list(metadata.distributions(path=[str(site)]))
    claimed = _claims(installed, site, prefix)
    found = _digests(prefix)
    own = {path: digest for path, digest in found.items() if None in claimed.get(path, {None})}
    for path in sorted({*claimed, *(known or ())} - set(found)):
        raise IncompleteError(f"{prefix / path}: is missing; {remedy}")
    for path, digest in found.items():
        if digest not in claimed.get(path, {digest}) and path not in own:
            raise UserError(f"{prefix / path}: is not what its package brought; {remedy}")
        if path in own and known is not None and known.get(path) != digest:
            what = "was changed" if path in known else "belongs to no package"
            raise UserError(f"{prefix / path}: {what}; {remedy}")
        if path not in claimed and _is_foreign(path):
            raise UserError(f"{prefix / path}: belongs to no package; {remedy}")
    _check_list(installed, packages, prefix, remedy)
    return own


def _is_foreign(path: str) -> bool:
    """Whether a file that no RECORD names lies where Python would find it."""
    return path.startswith("lib/") and path.rpartition("/")[2] not in _OF_UV


def verify_search_path(search_path: Sequence[str], remedy: str) -> None:
    """Hold the packages on ``search_path`` against their RECORDs, as far as there are any.

    For a Python that a user names: files that no RECORD names are its owner's affair. Raises
    ``UserError`` with ``remedy`` for a changed or missing file.
    """
    for folder in dict.fromkeys(entry for entry in search_path if Path(entry).is_dir()):
        site = Path(folder)
        claims: dict[Path, set[str | None]] = defaultdict(set)
        for distribution in metadata.distributions(path=[folder]):
            for line in _lines(distribution):
                if line.from_wheel and line.checksum.startswith("sha256="):
                    claims[site / line.path].add(line.checksum)
        for path, digest in zip(claims, _hash_all(list(claims)), strict=True):
            if digest not in claims[path]:
                what = "is missing" if digest is None else "is not what its package brought"
                raise UserError(f"{path}: {what}; {remedy}")


def _claims(
    installed: Sequence[metadata.Distribution], site: Path, prefix: Path
) -> dict[str, set[str | None]]:
    """What RECORDs say of each path; ``None`` for a file that they list without a sha256."""
    claims: dict[str, set[str | None]] = defaultdict(set)
    inside = site.relative_to(prefix).as_posix()
    for distribution in installed:
        for line in _lines(distribution):
            path = os.path.normpath(f"{inside}/{line.path}")
            if "__pycache__/" not in path and not path.startswith((os.pardir, os.sep)):
                claims[path].add(line.checksum if line.checksum.startswith("sha256=") else None)
    return claims


def _lines(distribution: metadata.Distribution) -> Iterator[RecordLine]:
    record = distribution.read_text("RECORD")
    for row in csv.reader((record or "").splitlines()):
        if len(row) >= 3:
            yield RecordLine(*row[:3])


def _check_list(
    installed: Sequence[metadata.Distribution],
    packages: Mapping[str, str],
    prefix: Path,
    remedy: str,
) -> None:
    for distribution in installed:
        name = re.sub(r"[-_.]+", "-", distribution.name).lower()
        if packages.get(name) != distribution.version:
            listed = f"the list has {packages[name]}" if name in packages else "is not on the list"
            raise UserError(f"{prefix}: {name} {distribution.version}: {listed}; {remedy}")


def _digests(prefix: Path) -> Digests:
    """The digest of every file below ``prefix`` but bytecode; of a link, where it leads."""
    paths = list(_walk(prefix))
    hashes = _hash_all([prefix / path for path in paths])
    return {path: digest for path, digest in zip(paths, hashes, strict=True) if digest is not None}


def _walk(prefix: Path, folder: str = "") -> Iterator[str]:
    with os.scandir(prefix / folder) as entries:
        for entry in entries:
            path = folder + entry.name
            if not entry.is_dir(follow_symlinks=False):
                if path not in _WRITTEN:
                    yield path
            elif entry.name != "__pycache__":
                yield from _walk(prefix, f"{path}/")


def _hash_all(paths: Sequence[Path]) -> list[str | None]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_hash, paths, chunksize=64))


def _hash(path: Path) -> str | None:
    """The sha256 of a file's content, of a link to a directory or a program its target's name."""
    try:
        if path.is_symlink() and (path.is_dir() or path.parent.name == "bin"):
            return record_hash("sha256", hashlib.sha256(os.fsencode(os.readlink(path))))
        with path.open("rb") as file:
            return record_hash("sha256", hashlib.file_digest(file, "sha256"))
    except OSError:
        return None

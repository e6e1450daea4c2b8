"""Which installed distribution is this, and are its files the ones its wheel held?

A wheel's RECORD lists every file with its sha256. Installers add lines of their own (INSTALLER,
REQUESTED, bytecode), so the identity of a distribution is a digest over the lines that the wheel
brought (protocol section 7, "Locations").
"""

import base64
import csv
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from shared.errors import UserError

#: Digest of the wheel ``ajax-rl`` :data:`shared.protocol.AJAX_RELEASE`, as published.
AJAX_RELEASE_DIGEST = "3fcdd352e076be824d435aba26bd7f090bf24f8de0bb2d75025acff3d2845be1"
#: Named root of an installed distribution's files: ``<site-packages>/ajax/__init__.py``.
INSTALLED_ROOT = "site_packages"

#: Files of a ``.dist-info`` folder that the installer writes, not the wheel.
_INSTALLER_FILES = frozenset(
    {
        "INSTALLER",
        "RECORD",
        "REQUESTED",
        "direct_url.json",
        "provenance_url.json",
        "uv_build.json",
        "uv_cache.json",
    }
)
#: What Python would import from a package's folder. Bytecode in ``__pycache__`` is left out: it is
#: the installer's, and a command that must not trust it sets ``sys.pycache_prefix``.
_IMPORTABLE = frozenset({".py", ".pyc", ".so", ".pyd"})


@dataclass(frozen=True)
class RecordLine:
    """One file of a wheel: path relative to the installation root, ``algorithm=hash``, bytes."""

    path: str
    checksum: str
    size: str

    @property
    def from_wheel(self) -> bool:
        """False for what an installer adds, which differs between installers."""
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or "__pycache__" in path.parts:
            return False  # generated scripts, bytecode
        return not (path.parts[0].endswith(".dist-info") and path.name in _INSTALLER_FILES)


@dataclass(frozen=True)
class Distribution:
    """An installed distribution; ``digest`` is the sha256 over its sorted package lines."""

    name: str
    version: str
    digest: str
    root: Path
    lines: tuple[RecordLine, ...]

    def identity(self) -> dict[str, str]:
        """What a record keeps of it: name, version and digest."""
        return {"name": self.name, "version": self.version, "digest": self.digest}


def package_digest(lines: Sequence[RecordLine]) -> str:
    """sha256 over ``path,checksum,size`` of the package lines, sorted, one a line."""
    package = sorted(f"{line.path},{line.checksum},{line.size}\n" for line in lines)
    return hashlib.sha256("".join(package).encode()).hexdigest()


def find_distribution(name: str, search_path: Sequence[str] | None = None) -> Distribution:
    """The installed distribution ``name``, found on ``search_path`` (default: ``sys.path``).

    Its files are not read. Raises ``UserError`` where it is not installed, or not from a wheel.
    """
    path = list(sys.path if search_path is None else search_path)
    found = next(iter(metadata.distributions(name=name, path=path)), None)
    if found is None:
        raise UserError(
            f"{name} is not installed in this environment: install it, or name a source"
        )
    record = found.read_text("RECORD")
    if record is None:
        raise UserError(f"{name} {found.version} has no RECORD, so its files cannot be verified")
    lines = tuple(
        line
        for line in (RecordLine(*row[:3]) for row in csv.reader(record.splitlines()))
        if line.from_wheel
    )
    root = Path(str(found.locate_file("")))
    return Distribution(name, found.version, package_digest(lines), root, lines)


def verify_distribution(distribution: Distribution) -> None:
    """Compare every file with RECORD; nothing is imported.

    Raises ``UserError`` naming the first changed or missing file, or a file that Python would
    import and RECORD does not list.
    """
    label = f"{distribution.name} {distribution.version}"
    remedy = "reinstall it"
    for line in distribution.lines:
        path = distribution.root / line.path
        if not path.is_file():
            raise UserError(f"{label}: {line.path} is missing: {remedy}")
        if _checksum(path, line.checksum) != line.checksum:
            raise UserError(f"{label}: {line.path} differs from the release's RECORD: {remedy}")
    for extra in _unlisted(distribution):
        raise UserError(f"{label}: {extra} is not part of the release: remove it, or {remedy}")


def _checksum(path: Path, expected: str) -> str:
    """The file's hash, with the algorithm of ``expected``."""
    algorithm = expected.partition("=")[0]
    if algorithm not in hashlib.algorithms_guaranteed:
        raise UserError(f"{path.name}: RECORD has no usable hash for it ({expected!r})")
    with path.open("rb") as file:
        return record_hash(algorithm, hashlib.file_digest(file, algorithm))


def record_hash(algorithm: str, digest: "hashlib._Hash") -> str:
    """As RECORD spells a hash: ``algorithm=`` and its digest, urlsafe base64 without padding."""
    encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    return f"{algorithm}={encoded}"


def _unlisted(distribution: Distribution) -> list[str]:
    """Importable files in the distribution's packages that RECORD does not list, sorted."""
    listed = {line.path for line in distribution.lines}
    tops = {PurePosixPath(path).parts[0] for path in listed}
    packages = sorted(top for top in tops if not top.endswith((".dist-info", ".data")))
    return sorted(
        relative
        for package in packages
        for path in (distribution.root / package).rglob("*")
        if path.suffix in _IMPORTABLE
        and "__pycache__" not in path.parts
        and (relative := path.relative_to(distribution.root).as_posix()) not in listed
    )

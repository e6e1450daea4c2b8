"""Which packages does each of the project's environments consist of?

The lists are the constraints files at the root of the repository: exact versions with hashes, each
headed by the command that regenerates it. An environment takes whole lists or named parts of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.errors import UserError

# What analysis imports, and all that these need. Their versions, taken from the Ajax list, install
# on each of ANALYSIS_PYTHONS (a test holds the two lists closed under dependencies).
ANALYSIS_PACKAGES = frozenset(
    "contourpy cycler fonttools kiwisolver matplotlib numpy packaging pillow pyparsing"
    " python-dateutil pyyaml scipy tzdata".split()
)
ANALYSIS_PYTHONS = ("3.11", "3.12", "3.13")

_REQUIREMENT = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^\s;,*]+)(?P<marker> ; .+?)?"
    r"(?P<hashes>( --hash=sha256:[0-9a-f]{64})+)"
)


@dataclass(frozen=True)
class PackageList:
    """A constraints file of the repository, or the packages of it named in ``only``."""

    file: str
    only: frozenset[str] | None = None


@dataclass(frozen=True)
class Environment:
    """A row of the table: what is installed, and on which Python (any of ``pythons``)."""

    name: str
    summary: str
    pythons: tuple[str, ...]
    lists: tuple[PackageList, ...]

    @property
    def files(self) -> str:
        """The constraints files, as messages name them."""
        return " and ".join(source.file for source in self.lists)


ANALYSIS_LIST = PackageList("constraints-ajax.txt", only=ANALYSIS_PACKAGES)
ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment(
            "reference",
            "the reference code's own packages (protocol section 1)",
            ("3.11",),
            (PackageList("constraints-ref.txt"),),
        ),
        Environment(
            "ajax",
            "the Ajax release and the jax of the published rounds (protocol section 1)",
            ("3.12",),
            (PackageList("constraints-ajax.txt"),),
        ),
        Environment(
            "analysis", "statistics, tables and figures; no jax", ANALYSIS_PYTHONS, (ANALYSIS_LIST,)
        ),
        Environment(
            "dev",
            "analysis, and what the tests and the lint session need",
            ANALYSIS_PYTHONS,
            (ANALYSIS_LIST, PackageList("constraints-dev.txt")),
        ),
    )
}


def requirements(environment: Environment, root: Path) -> str:
    """The environment's packages as a requirements file: sorted, one line each, with hashes.

    Raises:
        UserError: a list is missing, incomplete, not exact, or contradicts another one.
    """
    merged: dict[tuple[str, str], str] = {}
    versions: dict[tuple[str, str], str] = {}
    for source in environment.lists:
        path = root / source.file
        found = list(_read_list(path))
        missing = (source.only or frozenset()) - {package["name"] for package in found}
        if missing:
            raise UserError(f"{path}: lacks {', '.join(sorted(missing))}; regenerate the list")
        for package in found:
            if source.only is not None and package["name"] not in source.only:
                continue
            key = (package["name"], package["marker"] or "")
            if versions.setdefault(key, package["version"]) != package["version"]:
                raise UserError(
                    f"{path}: {key[0]} {package['version']} contradicts {versions[key]} of"
                    f" {environment.lists[0].file}; regenerate the list"
                )
            merged.setdefault(key, package.string)
    return "".join(f"{merged[key]}\n" for key in sorted(merged))


def versions(packages: str) -> dict[str, str]:
    """Name -> version of every package of :func:`requirements`."""
    return {match["name"]: match["version"] for match in _REQUIREMENT.finditer(packages)}


def _read_list(path: Path) -> Iterator[re.Match[str]]:
    """The requirements of a constraints file, comments dropped and continued lines joined."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); restore it") from None
    logical, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first if logical else number
        logical = f"{logical} {line.strip().removesuffix(chr(92)).strip()}".strip()
        if line.rstrip().endswith("\\"):
            continue
        match = _REQUIREMENT.fullmatch(logical)
        if match is None:
            raise UserError(
                f"{path}:{first}: not 'name==version' followed by sha256 hashes;"
                " regenerate the list with the command at its head"
            )
        yield match
        logical = ""
    if logical:
        raise UserError(f"{path}:{first}: the list breaks off; restore the file")

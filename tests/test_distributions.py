"""Identity of an installed distribution: a digest that installers do not change, and its files."""

import base64
import hashlib
from pathlib import Path

import pytest

from shared.errors import UserError
from shared.provenance.distributions import Distribution, find_distribution, verify_distribution

INFO = "demo-1.2.dist-info"
FILES = {
    "demo/__init__.py": b"VALUE = 1\n",
    "demo/data, and more.txt": b"a comma in a name\n",
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.2\n",
}


def line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    quoted = f'"{name}"' if "," in name else name
    return f"{quoted},sha256={digest},{len(content)}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the distribution ``demo`` installed."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    lines = [*(line(*item) for item in FILES.items()), f"{INFO}/RECORD,,\n"]
    (tmp_path / INFO / "RECORD").write_text("".join(lines))
    return tmp_path


def demo(site: Path) -> Distribution:
    return find_distribution("demo", [str(site)])


def append(site: Path, *lines: str) -> None:
    with (site / INFO / "RECORD").open("a") as file:
        file.writelines(lines)


def test_name_version_and_digest(site: Path) -> None:
    found = demo(site)
    expected = hashlib.sha256(
        "".join(sorted(line(*item).replace('"', "") for item in FILES.items())).encode()
    ).hexdigest()
    assert found.identity() == {"name": "demo", "version": "1.2", "digest": expected}
    verify_distribution(found)


def test_installers_do_not_change_the_digest(site: Path) -> None:
    before = demo(site).digest
    append(
        site,
        f"{INFO}/INSTALLER,sha256=x,3\n",
        f"{INFO}/direct_url.json,sha256=x,3\n",
        "demo/__pycache__/__init__.cpython-311.pyc,,\n",
        "../../../bin/demo,sha256=x,200\n",
    )
    record = site / INFO / "RECORD"
    record.write_text("".join(reversed(record.read_text().splitlines(keepends=True))))
    assert demo(site).digest == before
    verify_distribution(demo(site))


def test_a_file_more_changes_the_digest(site: Path) -> None:
    before = demo(site).digest
    append(site, line("demo/more.py", b""))
    assert demo(site).digest != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("demo/__init__.py", b"VALUE = 2\n", "demo 1.2: demo/__init__.py differs from the release"),
        ("demo/__init__.py", None, "demo/__init__.py is missing: reinstall it"),
        (f"{INFO}/METADATA", b"Name: demo\nVersion: 1.2\nx", "METADATA differs"),
        ("demo/extra.py", b"", "demo/extra.py is not part of the release"),
        ("demo/inner/extra.so", b"", "demo/inner/extra.so is not part of the release"),
        ("demo/__init__.pyc", b"", "demo/__init__.pyc is not part of the release"),
    ],
)
def test_planted_changes_are_refused(
    site: Path, name: str, content: bytes | None, message: str
) -> None:
    path = site / name
    path.parent.mkdir(exist_ok=True)
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        verify_distribution(demo(site))
    assert "\n" not in str(caught.value)


def test_data_and_bytecode_of_the_installer_may_lie_beside_the_files(site: Path) -> None:
    (site / "demo" / "cache.json").write_text("{}")
    (site / "demo" / "__pycache__").mkdir()
    (site / "demo" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"")
    verify_distribution(demo(site))


def test_a_file_without_hash_cannot_be_verified(site: Path) -> None:
    (site / "demo" / "bare.py").write_text("")
    append(site, "demo/bare.py,,\n")
    with pytest.raises(UserError, match="no usable hash"):
        verify_distribution(demo(site))


def test_not_installed(site: Path) -> None:
    with pytest.raises(UserError, match="absent is not installed"):
        find_distribution("absent", [str(site)])


def test_installed_without_a_record(site: Path) -> None:
    (site / INFO / "RECORD").unlink()
    with pytest.raises(UserError, match=r"demo 1\.2 has no RECORD"):
        demo(site)

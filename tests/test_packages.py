"""The constraints files: complete, exact, hashed, regenerable, and read without guessing."""

import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from launch.packages import (
    ANALYSIS_PACKAGES,
    ENVIRONMENTS,
    Environment,
    PackageList,
    requirements,
)
from shared.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
LISTS = ("constraints-ref.txt", "constraints-ajax.txt", "constraints-dev.txt")
HASH = " \\\n    --hash=sha256:" + "0" * 64


def pins(text: str) -> dict[str, str]:
    return dict(line.split(" ")[0].split("==") for line in text.splitlines())


@pytest.mark.parametrize("file", LISTS)
def test_list_is_headed_by_the_command_that_writes_it(file: str) -> None:
    head = (ROOT / file).read_text().splitlines()[:2]
    assert all(line.startswith("#") for line in head)
    command = shlex.split(head[1].lstrip("# "))
    assert command[:3] == ["uv", "pip", "compile"]
    assert command[command.index("--output-file") + 1] == file
    assert {"--generate-hashes", "--no-emit-index-url", "--exclude-newer"} <= set(command)
    inputs = [word for word in command if word.endswith((".in", ".txt"))]
    assert all((ROOT / name).is_file() for name in inputs)


@pytest.mark.parametrize("file", LISTS)
def test_list_names_no_index_and_no_place_of_a_machine(file: str) -> None:
    text = (ROOT / file).read_text()
    assert not re.search(r"https?:|file:|(?<!no-emit-)index-url|find-links|(?<![\w.])/\w", text)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_package_is_exact_and_hashed(name: str) -> None:
    for line in requirements(ENVIRONMENTS[name], ROOT).splitlines():
        assert re.match(r"[a-z0-9-]+==[0-9][0-9a-z.+]*( ; [^-]+)?( --hash=sha256:\w{64})+$", line)


def test_reference_list_is_the_protocols_25_packages() -> None:
    wanted = (ROOT / "constraints" / "ref.in").read_text().splitlines()
    wanted = [line for line in wanted if not line.startswith("#")]
    found = pins(requirements(ENVIRONMENTS["reference"], ROOT))
    assert len(wanted) == 25
    assert found == dict(line.split("==") for line in wanted)
    assert (found["jax"], found["numpy"], found["optax"]) == ("0.4.26", "1.26.4", "0.2.2")


def test_ajax_list_holds_the_protocols_versions() -> None:
    wanted = {
        "ajax-rl": "0.4.0",
        "jax": "0.7.2",
        "jaxlib": "0.7.2",
        "flax": "0.12.12",
        "chex": "0.1.92",
        "optax": "0.2.8",
        "distrax": "0.1.9",
        "flashbax": "0.1.3",
        "gymnax": "1.0.1",
    }
    assert wanted.items() <= pins(requirements(ENVIRONMENTS["ajax"], ROOT)).items()


def test_analysis_packages_are_closed_under_dependencies() -> None:
    """And no larger: what numpy, scipy, matplotlib and PyYAML need, on this very Python."""
    reached: set[str] = set()
    waiting = {"numpy", "scipy", "matplotlib", "pyyaml"}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        needs = [Requirement(text) for text in metadata.requires(name) or []]
        needs = [need for need in needs if not need.marker or need.marker.evaluate({"extra": ""})]
        waiting |= {str(canonicalize_name(need.name)) for need in needs} - reached
    assert reached == ANALYSIS_PACKAGES


def test_this_environment_is_the_pinned_one() -> None:
    for name in ANALYSIS_PACKAGES:
        pinned = pins(requirements(ENVIRONMENTS["analysis"], ROOT))[name]
        assert metadata.version(name) == pinned


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("# head\nsix>=1.17" + HASH, 2),
        ("six==1.17.*" + HASH, 1),
        ("six==1.17.0\n", 1),
        ("attrs==26.1.0" + HASH + "\n\nsix==1.17.0 \\\n    --hash=md5:00\n", 4),
        ("six==1.17.0 @ https://example.org/six.whl\n", 1),
        ("attrs==26.1.0" + HASH + "\nsix==1.17.0" + HASH + " \\\n", 3),
        ("attrs==26.1.0" + HASH + "\n--index-url https://example.org\n", 3),
    ],
)
def test_a_list_that_is_not_exact_is_refused(tmp_path: Path, content: str, line: int) -> None:
    (tmp_path / "list.txt").write_text(content)
    environment = Environment("planted", "", ("3.11",), (PackageList("list.txt"),))
    with pytest.raises(UserError, match=rf"list\.txt:{line}: .*(regenerate|restore)") as caught:
        requirements(environment, tmp_path)
    assert "\n" not in str(caught.value)


def test_lists_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("attrs==26.1.0" + HASH + "\nsix==1.17.0" + HASH + "\n")
    (tmp_path / "two.txt").write_text("six==1.16.0" + HASH + "\n")
    both = Environment("both", "", ("3.11",), (PackageList("one.txt"), PackageList("two.txt")))
    with pytest.raises(UserError, match=r"two\.txt: six 1\.16\.0 contradicts 1\.17\.0 of one\.txt"):
        requirements(both, tmp_path)


def test_a_missing_list_and_a_missing_package_are_named(tmp_path: Path) -> None:
    part = PackageList("list.txt", only=frozenset({"six", "attrs"}))
    environment = Environment("part", "", ("3.11",), (part,))
    with pytest.raises(UserError, match=r"list\.txt: cannot be read"):
        requirements(environment, tmp_path)
    (tmp_path / "list.txt").write_text("six==1.17.0" + HASH + "\n")
    with pytest.raises(UserError, match=r"list\.txt: lacks attrs"):
        requirements(environment, tmp_path)

"""launch_info.txt: what is written reads back, and the published rounds' lines are understood."""

from pathlib import Path

import pytest

from shared.errors import RecordError
from shared.records.launch_info import (
    EMPTY_DIFF,
    Revision,
    append_launch,
    format_launch,
    parse_launches,
    parse_revision,
    read_launches,
    side_revision,
)

SHA = "29eb964e2918a3f4db04086f7f51b60388e97f3d"
OTHER = "5cb0738f3a2e127a3f8d64994eac3be1bc8c926e"

#: The two lines are the published ones (protocol section 7); the others stand for what is unknown.
PUBLISHED = f"""launched round 1
date: 2026-10-03 20:29:57 +0200
load: 20:29  up 16 days,  1:09, 1 user, load averages: 22.39 22.57 24.61
reference: <reference-checkout> @ {SHA}
ajax: <ajax-root> @ {OTHER}; uncommitted diff vs HEAD sha1: {EMPTY_DIFF}
rows: 20000
"""


@pytest.mark.parametrize(
    ("key", "revision", "line"),
    [
        (
            "reference",
            Revision(SHA, dirty=False),
            f"<reference-checkout> @ {SHA}; dirty: no",
        ),
        (
            "ajax",
            Revision(OTHER, dirty=True, diff_sha1="a" * 40),
            f"<ajax-root> @ {OTHER}; uncommitted diff vs HEAD sha1: {'a' * 40}; dirty: yes",
        ),
        (
            "ajax",
            Revision(distribution={"name": "ajax-rl", "version": "0.4.0", "digest": "d" * 64}),
            f"ajax-rl 0.4.0; digest sha256: {'d' * 64}",
        ),
        ("project", Revision(SHA, dirty=True), f"<repo> @ {SHA}; dirty: yes"),
        ("project", Revision(), "<repo>; no git checkout"),
    ],
)
def test_revisions_are_written_and_read_back(key: str, revision: Revision, line: str) -> None:
    assert revision.line(key) == line
    assert parse_revision(line) == revision


def test_published_lines_are_understood() -> None:
    (launch,) = parse_launches(PUBLISHED, "launch_info.txt")
    assert launch.revision("reference") == Revision(SHA, dirty=None)
    assert launch.revision("ajax") == Revision(OTHER, dirty=False, diff_sha1=EMPTY_DIFF)
    assert launch.revision("project") is None
    assert launch.sides == ("reference", "ajax")
    assert launch.number("rows") == 20000
    assert launch.number("load") is None


def test_a_published_diff_means_uncommitted_changes() -> None:
    text = PUBLISHED.replace(EMPTY_DIFF, "b" * 40)
    ajax = side_revision(parse_launches(text, "launch_info.txt"), "ajax")
    assert ajax is not None
    assert ajax.dirty is True


def test_two_starts_share_a_file_and_each_side_has_its_own_revision(tmp_path: Path) -> None:
    path = tmp_path / "launch_info.txt"
    reference = Revision(SHA, dirty=False).line("reference")
    ajax = Revision(OTHER, dirty=False).line("ajax")
    append_launch(path, {"sides": "reference", "reference": reference, "seeds": "0 1"})
    before = path.read_text()
    append_launch(path, {"sides": "ajax", "ajax": ajax, "XLA_FLAGS": "--a=1:2"})
    assert path.read_text().startswith(before), "the first start's lines are kept"
    launches = read_launches(path)
    assert [launch.sides for launch in launches] == [("reference",), ("ajax",)]
    assert launches[1].fields["XLA_FLAGS"] == "--a=1:2"
    assert side_revision(launches, "reference") == Revision(SHA, dirty=False)
    assert side_revision(launches, "ajax") == Revision(OTHER, dirty=False)
    assert side_revision(launches[:1], "ajax") is None


def test_two_machines_files_joined_are_one_file() -> None:
    joined = format_launch({"sides": "reference", "rows": "1600"}) + format_launch(
        {"sides": "ajax", "rows": "2000"}
    )
    assert [each.number("rows") for each in parse_launches(joined, "x")] == [1600, 2000]


def test_the_last_start_of_a_side_counts() -> None:
    text = format_launch({"sides": "ajax", "ajax": Revision(SHA).line("ajax")})
    text += format_launch({"sides": "ajax reference", "ajax": Revision(OTHER).line("ajax")})
    assert side_revision(parse_launches(text, "x"), "ajax") == Revision(OTHER)


@pytest.mark.parametrize(
    ("value", "seeds", "number"),
    [
        ("0 1 2", (0, 1, 2), None),
        ("7", (7,), 7),
        ("", None, None),
        ("0 x", None, None),
        ("-1", None, None),
        ("\N{SUPERSCRIPT TWO}", None, None),
        ("1" * 5_000, None, None),
    ],
)
def test_only_whole_numbers_count_as_such(value: str, seeds: object, number: object) -> None:
    (launch,) = parse_launches(f"seeds: {value}\n", "x")
    assert (launch.seeds, launch.number("seeds")) == (seeds, number)


def test_a_value_holds_nothing_that_a_terminal_obeys() -> None:
    (launch,) = parse_launches("ajax arm: a\x1b[2Jb\n", "x")
    assert launch.fields["ajax arm"] == "a\\x1b[2Jb"


def test_an_unknown_format_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "launch_info.txt"
    path.write_text("format: 1\nrows: 1\n\nformat: 2\n")
    with pytest.raises(RecordError, match=r"launch_info\.txt:4: format 2 is unknown"):
        read_launches(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("round: 1\x1b[2J", "round is '1"),
        ("round: 9", "round is '9', expected one of 1, 2, 3"),
        ("round:", "round is ''"),
        ("smoke: perhaps", "smoke is 'perhaps', expected yes or no"),
        ("sides: both", "sides is 'both', expected reference"),
        ("seeds: a b", "seeds is 'a b', expected whole numbers"),
        ("seeds: 0,1", "seeds is '0,1', expected whole numbers"),
        ("rows: 1e4", "rows is '1e4', expected a whole number"),
        ("every: -400", "every is '-400', expected a whole number"),
        ("jobs: 2", "'jobs' is there twice"),
        ("reference arm: exact", "'reference arm' is there twice"),
    ],
)
def test_an_odd_line_of_this_project_is_refused(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "launch_info.txt"
    path.write_text(format_launch({"jobs": "1", "reference arm": "stock"}) + line + "\n")
    with pytest.raises(RecordError) as caught:
        read_launches(path)
    assert str(caught.value).startswith(f"{path}:4: {said}")


def test_a_published_file_may_say_anything_but_two_things() -> None:
    twice = PUBLISHED + PUBLISHED.replace("20:29", "21:30")
    (launch,) = parse_launches(twice + "seeds: all of them\n", "x")
    assert launch.revision("reference") == Revision(SHA)
    with pytest.raises(RecordError, match="x:14: 'reference' is there twice"):
        parse_launches(f"{twice}\nreference: <reference-checkout> @ {OTHER}\n", "x")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "launch_info.txt"
    path.write_text("\ufeff" + format_launch({"rows": "1600"}))
    assert read_launches(path)[0].fields == {"format": "1", "rows": "1600"}


def test_a_file_without_fields_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "launch_info.txt"
    path.write_text("nothing here\n")
    with pytest.raises(RecordError, match="no 'key: value' line"):
        read_launches(path)
    with pytest.raises(RecordError, match="no such file"):
        read_launches(tmp_path / "absent" / "launch_info.txt")


@pytest.mark.parametrize("field", [("a:b", "c"), ("a", "b\nc"), (" a", "b"), ("a", "b\n")])
def test_what_would_not_read_back_is_never_written(field: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="is not one line"):
        format_launch(dict([field]))

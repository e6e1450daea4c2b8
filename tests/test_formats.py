"""How numbers and tables are written."""

import pytest

from analysis.formats import (
    integers,
    interval,
    markdown_table,
    number,
    p_value,
    span,
    text_table,
    yes,
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (number(312.7419), "312.7"),
        (number(-0.05, 2), "-0.05"),
        (number(0.0, 3), "0.000"),
        (number(None), "-"),
        (span(241.36, 386.1), "241.4-386.1"),
        (interval((-27.12, 61.08)), "[-27.1, 61.1]"),
        (interval((0.1234, 0.5), 3), "[0.123, 0.500]"),
        (interval(None), "-"),
        (p_value(0.12164476), "0.1216"),
        (p_value(0.0001), "0.0001"),
        (p_value(0.0000123), "1.2e-05"),
        (p_value(1.0), "1.0000"),
        (p_value(None), "-"),
        (yes(True), "yes"),
        (yes(False), "no"),
        (yes(None), "-"),
        (integers([2_000, 4_000]), "2000 4000"),
        (integers([]), "none"),
    ],
)
def test_values_are_written(written: str, expected: str) -> None:
    assert written == expected


def test_tables_are_written() -> None:
    head, rows = ["seed", "S1"], [["0", "386.1"], ["reference", "9"]]
    assert markdown_table(head, rows) == [
        "| seed | S1 |",
        "| --- | ---: |",
        "| 0 | 386.1 |",
        "| reference | 9 |",
    ]
    assert text_table(head, rows) == [
        "seed       S1",
        "---------  -----",
        "0          386.1",
        "reference  9",
    ]
    assert text_table(head, []) == ["seed  S1", "----  --"]

"""How numbers and tables are written, the same in Markdown and on the terminal."""

from collections.abc import Iterable, Sequence

DASH = "-"


def number(value: float | None, digits: int = 1) -> str:
    """A number with fixed decimals; a dash where there is none."""
    return DASH if value is None else f"{value:.{digits}f}"


def span(low: float, high: float, digits: int = 1) -> str:
    """A range over seeds, ``low-high``, as the published text writes it."""
    return f"{low:.{digits}f}-{high:.{digits}f}"


def interval(bounds: tuple[float, float] | None, digits: int = 1) -> str:
    """An interval ``[low, high]``; a dash where there is none."""
    return DASH if bounds is None else f"[{bounds[0]:.{digits}f}, {bounds[1]:.{digits}f}]"


def p_value(p: float | None) -> str:
    """A p-value with two to four significant decimals."""
    if p is None:
        return DASH
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.1e}"


def yes(value: bool | None) -> str:
    """``yes``, ``no``, or a dash."""
    return DASH if value is None else "yes" if value else "no"


def integers(values: Iterable[int]) -> str:
    """Whole numbers in a row, or ``none``."""
    return " ".join(map(str, values)) or "none"


def some(values: Iterable[int]) -> str:
    """The first of many whole numbers, ascending, and how many more there are."""
    first, *rest = sorted(values)
    shown, more = [first, *rest[:2]], len(rest) - 2
    return integers(shown) + (f" (and {more} more)" if more > 0 else "")


def unread(head: str, reasons: Iterable[str]) -> str:
    """The reading, under its ``head``, of runs that its rules are not about."""
    return f"{head}\n\nReading: out of reach ({'; '.join(reasons)}).\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first column is text, the others are numbers."""
    ruler = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (head, ruler, *rows)]


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table for the terminal, columns aligned on the left."""
    table = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    pairs = (zip(row, widths, strict=True) for row in table)
    lines = ["  ".join(cell.ljust(width) for cell, width in row) for row in pairs]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [line.rstrip() for line in lines]

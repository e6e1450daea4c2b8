"""What a part of the diagnosis found: claims that held or not, a verdict, and the files of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from diagnose.figures import save
from shared.records.arrays import Arrays, write_arrays
from shared.records.files import dump_json, write_atomic


@dataclass(frozen=True)
class Claim:
    """One statement that the numbers could have contradicted."""

    text: str
    measured: str
    holds: bool
    #: What would have refuted it.
    refuted_by: str


@dataclass(frozen=True)
class Table:
    """``rows`` of cells below ``header``; ``note`` says what a row is, with units."""

    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Finding:
    """The outcome of one part. ``agreed`` is the verdict if every claim holds."""

    part: str
    title: str
    agreed: str
    claims: Sequence[Claim]
    tables: Sequence[Table]
    #: Numbers of the tables and the figure, as JSON data.
    data: Mapping[str, Any]
    draw: Callable[[], Figure]
    #: What was not looked at.
    left_out: Sequence[str] = ()
    #: The verdict if a claim does not hold; ``None`` names the claims.
    denied: str | None = None
    #: More numbers than JSON is good for, kept beside it.
    arrays: Arrays = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)

    @property
    def verdict(self) -> str:
        """One line."""
        if self.holds:
            return f"verdict: {self.agreed}"
        if self.denied is not None:
            return f"verdict: {self.denied}"
        failed = "; ".join(
            f"{each.text} ({each.measured})" for each in self.claims if not each.holds
        )
        return f"verdict: refuted: {failed}"

    def write(self, directory: Path, stem: str) -> list[Path]:
        """Write table, JSON and figure, called ``stem``, into ``directory``.

        Replaces those of an earlier run that was asked the same. What took longest is written
        first.
        """
        record = {
            "part": self.part,
            "verdict": self.verdict,
            "holds": self.holds,
            "claims": [vars(claim) for claim in self.claims],
            "left_out": list(self.left_out),
            **self.data,
        }
        directory.mkdir(parents=True, exist_ok=True)
        text, numbers = directory / f"{stem}.md", directory / f"{stem}.json"
        series = [directory / f"{stem}.npz"] if self.arrays else []
        for path in series:
            write_arrays(path, self.arrays)
        write_atomic(numbers, dump_json(record))
        write_atomic(text, self.markdown(stem))
        return [text, numbers, *series, *save(self.draw(), directory, stem)]

    def markdown(self, stem: str) -> str:
        """Claims, tables and verdict as one document, beside the figure ``stem``."""
        held = [
            ("yes" if each.holds else "NO", each.text, each.measured, each.refuted_by)
            for each in self.claims
        ]
        claims = Table("", ("holds", "claim", "measured", "refuted by"), held)
        blocks = [f"# {self.title}", _markdown(claims)]
        for table in self.tables:
            blocks += [table.note, _markdown(table)]
        if self.left_out:
            blocks.append("Not looked at: " + "; ".join(self.left_out) + ".")
        blocks += [f"![{self.title}]({stem}.png)", self.verdict]
        return "\n\n".join(blocks) + "\n"


def _markdown(table: Table) -> str:
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    # A bar would end the cell.
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"

"""The files that a comparison consists of, made in memory and written together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.canvas import Data
from analysis.figures import draw_all, figure_data
from analysis.outputs import as_json, file_names
from analysis.study import Study
from analysis.tables import render
from shared.records.files import dump_json, write_atomic

FIGURE_NUMBERS = "figures.json"


@dataclass(frozen=True)
class Documents:
    """File name -> text, and figure name -> the numbers it shows."""

    texts: Mapping[str, str]
    figures: Mapping[str, Data]

    def write(self, directory: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
        """Write texts and draw figures into ``directory``; returns the files."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in self.texts.items():
            write_atomic(directory / name, text)
        drawn = draw_all(self.figures, directory, formats)
        return [*(directory / name for name in self.texts), *drawn]


def documents(texts: Mapping[str, str], figures: Mapping[str, Data]) -> Documents:
    """``texts`` and the numbers behind ``figures``, as documents."""
    return Documents({**texts, FIGURE_NUMBERS: dump_json(figures)}, figures)


def of_study(result: Study) -> Documents:
    """Tables, JSON and figures of one comparison."""
    markdown, data = file_names(result.comparison.round_number)
    texts = {
        markdown: render(result.comparison, result.checks),
        data: dump_json(as_json(result.comparison, result.checks, result.audits)),
    }
    return documents(texts, figure_data(result.comparison))

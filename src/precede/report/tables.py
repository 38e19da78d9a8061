"""A table of results, and its text in Markdown, LaTeX, HTML and CSV.

    table = Table("Waits by lifetime", ("lifetime", "wait, s"), [("5min", 12.5), ("20min", 80.25)])
    write_table(table, Path("out"), "waits")          # out/waits.md, .tex, .html, .csv

Numbers are rounded for reading (`shown`), except in CSV, which keeps all digits. None is an empty cell.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from markupsafe import Markup, escape


class Link(NamedTuple):
    """A cell that is a link in HTML and plain text in other formats."""

    text: str
    target: str


Cell: TypeAlias = str | int | float | Link | None

WORDS: Final = {
    "holds": "good",
    "reproduced": "good",
    "finished": "good",
    "close": "fair",
    "open": "fair",
    "withheld": "mute",
    "no points": "mute",
    "paper scale only": "mute",
    "unknown": "fair",
    "violated": "bad",
    "not reproduced": "bad",
    "failed": "bad",
}
"""Verdicts and statuses, with the CSS class that colours them in HTML."""

_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "Δ": r"$\Delta$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "–": "--",
}


@dataclass(frozen=True)
class Table:
    """A caption, column names and rows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{self.caption}: a row has {len(row)} cells for {len(self.header)} columns")

    def numeric(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(isinstance(cell, int | float) for cell in cells)


def shown(cell: Cell) -> str:
    """Return a cell as text: four significant digits, thousands separated by commas.

    >>> [shown(c) for c in (None, 1234567, 0.123456, 12345.678, 3.0, -0.00001234, "a", True)]
    ['', '1,234,567', '0.1235', '12,346', '3', '-1.234e-05', 'a', 'yes']
    """
    if cell is None:
        return ""
    if isinstance(cell, Link):
        return cell.text
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if 1000 <= abs(cell) < 1e15 else f"{cell:.4g}"
    return cell


def markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = ["---:" if table.numeric(c) else "---" for c in range(len(table.header))]
    rows = [[shown(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in table.rows]
    lines = [line(list(table.header)), line(rule), *map(line, rows)]
    return f"**{table.caption}**\n\n" + "\n".join(lines) + "\n"


def latex(table: Table, label: str = "") -> str:
    """Return the table as a LaTeX `table` environment; it needs the package `booktabs`."""
    align = "".join("r" if table.numeric(c) else "l" for c in range(len(table.header)))
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_latex_text(table.caption)}}}",
        *([rf"  \label{{{label}}}"] if label else []),
        rf"  \begin{{tabular}}{{{align}}}",
        r"    \toprule",
        "    " + " & ".join(map(_latex_text, table.header)) + r" \\",
        r"    \midrule",
        *("    " + " & ".join(_latex_text(shown(cell)) for cell in row) + r" \\" for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_text(text: str) -> str:
    return re.sub(r"[\\&%$#_{}~^Δ≤≥×–]", lambda match: _LATEX[match[0]], " ".join(text.split()))


def html(table: Table) -> Markup:
    """Return the table as an accessible HTML table: caption, header scopes, the first column as row header."""
    right = [table.numeric(c) for c in range(len(table.header))]
    head = "".join(
        f'<th scope="col"{_class("number" if right[c] else "")}>{escape(name)}</th>'
        for c, name in enumerate(table.header)
    )
    body = "\n".join(
        "<tr>" + "".join(_html_cell(cell, c, right[c]) for c, cell in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    return Markup(
        f"<table>\n<caption>{escape(table.caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n"
    )


def _html_cell(cell: Cell, column: int, number: bool) -> str:
    text = str(escape(shown(cell)))
    if isinstance(cell, Link):
        text = f'<a href="{escape(cell.target)}">{text}</a>'
    elif isinstance(cell, str) and cell in WORDS:
        text = f'<span class="word {WORDS[cell]}">{text}</span>'
    if column == 0:
        return f'<th scope="row">{text}</th>'
    return f"<td{_class('number' if number else '')}>{text}</td>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def csv_text(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.header)
    for row in table.rows:
        writer.writerow([cell.text if isinstance(cell, Link) else cell for cell in row])
    return out.getvalue()


def write_table(table: Table, folder: Path, name: str) -> list[Path]:
    """Write `name.md`, `name.tex`, `name.html` (only the table element) and `name.csv`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    forms = {
        "md": markdown(table),
        "tex": latex(table, f"tab:{name}"),
        "html": html(table),
        "csv": csv_text(table),
    }
    written = []
    for suffix, text in forms.items():
        path = folder / f"{name}.{suffix}"
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written

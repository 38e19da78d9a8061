"""The pages of papers and their exhibits: claims, our measurements, and the command to run them again."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Final

from markupsafe import Markup

from precede.lake.layout import Lake
from precede.lake.results import Row
from precede.report.figures import Curve, Figure, Mark, Point
from precede.report.tables import Cell, Link, Table, html, shown
from precede.report.writing import Pages, Section, page_name, pictured, rendered, with_numbers

_EXHIBIT: Final = re.compile(r"(?:Table|Figure|Fig\.)s?\s+[0-9IVX]+[a-z]?\b|[Ss]ection\s+[0-9A-Z.\-]+")
_ROMAN: Final = {
    "I": "1",
    "II": "2",
    "III": "3",
    "IV": "4",
    "V": "5",
    "VI": "6",
    "VII": "7",
    "VIII": "8",
    "IX": "9",
}
_CLAIMS_A_FIGURE: Final = 24
NOT_MEASURED: Final = "not measured here"


def write_papers(pages: Pages, lake: Lake, comparisons: list[Row], papers: Path | None) -> Table:
    """Write the pages of the papers that this lake has measured; returns the index's table."""
    claims = _claims(comparisons, papers)
    rows: list[list[Cell]] = []
    for paper, listed in sorted(claims.items()):
        page = _write_paper(pages, lake, paper, listed, papers)
        by_status = Counter(row["status"] for row in listed)
        counts: list[Cell] = [by_status[word] or None for word in _STATUSES]
        rows.append([Link(paper, page), len(listed), *counts])
    return Table("Claims by status", ("paper", "claims", *_STATUSES), rows)


_STATUSES: Final = ("reproduced", "close", "open", "not reproduced", "withheld", NOT_MEASURED)


def exhibit_of(place: str) -> str:
    """Return the exhibit that a claim's place names: a figure or table, else a section.

    >>> [exhibit_of(p) for p in ("section 7.1, Figure 4", "Table II", "section 5.1", "beyond")]
    ['Figure 4', 'Table II', 'section 5.1', 'beyond']
    """
    exhibits = [match[0] for match in _EXHIBIT.finditer(place)]
    figures = [exhibit for exhibit in exhibits if not exhibit.lower().startswith("section")]
    return (figures or exhibits or [place])[0]


def _claims(comparisons: list[Row], papers: Path | None) -> dict[str, list[Row]]:
    """Return the claims of each paper that this lake has compared: the measured ones, then all others."""
    claims: dict[str, list[Row]] = {}
    compared: set[tuple[str, str]] = set()
    for row in comparisons:
        status = NOT_MEASURED if row["status"] in ("no points", "paper scale only") else row["status"]
        claims.setdefault(row["paper"], []).append(row | {"status": status})
        compared.add((row["paper"], row["claim"]))
    for path in sorted(papers.glob("*/claims.toml")) if papers is not None else ():
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for claim in content.get("claim", ()):
            if content["paper"] in claims and (content["paper"], claim["id"]) not in compared:
                claims[content["paper"]].append(_not_measured(claim))
    return claims


def _not_measured(claim: Row) -> Row:
    value, tolerance = claim.get("value"), claim.get("tolerance", 0)
    return {
        "claim": claim["id"],
        "place": claim.get("place", ""),
        "says": claim.get("says", ""),
        "measure": claim.get("measure", ""),
        "kind": claim.get("kind", ""),
        "published_low": claim.get("low", None if value is None else value - tolerance),
        "published_high": claim.get("high", None if value is None else value + tolerance),
        **dict.fromkeys(("ours_low", "ours_high", "interval_low", "interval_high")),
        "status": "withheld" if claim.get("kind") == "withheld" else NOT_MEASURED,
        "points": 0,
    }


def _write_paper(pages: Pages, lake: Lake, paper: str, claims: list[Row], papers: Path | None) -> str:
    """Write the page of a paper and the pages of its exhibits; returns the name of the first."""
    exhibits: dict[str, list[Row]] = {}
    for row in claims:
        exhibits.setdefault(row.get("exhibit") or exhibit_key(exhibit_of(row["place"])), []).append(row)
    rows: list[list[Cell]] = []
    for name, listed in exhibits.items():
        page = _write_exhibit(pages, paper, name, listed, _curves(lake, paper, name))
        by_status = Counter(row["status"] for row in listed)
        counts: list[Cell] = [by_status[word] or None for word in _STATUSES]
        rows.append([Link(exhibit_title(name), page), len(listed), *counts])
    reading = papers / paper / "reading.md" if papers is not None else None
    prose = rendered(reading.read_text(encoding="utf-8")) if reading is not None and reading.is_file() else ""
    table = Table("Exhibits", ("exhibit", "claims", *_STATUSES), rows)
    return pages.write(
        page_name("paper", paper),
        "tables.html",
        title=paper,
        lead=f"All {len(claims)} claims. The tolerance of each was set before the runs. "
        "Claims that this lake has not measured show the results that the package brings.",
        sections=[
            Section(tables=[html(table)], command=f"precede reproduce {paper} --scale quick"),
            *([Section("Our reading, and errors in the paper", prose)] if prose else []),
        ],
    )


def exhibit_key(exhibit: str) -> str:
    """Return the exhibit as `precede reproduce` names it.

    >>> [exhibit_key(e) for e in ("Figure 4", "Table II", "section 5.1")]
    ['figure4', 'table2', 'section5.1']
    """
    kind, _, number = exhibit.partition(" ")
    return kind.lower().rstrip(".") + _ROMAN.get(number, number.lower())


def exhibit_title(key: str) -> str:
    """Return the key of an exhibit as a title.

    >>> exhibit_title("figure4"), exhibit_title("section5.1"), exhibit_title("text")
    ('Figure 4', 'Section 5.1', 'Text')
    """
    return re.sub(r"^([a-z]+)(?=[0-9])", r"\1 ", key).capitalize()


def _curves(lake: Lake, paper: str, exhibit: str) -> list[Markup]:
    """Return the figures with curves that reproductions of the paper left in the lake for one exhibit."""
    files = [file for file in lake.exhibit_files(paper) if file.name.endswith("-curves.svg")]
    return [pictured(file) for file in files if file.name.startswith(exhibit)]


def _write_exhibit(pages: Pages, paper: str, exhibit: str, claims: list[Row], curves: list[Markup]) -> str:
    """Write the page of one table, figure or section; returns its name."""
    title = exhibit_title(exhibit)
    measured = [row for row in claims if row["ours_low"] is not None]
    figures = []
    for measure in dict.fromkeys(row["measure"] for row in measured):
        listed = [row for row in measured if row["measure"] == measure]
        for at in range(0, len(listed), _CLAIMS_A_FIGURE):
            figures.append(_figure(f"{title}: {measure}", measure, listed[at : at + _CLAIMS_A_FIGURE]))
    rows: list[list[Cell]] = [
        [
            row["claim"] + (f" ({row['reading']})" if row.get("reading") else ""),
            row["says"],
            _span(row["published_low"], row["published_high"]),
            _span(row["ours_low"], row["ours_high"]),
            _span(row["interval_low"], row["interval_high"]),
            row["status"],
            row.get("reason"),
        ]
        for row in claims
    ]
    columns = ("claim", "statement", "published, with tolerance", "ours", "95 % interval", "status", "reason")
    back = Markup('<p><a href="{}">All exhibits of {}</a></p>').format(page_name("paper", paper), paper)
    return pages.write(
        page_name("exhibit", f"{paper}-{exhibit}"),
        "tables.html",
        title=f"{paper}: {title}",
        lead="" if measured else "This lake has no measurements for these claims yet.",
        sections=[
            Section(text=back, figures=[{"svg": curve, "table": Markup()} for curve in curves]),
            Section(figures=[with_numbers(figure) for figure in figures]),
            Section(
                "Claims",
                tables=[html(Table(title, columns, rows))],
                command=f"precede reproduce {paper}/{exhibit} --scale quick",
            ),
        ],
    )


def _figure(title: str, measure: str, rows: list[Row]) -> Figure:
    """Draw claims in one figure, in the order of the page's table; published values are marks."""
    ours, marks = [], []
    for x, row in enumerate(rows):
        low, high = row["interval_low"], row["interval_high"]
        ours.append(Point(x, (row["ours_low"] + row["ours_high"]) / 2, low, high))
        if row["published_low"] is not None or row["published_high"] is not None:
            ends = row["published_low"], row["published_high"]
            marks.append(Mark(x, low=ends[0], high=ends[1], says=f"{row['claim']}: {row['says']}"))
    names = [str(number + 1) for number in range(len(rows))]
    return Figure(
        title, "claim, in the order of the table", measure, [Curve("ours", ours, joined=False)], marks, names
    )


def _span(low: float | None, high: float | None) -> str:
    """Return a value or a range as text; an open end is written with ≤ or ≥."""
    if low is None and high is None:
        return ""
    if low is None or high is None:
        return f"≤ {shown(high)}" if low is None else f"≥ {shown(low)}"
    return shown(float(low)) if low == high else f"{shown(float(low))} to {shown(float(high))}"

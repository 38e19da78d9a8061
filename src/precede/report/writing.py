"""Pages from templates, and the words that several pages share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from precede.report.figures import Figure, svg, table_of
from precede.report.tables import Table, html


class Section(NamedTuple):
    """A part of a page: prose, figures, tables, and the line that makes them again."""

    title: str = ""
    text: Markup | str = ""
    figures: Sequence[Mapping[str, Markup]] = ()
    tables: Sequence[Markup] = ()
    command: str = ""


class Pages:
    """A folder of pages under way."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.written: list[str] = []
        self._templates = Environment(
            loader=PackageLoader("precede.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            keep_trailing_newline=True,
        )

    def write(self, page: str, template: str, **told: Any) -> str:
        """One page; markup that this package made goes in as it is, everything else is escaped."""
        marked = {name: Markup(value) if _is_markup(value) else value for name, value in told.items()}
        text = self._templates.get_template(template).render(**marked)
        (self.out / page).write_text(text, encoding="utf-8")
        self.written.append(page)
        return page

    def data(self, name: str, script: str) -> str:
        """A script of data; its address from a page."""
        (self.out / "data" / f"{name}.js").write_text(script, encoding="utf-8")
        return f"data/{name}.js"


def _is_markup(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("<table>", "<svg "))


def drawn(figure: Figure) -> Markup:
    """A figure as it stands in a page."""
    return Markup(svg(figure))


def tabled(table: Table) -> Markup:
    """A table as it stands in a page."""
    return Markup(html(table))


def with_numbers(figure: Figure) -> dict[str, Markup]:
    """A figure, and the same in numbers."""
    return {"svg": drawn(figure), "table": tabled(table_of(figure))}


def rendered(markdown: str) -> Markup:
    """Prose that was written in Markdown; headings go below those of the page."""
    from markdown_it import MarkdownIt

    text = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    text = re.sub(r"<(/?)h([1-4])>", lambda m: f"<{m[1]}h{int(m[2]) + 1}>", text)
    text = re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", text)
    wide = '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>'
    return Markup(text.replace("<table>", wide).replace("</table>", "</table></div>"))


def slug(text: str) -> str:
    """A name for a file.

    >>> slug("Table II, 5 min")
    'table-ii-5-min'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def options_text(options: str) -> str:
    """What a grid varied, as a person reads it.

    >>> options_text('{"workload.lifetime":"5min","size":3}')
    'lifetime 5min, size 3'
    """
    told = json.loads(options)
    return ", ".join(
        f"{key.rpartition('.')[2]} {value}"
        for key, value in told.items()
        if value is not None and key != "protocol"
    )

"""Writes pages from templates, with helpers that several kinds of pages share."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from precede.report.figures import Figure, svg, table_of
from precede.report.tables import html

POLICY: Final = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)
"""The content-security policy of every page. A page opened from a disk has no origin, hence `file:`."""


SECTIONS: Final = ("sweeps", "traces", "runs", "papers", "protocols")


class Section(NamedTuple):
    """A section of a page; `filter` is the id of the field that filters the rows of its tables, if any."""

    title: str = ""
    text: Markup | str = ""
    figures: Sequence[Mapping[str, Markup]] = ()
    tables: Sequence[Markup] = ()
    command: str = ""
    filter: str = ""


class Pages:
    """The folder of a site: writes its pages and lists them in `written`."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.written: list[str] = []
        self.sections: Sequence[str] = SECTIONS
        """The sections of the front page, to which every page has links."""
        self._templates = Environment(
            loader=PackageLoader("precede.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            keep_trailing_newline=True,
        )

    def write(self, page: str, template: str, **values: Any) -> str:
        """Write one page and return its name. Only values of the type `Markup` are inserted unescaped."""
        text = self._templates.get_template(template).render(policy=POLICY, links=self.sections, **values)
        (self.out / page).write_text(text, encoding="utf-8")
        self.written.append(page)
        return page

    def file(self, name: str, text: str) -> None:
        (self.out / name).write_text(text, encoding="utf-8")
        self.written.append(name)

    def data(self, name: str, script: str) -> str:
        """Write a script with data; returns its address relative to a page."""
        (self.out / "data" / f"{name}.js").write_text(script, encoding="utf-8")
        return f"data/{name}.js"


def with_numbers(figure: Figure) -> dict[str, Markup]:
    return {"svg": svg(figure), "table": html(table_of(figure))}


def pictured(path: Path) -> Markup:
    """Return an SVG file as an HTML image, not as an SVG element: a browser runs no script of an image."""
    encoded = b64encode(path.read_bytes()).decode()
    picture = '<img class="figure" alt="{}" src="data:image/svg+xml;base64,{}">'
    return Markup(picture).format(path.stem, encoded)


def rendered(markdown: str) -> Markup:
    """Return Markdown as markup: headings one level lower, relative links as text, wide tables scrollable."""
    from markdown_it import MarkdownIt

    text = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    text = re.sub(r' style="text-align:(\w+)"', r' class="\1"', text)  # the policy forbids inline styles
    text = re.sub(r"<(/?)h([1-4])>", lambda m: f"<{m[1]}h{int(m[2]) + 1}>", text)
    text = re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", text)
    wide = '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>'
    return Markup(text.replace("<table>", wide).replace("</table>", "</table></div>"))


def slug(text: str) -> str:
    """Return a text as a file name.

    >>> slug("Table II, 5 min")
    'table-ii-5-min'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def page_name(kind: str, name: str) -> str:
    """Return the file of a page. A name that is not a plain file name is replaced by a slug and a hash.

    >>> page_name("protocol", "delta_causal"), page_name("protocol", "../a")
    ('protocol-delta_causal.html', 'protocol-a-61b4c98b.html')
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+@=-]{0,150}", name):
        name = f"{slug(name)[:100]}-{sha256(name.encode()).hexdigest()[:8]}"
    return f"{kind}-{name}.html"


def options_text(options: str) -> str:
    """Return the settings that a grid varied, from JSON to readable text.

    >>> options_text('{"workload.lifetime":"5min","size":3}')
    'lifetime 5min, size 3'
    """
    settings = json.loads(options)
    return ", ".join(
        f"{key.rpartition('.')[2]} {value}"
        for key, value in settings.items()
        if value is not None and key != "protocol"
    )

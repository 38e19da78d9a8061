"""The documentation site: `make docs` builds it with Sphinx from the pages and notebooks of this folder.

Pages are in the navigation by the lists in index.md. A notebook is shown with its stored output;
tests/docs/test_notebooks.py runs it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

project = "Precede"
author = "The Precede developers"
copyright = author
version = release = re.findall(r'__version__ = "(.+)"', (ROOT / "src/precede/__init__.py").read_text("utf-8"))[
    0
]

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]  # blocks with "…" in them are not Python
nitpicky = True

html_theme = "furo"
html_title = "Precede"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which a browser refuses for pages from a disk
html_theme_options = {"navigation_with_keys": True}


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown page that its cells and stored outputs make."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        super().parse(as_page(json.loads(inputstring)), document)


def as_page(notebook: dict[str, Any]) -> str:
    """The Markdown of a notebook: text as it is, code as blocks, outputs below their cell."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else block(source, "python"))
        parts += [shown for output in cell.get("outputs", []) if (shown := as_shown(output))]
    return "\n\n".join(parts) + "\n"


def as_shown(output: dict[str, Any]) -> str:
    """One stored output: a picture, else a table, else text."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<img class="output" alt="Figure drawn by the cell above" src="data:image/png;base64,{png}">'
    if "text/html" in data:
        table = re.sub(r"\n\s*", "", "".join(data["text/html"]))  # a blank line would end the HTML
        return f'<div class="output">{table}</div>'
    return block("".join(data["text/plain"]).rstrip("\n"), "text")


def block(text: str, language: str) -> str:
    return f"````{language}\n{text}\n````"


def without_links_to_the_repository(app: Sphinx, page: str, content: list[str]) -> None:
    """Write links to files outside of this folder, which are not on the site, as their names."""
    folder = Path(app.env.doc2path(page)).parent

    def shown(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        outside = target.is_relative_to(ROOT) and not target.is_relative_to(ROOT / "docs")
        return f"{link[1]} (`{target.relative_to(ROOT)}`)" if outside else link[0]

    content[0] = re.sub(r"\[([^\]\n]+)\]\((\.\./[^)#:\s]+)(?:#[^)]*)?\)", shown, content[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", without_links_to_the_repository)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)

"""The documentation site: every page is in its navigation, no warning, no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.conftest import Watched, browser, watched

__all__ = ["browser", "watched"]  # fixtures

ROOT = Path(__file__).parents[2]
LIST = re.compile(r"^```\{toctree\}\n(.*?)^```", re.M | re.S)
ASSET = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*\bhref=\"(?:https?:)?//"
)


def outside_of_navigation(docs: Path) -> list[str]:
    """A line for each page that is in no list of the navigation, or in two."""
    listed: dict[Path, int] = {}
    for page in docs.rglob("*.md"):
        for entries in LIST.findall(page.read_text(encoding="utf-8")):
            for entry in re.findall(r"^(?!:)(?:.*<)?([^<>\n]+?)>?$", entries, re.M):
                for found in page.parent.glob(f"{entry}.*"):
                    if found.suffix in (".md", ".ipynb"):
                        listed[found] = listed.get(found, 0) + 1
    lines = []
    for page in sorted([*docs.rglob("*.md"), *docs.rglob("*.ipynb")]):
        name = page.relative_to(docs)
        if page != docs / "index.md" and listed.get(page) != 1:
            lines.append(
                f"docs/{name} is in {listed.get(page, 'no')} lists of the navigation: "
                f"write {name.with_suffix('')} into one toctree of docs/index.md"
            )
    return lines


def test_every_page_is_in_the_navigation_once() -> None:
    assert not outside_of_navigation(ROOT / "docs"), "\n".join(outside_of_navigation(ROOT / "docs"))


def test_a_page_outside_of_the_navigation_is_named(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    (tmp_path / "index.md").write_text("# Site\n\n```{toctree}\n:hidden:\n\none\nAnother title <two>\n```\n")
    assert [line.split(":")[0] for line in outside_of_navigation(tmp_path)] == [
        "docs/three.md is in no lists of the navigation"
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    out = tmp_path_factory.mktemp("site")
    sides = (ROOT / "docs", out / "docs")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "--fail-on-warning",
            "--keep-going",
            "-d",
            out / "trees",
            *sides,
        ],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.replace(f"{ROOT}/", "")
    return out / "docs"


def test_no_page_loads_anything_from_elsewhere(built: Path) -> None:
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        assert not ASSET.findall(page.read_text(encoding="utf-8")), page.name
    for style in built.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8"), style.name


def test_every_name_of_the_interface_is_on_its_page(built: Path) -> None:
    import precede

    page = (built / "reference" / "api.html").read_text(encoding="utf-8")
    for name in set(precede.__all__) - {"__version__"}:
        assert f'id="{name.lower()}' in page or f">{name}<" in page, name


def test_the_search_finds_a_page_from_the_disk(built: Path, watched: Watched) -> None:
    page = watched.open(built / "search.html", "?q=deadline")
    page.wait_for_selector('#search-results li a[href*="concepts/orders.html"]', timeout=20_000)
    assert not watched.wrong


def test_a_notebook_is_a_page_with_its_pictures(built: Path, watched: Watched) -> None:
    page = watched.open(built / "guides" / "simulate-and-verify.html")
    assert page.locator("h1").inner_text().startswith("Simulate, verify, plot")
    assert page.locator("img.output").evaluate("image => image.naturalWidth") > 100
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not watched.wrong

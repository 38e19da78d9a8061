"""Every picture and every table of numbers in the documents names the command that made it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from precede.experiments.worlds.kinds import KINDS, find_kind

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"(?:^|`|\$ )(?:precede|python -m|python docs/|make|pytest) [^`\n]+", re.M)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)|<img[^>]*src=\"([^\"]+)\"")
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
NUMBER = re.compile(r"[-+~<>]?\d[\d,.]*( ?(%|x|×|s|ms|µs|min|h|bytes|kB|MB|GB))?( \[.*\])?")
DEFINED = {
    ("docs/concepts/orders.md", "## Verdicts"),
    ("docs/reference/wire.md", "## Frame"),
    ("docs/reference/wire.md", "## Data for everybody"),
    ("docs/decisions/README.md", "# Decisions"),
    ("docs/reference/wire.md", "## Piece"),
    ("docs/reference/wire.md", "## Packet"),
    ("docs/reference/wire.md", "## Kinds"),
    ("docs/security.md", "## Bounds"),
    ("docs/reference/scenario.md", "## `[workload]`"),
    *(
        ("docs/reference/scenario.md", f"## `[world]` of kind `{kind}`: {find_kind(kind).title}")
        for kind in KINDS
    ),
}
"""Tables of what the program is, with no measured number: sizes of fields, exit codes, limits, defaults."""
GALLERY = runpy.run_path(str(ROOT / "docs" / "gallery" / "draw.py"))
MAKERS = {
    **dict.fromkeys(("from-scans.svg", "lifetimes.svg"), "precede export"),
    "chat-phone.png": "tests/javascript/test_chromium.py",
    **dict.fromkeys((f"{name}.svg" for name in GALLERY["scenarios"]()), "docs/gallery/draw.py"),
    "tables.svg": "docs/reference/draw_tables.py",
    "../reference/where-time-goes.svg": "benchmarks.profile",
    "repro-timestamp.svg": "precede repro",
    "rules-of-apps.svg": "examples.same_screens",
    **dict.fromkeys(("late.svg", "story.svg", "docs/field/late.svg", "field/late.svg"), "precede audit"),
}


def sections(document: Path) -> list[tuple[str, str]]:
    parts = re.split(r"(?m)^(?=#{1,6} )", document.read_text(encoding="utf-8"))
    return [(part.splitlines()[0], part) for part in parts if part.strip()]


def is_of_numbers(table: str) -> bool:
    """At least three cells, or one of seven, are numbers."""
    rows = [re.split(r"(?<!\\)\|", row)[1:-1] for row in table.splitlines()[2:]]
    cells = [cell.strip().strip("*`") for row in rows for cell in row]
    numbers = sum(bool(NUMBER.fullmatch(cell)) for cell in cells)
    return numbers >= 3 or numbers * 7 > len(cells) > 0


def without_command(document: Path, name: str) -> list[str]:
    """What a document shows without saying how it was made."""
    text = document.read_text(encoding="utf-8")
    found = []
    for title, part in sections(document):
        if (name, title) in DEFINED or COMMAND.search(part):
            continue
        found += [f"{name}, {title}: a table" for table in TABLE.findall(part) if is_of_numbers(table)]
    for one, other in PICTURE.findall(text):
        picture = one or other
        made_by = MAKERS.get(
            picture, "docs/pictures/draw.py" if "pictures/" in picture else "precede reproduce"
        )
        if not re.search(rf"`[^`\n]*{re.escape(made_by)}[^`\n]*`", text):
            found.append(f"{name}: {picture} ({made_by} is not named)")
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_what_is_shown_names_its_command(document: Path) -> None:
    assert not without_command(document, str(document.relative_to(ROOT)))


def test_a_table_or_picture_without_command_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    table = "| a | b |\n| --- | --- |\n| x | 3.5 |\n| y | 7 |\n| z | 12 % |\n"
    page.write_text(f"# A\n\n{table}\n## B\n\nBy `precede reproduce x`:\n\n{table}\n![p](pictures/p.svg)\n")
    assert without_command(page, "page.md") == [
        "page.md, # A: a table",
        "page.md: pictures/p.svg (docs/pictures/draw.py is not named)",
    ]


def test_drawings_are_what_the_command_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw.py"))["DRAWINGS"]
    assert {path.stem for path in (ROOT / "docs" / "pictures").glob("*.svg")} == set(drawn)
    for name, drawing in drawn.items():
        assert (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == drawing.svg(), name


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(name, marks=[] if name == "random-waypoint" else [pytest.mark.long])
        for name in GALLERY["scenarios"]()
    ],
)
def test_a_world_of_the_gallery_is_what_the_command_draws(world: str) -> None:
    drawn = GALLERY["svg"](world, GALLERY["scenarios"]()[world])
    assert (ROOT / "docs" / "gallery" / f"{world}.svg").read_text(encoding="utf-8") == drawn


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_a_named_module_exists(document: Path) -> None:
    for module in re.findall(r"python -m ((?:precede|benchmarks|examples|tests)[\w.]*)", document.read_text()):
        folders = (ROOT, ROOT / "src")
        path = Path(*module.split("."))
        assert any((f / path).is_dir() or (f / path).with_suffix(".py").is_file() for f in folders), module

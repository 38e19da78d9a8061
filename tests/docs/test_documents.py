"""What the documents show is run: Python blocks, files, commands (tests/docs/reader.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.reader import Reader, blocks, missing_line, runnable, words_of

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLLOWED = [
    page
    for folder in ("tutorials", "how-to", "gallery")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(d, marks=[pytest.mark.long] if d in FOLLOWED else [], id=d.stem)
        for d in DOCUMENTS
        if runnable(d)
    ],
)
def test_what_a_document_shows_works(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Reader(document, tmp_path).read()


@pytest.mark.parametrize("document", FOLLOWED, ids=lambda d: d.stem)
def test_every_command_of_a_tutorial_is_run(document: Path) -> None:
    """Only what installs, and what needs a machine that a test has not, is marked as not to be run."""
    for kind, note, text in blocks(document):
        if kind in ("sh", "console") and "norun" not in note:
            for line in filter(None, text.splitlines()):
                assert words_of(line), f"{document.name}: nobody runs {line!r}"


def test_a_line_that_is_not_printed_is_noticed() -> None:
    assert missing_line("a\nb … d\n", "x\na\nb c d\n") == ""
    assert missing_line("a\nb\n", "b\na\n") == "b"
    assert missing_line("1 violation\n", "11 violations\n") == "1 violation"


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.relative_to(ROOT)}: {target}"

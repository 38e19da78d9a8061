"""Every notebook runs from top to bottom, and what it shows is what it showed when it was written."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.traces.real_data import HOSPITAL, real

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell prints; a kernel may send one print in several pieces."""
    return [
        "".join(out["text"] for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    assert sys.executable
    shown = nbformat.read(path, as_version=4)
    if "PRECEDE_DATA" in path.read_text(encoding="utf-8"):
        monkeypatch.setenv("PRECEDE_DATA", str(real(HOSPITAL).parents[1]))
    again = nbformat.read(path, as_version=4)
    NotebookClient(again, timeout=300, kernel_name="python3").execute()
    assert printed(again) == printed(shown)
    pictures = [
        o for c in again.cells if c.cell_type == "code" for o in c.outputs if "image/png" in o.get("data", {})
    ]
    assert pictures

"""The reference of the public interface is current, complete, and each of its examples runs."""

from __future__ import annotations

import doctest
import runpy
from pathlib import Path
from typing import Any

import pytest

import precede

ROOT = Path(__file__).parents[2]
WRITER = runpy.run_path(str(ROOT / "docs" / "reference" / "write_api.py"))
ENTRIES = {name: entry for _, name, entry in WRITER["entries"]()}


def test_the_page_is_what_the_docstrings_say() -> None:
    written = WRITER["PAGE"].read_text(encoding="utf-8")
    assert written == WRITER["page"](), "run: python docs/reference/write_api.py"


def test_the_page_has_every_public_name() -> None:
    assert sorted(ENTRIES) == sorted(set(precede.__all__) - {"__version__"})


@pytest.mark.parametrize(("name", "entry"), ENTRIES.items(), ids=ENTRIES)
def test_the_example_of_an_entry_runs(
    name: str, entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, example = WRITER["split"](WRITER["docstring"](name, entry))
    test = doctest.DocTestParser().get_doctest(example, {}, name, None, 0)
    assert test.examples, f"{name}: no example"
    outcome = doctest.DocTestRunner().run(test)
    assert outcome.failed == 0

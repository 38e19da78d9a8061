"""Traces from text, for tests of readers: what is kept, and why the rest is rejected."""

from __future__ import annotations

from pathlib import Path

from precede.traces.reading import Loaded, Options, load


def loaded(folder: Path, text: str, kind: str, **options: object) -> Loaded:
    path = folder / f"file.{kind}"
    path.write_text(text)
    result = load(path, kind, Options(**options))
    assert result.summary.rows_read == result.summary.rows_kept + len(result.rejects)
    return result


def reasons(result: Loaded) -> list[tuple[int, str]]:
    return sorted((reject.line, reject.reason.split(":")[0]) for reject in result.rejects)

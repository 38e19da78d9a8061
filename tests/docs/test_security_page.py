"""The security page names a test for each promise, and each of these tests exists."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.hashes import lines

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_promise_names_a_test_that_exists() -> None:
    table = PAGE.split("<!-- promises -->")[1].split("\n\n")[0].strip().splitlines()[2:]
    assert len(table) > 20
    for row in table:
        named = re.search(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert named is not None, row
        assert f"def {named[2]}(" in (ROOT / named[1]).read_text(encoding="utf-8"), row


def test_a_report_of_pip_becomes_lines_with_hashes() -> None:
    archive = {"download_info": {"url": "x", "archive_info": {"hashes": {"sha256": "ab"}}}}
    report = {"install": [{**archive, "metadata": {"name": "msgspec", "version": "1.2"}}]}
    assert lines(report) == ["msgspec==1.2 --hash=sha256:ab"]

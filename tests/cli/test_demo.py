"""`precede demo` from beginning to end: every verdict holds, and the site is small enough to hand on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.spark
def test_the_demo_ends_with_a_site_and_every_verdict_holds(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "precede", "demo", "--out", str(tmp_path / "demo")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert "Verdicts: 36 of 36 runs keep the order" in done.stdout
    last = done.stdout.splitlines()[-1]
    front = tmp_path / "demo" / "site" / "index.html"
    assert last == f"Open {front.as_uri()}"
    assert "36 of 36 verdicts hold" in front.read_text()
    assert sum(path.stat().st_size for path in front.parent.rglob("*") if path.is_file()) < 8_000_000

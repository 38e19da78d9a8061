"""`precede demo` from beginning to end: every verdict holds, and the site is small enough to hand on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from precede import cli
from precede.cli.runs import demo


@pytest.mark.slow
def test_without_spark_the_demo_is_the_small_one_and_says_what_is_missing(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "find_spec", lambda module: None if module == "pyspark" else module)
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "violated" in shown
    assert "pip install 'precede[cli,spark]'" in shown.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


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

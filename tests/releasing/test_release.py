"""A whole release: built, installed in clean environments, used in empty folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_release_is_built_twice_with_the_same_bytes_checked_and_used(tmp_path: Path) -> None:
    for step in (["build", "--twice"], ["check"], ["try"]):
        line = [sys.executable, "-m", "releasing", *step, "--dist", str(tmp_path)]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "pure wheel | pip" in done.stdout
    assert (tmp_path / "sbom.cdx.json").is_file()

"""Two minutes of the soak in network namespaces; `python -m benchmarks.soak` runs it for half an hour."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.network.namespaces import why_not

ROOT = Path(__file__).parents[2]
WHY_NOT = why_not()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
@pytest.mark.parametrize("order", ["total", "causal"])
def test_nothing_is_lost_or_out_of_order_while_members_are_killed_and_cut_off(order: str) -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "2", "--order", order, "--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["kills"] >= 10
    assert result["cuts"] >= 2
    assert result["deliveries"] == result["members"] * result["broadcasts"]

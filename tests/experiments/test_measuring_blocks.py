"""Measures taken while the rows are written equal those of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.experiments.measuring import carry_out_measured, measure_folder
from precede.experiments.run import Run


@pytest.mark.parametrize("order", ["received", "random"])
@pytest.mark.parametrize("warmup", [None, "4s"])
def test_blocks_and_files_have_the_same_measures(tmp_path: Path, order: str, warmup: str | None):
    meetings = [[str(k), str(k + 1), f"{k}s", f"{k + 3}s"] for k in range(8)]
    run = Run(
        protocol="delta_causal",
        options={"lifetime": "5s", "order": order, "cache": 6},
        world={"kind": "contacts", "nodes": 9, "meetings": meetings},
        workload={"every": "700ms", "size": 10, "until": "9s"},
        warmup=warmup,
    )
    _, measures = carry_out_measured(run, tmp_path)
    assert measures == measure_folder(tmp_path)
    assert measures["receptions"]

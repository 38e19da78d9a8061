"""Arrays from buffers, and that a run does not load pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from precede.eventlog.arrays import integer_array, named_array, text_array


def test_texts_and_codes_become_arrays():
    names = text_array(["ä", "", "b"])
    assert names.to_pylist() == ["ä", "", "b"]
    assert named_array(np.array([2, 0], np.int32), names).to_pylist() == ["b", "ä"]
    assert integer_array(np.array([[1, 2], [3, 4]])[:, 1]).to_pylist() == [2, 4]
    assert text_array([]).to_pylist() == []


def test_simulating_and_measuring_does_not_load_pandas(tmp_path: Path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from precede.experiments.measuring import carry_out_measured\n"
        "from precede.experiments.scenario import read_scenario\n"
        "run = read_scenario('small-office', 'fifo', 7, {})\n"
        "outcome, measures = carry_out_measured(run, Path(sys.argv[1]))\n"
        "assert measures['broadcasts'] == 375, measures['broadcasts']\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], check=True)

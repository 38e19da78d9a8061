"""A process whose kernels another one has compiled loads their machine code, and nothing to compile with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

VERIFY = """
import sys
from precede.witness.verify import verify
print(verify(sys.argv[1], engine=sys.argv[2]).verdict)
print(*sorted({"numba.np.linalg", "scipy.linalg", "pandas", "pyarrow.compute"} & sys.modules.keys()))
"""


def said(log: Path, engine: str) -> list[str]:
    """The verdict that a new process gives, and the modules that it loaded of those which it does not need."""
    line = [sys.executable, "-c", VERIFY, str(log), engine]
    return subprocess.run(line, check=True, timeout=120, capture_output=True, text=True).stdout.splitlines()


def test_cached_kernels_load_without_the_compiler(tmp_path: Path) -> None:
    rows = [
        {"node": node, "step": 1 + number, "kind": kind, "message_source": "a", "message_number": number}
        for node, kind in (("a", "broadcast"), ("b", "delivered"), ("c", "delivered"))
        for number in range(50)
    ]
    log = tmp_path / "log.parquet"
    other = {"node": "c", "step": 51, "kind": "sent", "message_source": None, "message_number": None}
    pq.write_table(pa.Table.from_pylist([*rows, other]), log)
    assert said(log, "numba")[0] == "holds"
    assert said(log, "numba") == ["holds", ""]
    assert said(log, "plain") == ["holds", ""]

"""Compiles the numba kernels that tasks use into numba's cache: `python -m precede.pipeline.sessions.warm`.

`sessions.pack` runs it in the folder that becomes an archive, where the cache is beside the kernels. A kernel
that it misses is compiled once by each executor.
"""

import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario
from precede.traces.kernel import Segments, find_contacts
from precede.witness.verdict import ORDERS
from precede.witness.verify import verify

_SCENARIO: Final = """
[world]
kind = "point_to_point"
nodes = 5
delay = "exponential(0.05)"
[workload]
poisson = "200ms"
until = "2s"
[run]
protocol = "unordered"
end = "3s"
"""


def warm() -> None:
    """Verify a small log under every order with the numba engine, and find the contacts of a small trace."""
    with tempfile.TemporaryDirectory(prefix="precede-warm-") as folder:
        scenario = Path(folder) / "small.toml"
        scenario.write_text(_SCENARIO)
        for protocol in ("unordered", "prs"):  # one that breaks every order, one with destinations
            run = Path(folder) / protocol
            carry_out_into(read_scenario(str(scenario), protocol), run)
            for order in ORDERS:
                verify(run / "events.parquet", order, engine="numba")
            verify(run / "events.parquet", "causal", by="run_id", engine="numba")
    node = np.array([0, 1, 2, 0, 1, 2], dtype=np.int64)
    t0 = np.array([0, 0, 0, 10, 10, 10], dtype=np.int64) * 1_000_000
    x = np.array([0.0, 10.0, 50.0, 5.0, 20.0, 40.0])
    y = np.zeros(6)
    find_contacts(Segments(node, t0, x, y, t0 + 10_000_000, x + 5.0, y), 12.0)


if __name__ == "__main__":
    warm()

"""A generated trace into the lake, as if it had been ingested."""

from __future__ import annotations

import pyarrow as pa

from precede.lake.jobs import Lake
from precede.lake.schemas import SEGMENTS
from precede.traces.mobility import Mobility


def store_mobility(lake: Lake, name: str, mobility: Mobility) -> int:
    """The segments of a trace into `segments`; how many there are. What is there already is left as it is."""
    if lake.has("segments", name):
        return len(mobility.segments.node)
    s = mobility.segments
    columns = {
        "trace": pa.array([name] * len(s.node), pa.string()),
        "node": pa.array(mobility.names).take(pa.array(s.node)),
        **{column: pa.array(getattr(s, column)) for column in ("t0_us", "x0", "y0", "t1_us", "x1", "y1")},
    }
    with lake.job(f"generate-{name}").hold() as job:
        count = job.write("segments", name, pa.table(columns, schema=SEGMENTS.arrow()))
        job.forget()
    return count

"""Stores a generated trace in the lake, as `precede ingest` stores a trace from a file."""

import pyarrow as pa

from precede.lake.layout import Lake
from precede.lake.schemas import SEGMENTS
from precede.traces.mobility import Mobility


def store_mobility(lake: Lake, name: str, mobility: Mobility) -> int:
    """Write a trace to `segments` unless the lake has one of that name; returns the number of segments."""
    segments = mobility.segments
    if lake.has("segments", name):
        return len(segments.node)
    columns = {
        "trace": pa.array([name] * len(segments.node), pa.string()),
        "node": pa.array(mobility.names).take(pa.array(segments.node)),
        **{column: pa.array(getattr(segments, column)) for column in SEGMENTS.names()[2:]},
    }
    with lake.job(f"generate-{name}").hold() as job:
        return job.write("segments", name, pa.table(columns, schema=SEGMENTS.arrow()))

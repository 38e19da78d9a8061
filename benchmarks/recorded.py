"""`gossip` on links against `epidemic`, on recorded traces: a day of buses, and students on a campus.

The same (node, message) pairs must be delivered without limits; with a bandwidth no fewer; with fewer bytes in
both. Every node broadcasts at intervals while the trace lasts; messages have a lifetime.

    python -m benchmarks.recorded --data ../shared/data --json     (the folder of the files named below)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from precede.core.instants import SECOND
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.traces.reading import Options, load


class Trace(NamedTuple):
    """A recorded trace, and the messages that its nodes broadcast."""

    file: str
    format: str
    options: Options
    range_m: float
    every: str
    lifetime: str
    bandwidth: float


TRACES: Final = {
    "buses": Trace(
        "gtfs_wta_bellingham_2016/wta_gtfs_20160920.zip",
        *("gtfs", Options(date="2016-09-19"), 200.0, "20min", "20min", 20_000.0),
    ),
    "students": Trace(
        "ucy_students03/obsmat.txt.gz",
        *("positions", Options(), 5.0, "30s", "2min", 20_000.0),
    ),
}


def meetings(trace: Trace, data: Path) -> tuple[list[list[str]], int]:
    """The contacts of a trace, with instants from its beginning, and how long it lasts in seconds."""
    contacts = load(data / trace.file, trace.format, trace.options).mobility().contacts(trace.range_m)
    begin = int(contacts.start_us.min())
    rows = zip(
        *(column.tolist() for column in (contacts.a, contacts.b, contacts.start_us, contacts.end_us)),
        strict=True,
    )
    listed = [
        [str(a), str(b), f"{start - begin}us", f"{end - begin}us"] for a, b, start, end in rows if end > start
    ]
    return listed, int(contacts.end_us.max() - begin) // SECOND + 1


def delivered(
    trace: Trace, contacts: list[list[str]], seconds: int, dissemination: str, world: Mapping[str, Any]
) -> tuple[set[tuple[Any, ...]], int]:
    """The (node, message) pairs that were delivered, and the bytes sent."""
    sink = TableSink()
    nodes = 1 + max(int(name) for row in contacts for name in row[:2])
    links = {"medium": "links"} if dissemination == "gossip" else {}
    run = Run(
        world={"kind": "contacts", "nodes": nodes, "meetings": contacts, **world},
        workload={"every": trace.every, "first": "1s", "size": 1000},
        protocol="delta_causal",
        options={"dissemination": dissemination, "lifetime": trace.lifetime, **links},
        seed=1,
        end=f"{seconds}s",
        gauges="none",
    )
    carry_out(run, sink)
    log = sink.events()
    kind = log["kind"].cast(pa.string())
    rows = log.filter(pc.equal(kind, "delivered"))
    pairs = zip(*(rows[name].to_pylist() for name in ("node", "message_source", "message_number")), strict=True)
    return set(pairs), pc.sum(log.filter(pc.equal(kind, "sent"))["packet_bytes"]).as_py() or 0


def compared(name: str, data: Path, limited: bool) -> dict[str, Any]:
    """`gossip` against `epidemic` on one trace, without limits or with the bandwidth of the trace."""
    trace = TRACES[name]
    contacts, seconds = meetings(trace, data)
    world = {"bandwidth": trace.bandwidth} if limited else {}
    pairs, size = delivered(trace, contacts, seconds, "gossip", world)
    epidemic, epidemic_size = delivered(trace, contacts, seconds, "epidemic", world)
    return {
        "same_pairs": pairs == epidemic,
        "pairs": {"gossip": len(pairs), "epidemic": len(epidemic)},
        "bytes": {"gossip": size, "epidemic": epidemic_size},
        "ratio_bytes": round(size / epidemic_size, 3),
    }


def main() -> None:
    """Print the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the traces")
    parser.add_argument("--json", action="store_true", help="one object")
    given = parser.parse_args()
    result = {
        name: {
            "unlimited": compared(name, given.data, limited=False),
            "limited": compared(name, given.data, limited=True),
        }
        for name in TRACES
    }
    print(json.dumps(result) if given.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

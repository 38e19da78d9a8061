"""The SHA-256 of every protocol's event logs over seeded swarm worlds: equal digests mean equal logs.

`python -m benchmarks.digests --worlds 200 > before.txt` on one commit, the same on another, then `diff`. A line
holds the protocol, the number of worlds, rows, deliveries, failed worlds, and the digest of all rows in order.
`--protocol` names the protocols; by default these are all but the rules of apps, so that the output can be
compared with one from before there were rules.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import Final

import pyarrow as pa

from precede.eventlog.sinks import TableSink
from precede.experiments.swarm.plan import SORTING_RULES, draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from precede.protocols import registry

RULES: Final = ("arrival", *SORTING_RULES)


def main() -> None:
    """Print one line per protocol; world k of a protocol has seed `--seed` + k."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200, help="worlds over all protocols (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--protocol", action="append", help="only this one; may be repeated")
    given = parser.parse_args()
    names = given.protocol or [name for name in registry.names() if name not in RULES]
    each = -(-given.worlds // len(names))
    for name in names:
        print(f"{name:16} {digest_protocol(name, given.seed, each)}", flush=True)


def digest_protocol(protocol: str, seed: int, worlds: int) -> str:
    """Run a protocol's worlds one after the other; rows of all of them go into one digest."""
    drawer = find_drawer(protocol)
    digest = hashlib.sha256()
    rows = deliveries = failed = 0
    for number in range(worlds):
        sink = TableSink()
        result = run_plan(draw_plan(protocol, seed + number, drawer), drawer, log=sink)
        table = sink.events()
        digest.update(table_bytes(table))
        rows += table.num_rows
        deliveries += result.deliveries
        failed += result.failed
    return f"worlds={worlds} rows={rows} deliveries={deliveries} failed={failed} sha256={digest.hexdigest()}"


def table_bytes(table: pa.Table) -> pa.Buffer:
    """Return the values of a table as bytes, which do not depend on how its rows are divided into blocks."""
    buffer = pa.BufferOutputStream()
    for column in table.columns:
        plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for part in (plain.is_valid(), plain.drop_null()):
            one = pa.table({"part": part.combine_chunks()})
            with pa.ipc.new_stream(buffer, one.schema) as stream:
                stream.write_table(one)
    return buffer.getvalue()


if __name__ == "__main__":
    main()

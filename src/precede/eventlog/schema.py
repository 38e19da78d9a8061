"""The columns of the event log and of `gauges` (docs/reference/formats.md).

Rows are ordered per node only, by `step`. `at_us` is world time, `clock_us` the reading of the node's own
clock. The Arrow schemas carry the schema version in their metadata. Importing this module needs no Arrow;
`event_schema()` does.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION: Final = 1
FILE_VERSION: Final = 2
"""The version of the columns in files. 1: names of events and gauges are dictionaries. 2: they are text."""

VERSION_KEY: Final = b"precede.schema_version"
EVIDENCE_FILE: Final = "evidence.jsonl"
"""The file beside a member's event log with proofs that others signed messages which contradict each other."""

KINDS: Final[tuple[str, ...]] = (
    "started",
    "crashed",
    "left",
    "broadcast",
    "sent",
    "packet_received",
    "received",
    "delivered",
    "discarded",
    "observed",
)
STARTED: Final = 0
CRASHED: Final = 1
LEFT: Final = 2
BROADCAST: Final = 3
SENT: Final = 4
PACKET_RECEIVED: Final = 5
RECEIVED: Final = 6
DELIVERED: Final = 7
DISCARDED: Final = 8
OBSERVED: Final = 9


@cache
def event_schema() -> pa.Schema:
    """Return the schema of the event log: one row per event. `reason` of an `observed` row says what it is."""
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field("run_id", name, nullable=False),
            pa.field("node", name, nullable=False),
            pa.field("incarnation", pa.int32(), nullable=False),
            pa.field("step", pa.int64(), nullable=False),
            pa.field("at_us", pa.int64(), nullable=False),
            pa.field("clock_us", pa.int64(), nullable=False),
            pa.field("kind", name, nullable=False),
            pa.field("message_source", name),
            pa.field("message_incarnation", pa.int32()),
            pa.field("message_number", pa.int64()),
            pa.field("destinations", pa.list_(pa.string())),
            pa.field("deadline_us", pa.int64()),
            pa.field("peer", name),
            pa.field("medium", name),
            pa.field("packet_kind", name),
            pa.field("packet_bytes", pa.int64()),
            pa.field("wire_bytes", pa.int64()),
            pa.field("control_bytes", pa.int64()),
            pa.field("control_entries", pa.int64()),
            pa.field("messages_in_packet", pa.int32()),
            pa.field("reason", name),
        ],
        metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
    )


def gauge_schema() -> pa.Schema:
    """Return the schema of the gauges: samples of each node's `sizes()`, with the peak since the last one."""
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field("run_id", name, nullable=False),
            pa.field("node", name, nullable=False),
            pa.field("at_us", pa.int64(), nullable=False),
            pa.field("name", name, nullable=False),
            pa.field("value", pa.int64(), nullable=False),
            pa.field("peak", pa.int64(), nullable=False),
        ],
        metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
    )

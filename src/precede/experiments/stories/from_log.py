"""Writes the event log of a small world as plain sentences, in the order of time."""

from typing import Any, Final

import pyarrow as pa

from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.plan import Plan

_KINDS: Final = (
    "started",
    "crashed",
    "left",
    "broadcast",
    "packet_received",
    "received",
    "delivered",
    "discarded",
)


def tell_log(plan: Plan, log: pa.Table, most: int = 200) -> str:
    """Tell the first `most` rows of a log as sentences; rows of received packets count, but have no line."""
    rows = sorted(events_of(log, *_KINDS), key=lambda row: row["at_us"])
    lines = [f"protocol: {plan.run.protocol}", f"seed: {plan.run.seed}", ""]
    peers: dict[str, str] = {}
    seen: dict[str, int] = {}
    for row in rows[:most]:
        if row["kind"] == "packet_received":
            peers[row["node"]] = row["peer"]
            continue
        lines.append(_line(row, peers, seen))
    if len(rows) > most:
        lines.append(f"# ... and {len(rows) - most} rows more")
    return "\n".join(lines)


def _line(row: dict[str, Any], peers: dict[str, str], seen: dict[str, int]) -> str:
    node, kind = row["node"], row["kind"]
    at = f"  # {row['at_us'] / 1e6:.6f} s"
    message = f"{row['message_source']}:{row['message_number']}"
    if kind == "started":
        starts = seen[node] = seen.get(node, 0) + 1
        return f"{node} {'starts' if starts == 1 else 'restarts'}{at}"
    if kind == "crashed":
        return f"{node} crashes{at}"
    if kind == "left":
        return f"{node} leaves{at}"
    if kind == "broadcast":
        to = f" to {' '.join(row['destinations'])}" if row["destinations"] is not None else ""
        return f"{node} broadcasts {message}{to}{at}"
    if kind == "received":
        return f"{node} receives {message} from {peers.get(node, '?')}{at}"
    if kind == "delivered":
        return f"  {node} delivers {message}"
    return f"  {node} discards {message} ({row['reason']})"

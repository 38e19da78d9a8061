"""The measures of vcube2018, from rows: packets, sizes, dependencies, latencies, buffers (section 5).

All rows of one input of one node stand together in the log of a simulation, which is how a packet is joined to
the messages that arrived in it, and a broadcast to the vector it carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from precede.eventlog.schema import BROADCAST, DELIVERED, PACKET_RECEIVED, RECEIVED, SENT
from precede.measures.columns import Integers, table_codes, table_integers

HEADER: Final = 20
MTU: Final = 1500
SIZE_BINS: Final = ("under_100", "100_to_200", "200_to_300", "300_to_400", "over_400")


class Rows:
    """The columns the measures need, as arrays in the order of the log."""

    def __init__(self, log: pa.Table) -> None:
        self.kind = table_codes(log, "kind")
        self.node = table_codes(log, "node")
        self.at = table_integers(log, "at_us")
        self.source = table_codes(log, "message_source")
        self.peer = table_codes(log, "peer")
        self.entries = table_integers(log, "control_entries")
        self.bytes = table_integers(log, "packet_bytes")
        self.carried = table_integers(log, "messages_in_packet")


def measure_rows(rows: Rows, counters: Mapping[str, int], nodes: int) -> dict[str, float]:
    """Return every measure of one run, except those of Figure 8 (`measure_pairs`)."""
    sent = rows.kind == SENT
    packets = int(sent.sum())
    return {
        "packets": packets,
        "reduction_percent": 100 * (1 - packets / max(nodes * (nodes - 1), 1)),
        "queue_ut_mean": counters["network_queued_us"] / 1000 / max(counters["network_packets"], 1),
        **_measure_packets(rows.carried[sent], rows.bytes[sent], rows.node[sent], nodes),
        "full_percent": _percent(_closed_for_lack_of_space(rows, sent)),
        **_measure_dependencies(rows),
        **_measure_latencies(rows, nodes),
        **_measure_buffers(rows, nodes),
    }


def _measure_packets(carried: Integers, size: Integers, node: Integers, nodes: int) -> dict[str, float]:
    """Measure how many messages and bytes packets carry, for Tables 1 to 3 and Figure 10."""
    measures: dict[str, float] = {}
    aggregated = carried > 1
    measures["aggregated_packets"] = int(aggregated.sum())
    measures["aggregated_percent"] = _percent(aggregated)
    measures["messages_in_aggregates"] = int(carried[aggregated].sum())
    measures["most_messages"] = int(carried.max(initial=0))
    measures["packets_with_most_messages"] = int((carried == carried.max(initial=0)).sum())
    for name, mask in {
        **{str(count): carried == count for count in range(1, 6)},
        "over_5": carried > 5,
        "2_or_3": (carried == 2) | (carried == 3),
    }.items():
        measures[f"carry_{name}_percent"] = _percent(mask)
        measures[f"carry_{name}_percent_of_aggregated"] = _percent(mask[aggregated])
    for name, mask in zip(SIZE_BINS, _size_bins(size), strict=True):
        measures[f"bytes_{name}_percent"] = _percent(mask)
    measures["bytes"] = int(size.sum())
    measures["bytes_over_1400_percent"] = _percent(size > 1400)
    measures["larger_than_any_single_percent"] = _percent(size > size[~aggregated].max(initial=0))
    most = np.zeros(nodes, np.int64)
    np.maximum.at(most, node, carried)
    measures["node_most_7_to_11_percent"] = _percent((most >= 7) & (most <= 11))
    measures["node_most_8_to_12_percent"] = _percent((most >= 8) & (most <= 12))
    measures |= {f"node_most_{count}_percent": _percent(most == count) for count in range(6, 15)}
    measures["node_most_under_6_percent"] = _percent(most < 6)
    measures["node_most_over_14_percent"] = _percent(most > 14)
    measures["node_aggregates_percent"] = _percent(most > 1)
    measures["node_most_mean"] = float(most.mean())
    return measures


def _closed_for_lack_of_space(rows: Rows, sent: Any) -> Any:
    """Mark full packets: the next packet to the same node at the same instant would not have fitted in."""
    size, node, at, peer = (column[sent] for column in (rows.bytes, rows.node, rows.at, rows.peer))
    full = np.zeros(len(size), bool)
    full[:-1] = (node[1:] == node[:-1]) & (at[1:] == at[:-1]) & (peer[1:] == peer[:-1])
    full[:-1] &= size[:-1] + size[1:] - HEADER > MTU
    return full


def _size_bins(size: Integers) -> list[Any]:
    edges = (100, 200, 300, 400)
    place = np.searchsorted(edges, size, side="left")
    return [place == number for number in range(len(SIZE_BINS))]


def _measure_dependencies(rows: Rows) -> dict[str, float]:
    """Count the entries of each vector besides the source's own, in a message's first packet (Figure 6)."""
    births = np.flatnonzero(rows.kind == BROADCAST)
    first = births + 2
    first = first[first < len(rows.kind)]
    first = first[rows.kind[first] == SENT]
    dependencies = rows.entries[first] - 1
    bins = {
        "0": dependencies == 0,
        "1_to_4": (dependencies >= 1) & (dependencies <= 4),
        "5_to_9": (dependencies >= 5) & (dependencies <= 9),
        "10_to_12": (dependencies >= 10) & (dependencies <= 12),
        "over_12": dependencies > 12,
    }
    return {
        **{f"dependencies_{name}_percent": _percent(mask) for name, mask in bins.items()},
        "dependencies_mean": float(dependencies.mean()) if len(dependencies) else 0.0,
        "dependencies_most": int(dependencies.max(initial=0)),
    }


def _measure_latencies(rows: Rows, nodes: int) -> dict[str, float]:
    """Return means of transit, wait and age (Figure 7), the longest transit, and how many copies waited.

    In units of time, over all delivered copies but a source's own; `held_ut_mean` is over those that waited.
    """
    transit, wait = _latencies(rows, nodes)
    if not len(transit):
        return {}
    held = wait[wait > 0]
    return {
        **({"held_ut_mean": float(held.mean()) / 1000} if len(held) else {}),
        "transit_ut_mean": float(transit.mean()) / 1000,
        "transit_ut_max": float(transit.max()) / 1000,
        "wait_ut_mean": float(wait.mean()) / 1000,
        "age_ut_mean": float((transit + wait).mean()) / 1000,
        "delayed": len(held),
    }


def _latencies(rows: Rows, nodes: int, copies: Integers | None = None) -> tuple[Integers, Integers]:
    """Return transit and wait of these copies, else of every delivered copy by node and then by source.

    Each node broadcast one message, so that a node and a source name a copy.
    """
    born = np.zeros(nodes, np.int64)
    births = rows.kind == BROADCAST
    born[rows.node[births]] = rows.at[births]
    received = _by_copy(rows, rows.kind == RECEIVED, nodes)
    delivered = _by_copy(rows, (rows.kind == DELIVERED) & (rows.node != rows.source), nodes)
    if copies is None:
        copies = np.flatnonzero((received >= 0) & (delivered >= 0))
    return received[copies] - born[copies % nodes], delivered[copies] - received[copies]


def _by_copy(rows: Rows, mask: Any, nodes: int) -> Integers:
    """Return the instants of some rows by copy, at the index node * nodes + source; -1 where there is none."""
    at = np.full(nodes * nodes, -1, np.int64)
    at[rows.node[mask] * nodes + rows.source[mask]] = rows.at[mask]
    return at


def _measure_buffers(rows: Rows, nodes: int) -> dict[str, float]:
    """Measure the most messages a node had received and not delivered at the end of an instant (Figure 9)."""
    places = np.flatnonzero((rows.kind == RECEIVED) | ((rows.kind == DELIVERED) & (rows.node != rows.source)))
    order = places[np.argsort(rows.node[places], kind="stable")]
    node, at = rows.node[order], rows.at[order]
    held = np.cumsum(np.where(rows.kind[order] == RECEIVED, 1, -1))
    last = np.ones(len(order), bool)
    last[:-1] = (node[1:] != node[:-1]) | (at[1:] != at[:-1])
    most = np.zeros(nodes, np.int64)
    np.maximum.at(most, node[last], held[last])
    bins = {
        f"buffer_{low + 1}_to_{low + 50}_percent": _percent((most > low) & (most <= low + 50))
        for low in range(50, 250, 50)
    }
    return {
        **bins,
        "buffer_over_250_percent": _percent(most > 250),
        "buffer_most_mean": float(most.mean()),
        "buffer_at_most_50_percent": _percent(most <= 50),
        "buffer_over_250_nodes": int((most > 250).sum()),
    }


def measure_pairs(rows: Rows, without: Rows, nodes: int) -> dict[str, float]:
    """Compare messages from packets with exactly two with the same copies without aggregation (Figure 8)."""
    begins = np.flatnonzero(rows.kind == PACKET_RECEIVED)
    arrived = np.flatnonzero(rows.kind == RECEIVED)
    packet = begins[np.searchsorted(begins, arrived) - 1]
    paired = arrived[rows.carried[packet] == 2]
    copies = np.unique(rows.node[paired] * nodes + rows.source[paired])
    if not len(copies):
        return {"pair_copies": 0}
    aggregated, separate = (_pair_means(one, copies, nodes) for one in (rows, without))
    changes = {
        f"pair_{name}_change_percent": 100 * (aggregated[name] / separate[name] - 1)
        for name in aggregated
        if separate[name]
    }
    return {
        "pair_copies": len(copies),
        **{f"pair_{name}_ut_mean": value for name, value in aggregated.items()},
        **{f"pair_{name}_without_ut_mean": value for name, value in separate.items()},
        **changes,
    }


def _pair_means(rows: Rows, copies: Integers, nodes: int) -> dict[str, float]:
    transit, wait = _latencies(rows, nodes, copies)
    parts = {"transit": transit, "wait": wait, "age": transit + wait}
    return {name: float(part.mean()) / 1000 for name, part in parts.items()}


def _percent(mask: Any) -> float:
    return 100 * float(np.mean(mask)) if len(mask) else 0.0

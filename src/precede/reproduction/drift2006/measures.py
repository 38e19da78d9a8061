"""The measures of drift2006, from rows: latencies of TOF and TOVF, four forms of speed-up, floods to delivery.

The paper's latency (section 5.2) is the greatest latency of each source, over its messages and all
destinations, averaged over the sources. Its speed-up is the ratio of two such averages. We add three other
forms: the mean over the sources of each one's own ratio, the ratio of the mean ages, and the mean of the ratios
of each message at each destination (section 5.1 compares "for the same source-destination node pairs").
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from precede.core.instants import SECOND, Instant
from precede.eventlog.schema import BROADCAST, DELIVERED, OBSERVED, RECEIVED, SENT
from precede.measures.columns import Integers, table_codes, table_integers

_NEVER: Final = np.iinfo(np.int64).max


class Slower(AssertionError):
    """Raised if TOVF (virtual flooding) delivered a message later than TOF (flooding) would have."""


class Window(Struct, frozen=True):
    """The window of broadcasts that are measured; for latencies not before every source has begun."""

    opens: Instant
    closes: Instant


class Rows:
    """The instants at which each message was broadcast, and received, delivered and observed at each node.

    `received`, `delivered` and `observed` have a row per message and a column per node; the greatest integer
    means never.
    """

    def __init__(self, log: pa.Table) -> None:
        kind, node, at = table_codes(log, "kind"), table_codes(log, "node"), table_integers(log, "at_us")
        source, number = table_codes(log, "message_source"), table_integers(log, "message_number")
        nodes = int(node.max()) + 1
        stride = int(number.max()) + 1
        born = kind == BROADCAST
        keys = source[born] * stride + number[born]
        self.born = at[born]
        self.source = source[born]
        place = np.full(nodes * stride, -1, np.int64)
        place[keys] = np.arange(len(keys))

        def times(of: int) -> Integers:
            chosen = kind == of
            table = np.full((len(keys), nodes), _NEVER, np.int64)
            table[place[source[chosen] * stride + number[chosen]], node[chosen]] = at[chosen]
            return table

        self.received = times(RECEIVED)
        self.delivered = times(DELIVERED)
        self.observed = times(OBSERVED)
        sent = kind == SENT
        self.packet_bytes = table_integers(log, "packet_bytes")[sent]
        self.packet_entries = table_integers(log, "control_entries")[sent]


def assert_never_slower(rows: Rows) -> int:
    """Raise `Slower` if TOVF was later than TOF somewhere; returns how many deliveries were compared."""
    both = rows.observed != _NEVER
    late = both & (rows.delivered > rows.observed)
    if late.any():
        message, node = (int(indices[0]) for indices in np.nonzero(late))
        raise Slower(f"node {node}: message {message} of the log is delivered after TOF would have")
    return int(both.sum())


def measure_latencies(rows: Rows, window: Window) -> dict[str, float]:
    """Measure what Figures 5(a) to 5(c) and 7 to 10 show, in seconds. Raise `Slower` if TOVF was ever later.

    Ages are over pairs of message and destination that both TOF and TOVF delivered.
    """
    compared = assert_never_slower(rows)
    first = np.full(int(rows.source.max()) + 1, _NEVER, np.int64)
    np.minimum.at(first, rows.source, rows.born)
    opens = max(window.opens, int(first[first != _NEVER].max()))
    inside = (rows.born >= opens) & (rows.born <= window.closes)
    born = rows.born[inside][:, None]
    tovf, tof = rows.delivered[inside], rows.observed[inside]
    delivered_by_both = (tof != _NEVER) & (tovf != _NEVER)
    tovf_age = np.where(delivered_by_both, tovf - born, 0) / SECOND
    tof_age = np.where(delivered_by_both, tof - born, 0) / SECOND
    source = rows.source[inside]
    most_tovf, most_tof = (_most_by_source(age.max(axis=1), source) for age in (tovf_age, tof_age))
    got = rows.received[inside] != _NEVER
    transit = (np.where(got, rows.received[inside] - born, 0)).sum() / max(int(got.sum()), 1)
    return {
        "compared": compared,
        "messages": int(inside.sum()),
        "pairs_percent": 100 * float(delivered_by_both.mean()),
        "tof_latency_s": float(most_tof.mean()),
        "tovf_latency_s": float(most_tovf.mean()),
        "speedup": float(most_tof.mean() / most_tovf.mean()),
        "speedup_by_source": float((most_tof / most_tovf).mean()),
        "speedup_of_means": float(tof_age.sum() / tovf_age.sum()),
        "speedup_by_pair": _mean_ratio(tof_age, tovf_age),
        "advantage_s": float(most_tof.mean() - most_tovf.mean()),
        "tof_age_s_mean": float(tof_age.sum() / delivered_by_both.sum()),
        "tovf_age_s_mean": float(tovf_age.sum() / delivered_by_both.sum()),
        "transit_ms_mean": float(transit / 1000),
        "transmissions_per_message": len(rows.packet_bytes) / max(len(rows.born), 1),
        "packet_bytes_mean": float(rows.packet_bytes.mean()),
        "packet_entries_mean": float(rows.packet_entries.mean()),
    }


def _mean_ratio(tof_age: Any, tovf_age: Any) -> float:
    """Return the mean of TOF's age over TOVF's, over messages and destinations that wait at all."""
    comparable = tovf_age > 0
    return float((tof_age[comparable] / tovf_age[comparable]).mean())


def _most_by_source(age: Any, source: Integers) -> Any:
    most = np.zeros(int(source.max()) + 1)
    np.maximum.at(most, source, age)
    return most[np.unique(source)]


def measure_floods(rows: Rows, window: Window, originators: tuple[int, ...], side: int) -> dict[str, float]:
    """Measure what Figures 5(d) and 6 show: the floods until a message is delivered, its own included.

    There is one flood a second. Some means are over a part of the grid. `axis`: on the grid lines of the
    (first) originator; `diagonal`: as many columns as rows away from it; `near`: within three hops of it;
    `far`: the quarter of the nodes with the most hops; `hop` and a number: so many hops from it. `mean` and
    `most` are means over nodes of each node's mean and greatest number.
    """
    floods = floods_until_delivery(rows, window)
    node = np.arange(side * side)
    across = np.abs(node % side - originators[0] % side)
    down = np.abs(node // side - originators[0] // side)
    hops = across + down
    mean, most = floods.mean(axis=0), floods.max(axis=0)
    axis, diagonal = (across == 0) ^ (down == 0), (across == down) & (across > 0)
    near, far = hops <= 3, hops >= np.quantile(hops, 0.75)
    return {
        "messages": len(floods),
        "floods_mean": float(mean.mean()),
        "floods_max": float(floods.max()),
        "floods_min": float(floods.min()),
        "floods_max_of_node_mean": float(most.mean()),
        "floods_min_of_node_mean": float(floods.min(axis=0).mean()),
        "floods_axis_mean": float(mean[axis].mean()),
        "floods_diagonal_mean": float(mean[diagonal].mean()),
        "floods_axis_most": float(most[axis].mean()),
        "floods_diagonal_most": float(most[diagonal].mean()),
        "floods_near_most": float(most[near].mean()),
        "floods_far_most": float(most[far].mean()),
        "floods_near_mean": float(mean[near].mean()),
        "floods_far_mean": float(mean[far].mean()),
        "packet_bytes_mean": float(rows.packet_bytes.mean()),
        **{f"floods_hop_{hop}_mean": float(mean[hops == hop].mean()) for hop in np.unique(hops)},
        **{f"floods_hop_{hop}_most": float(most[hops == hop].mean()) for hop in np.unique(hops)},
    }


def floods_until_delivery(rows: Rows, window: Window) -> Integers:
    """Count the floods until each delivery (Figure 6): a row per measured message, a column per node."""
    inside = (rows.born >= window.opens) & (rows.born <= window.closes)
    delivered = rows.delivered[inside]
    if (delivered == _NEVER).any():
        raise ValueError("a measured message was not delivered everywhere: the window closes too late")
    floods: Integers = (delivered - rows.born[inside][:, None]) // SECOND + 1
    return floods

"""The measures of guidec2021: contacts and stays of the scenario, delays, ratios, registries (section VI).

Delays are in seconds, ratios and shares in percent.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.core.instants import SECOND
from precede.experiments.worlds.kinds import BuiltWorld, Presence
from precede.measures.events import measure_events
from precede.measures.gauges import measure_gauges

FIVE_MINUTES: Final = (270 * SECOND, 330 * SECOND)
"""The stays that count as five minutes. Figure 11 shows one such node, N777; we take all of them."""

TWENTY_MINUTES: Final = 1200 * SECOND
ONE_BUS: Final = "L01-1"
"""The bus whose registries Figure 6 shows."""

TRANSITS_WITHIN: Final = (
    *(30, 60, 120, 180, 240, 300, 420, 540, 600, 720, 840, 900, 1020, 1200, 1500, 1800, 2100, 2400, 3000, 3600),
    *(4500, 5400, 6300, 7200),
)
WAITS_WITHIN: Final = (0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90)
"""At which seconds the cumulated distributions of Figures 5 and 10 are measured."""

_DELAYS: Final = ("transit", "wait", "age")
_STATISTICS: Final = ("mean", "sd", "min", "max", "p50", "p95", "p99")


def measure_world(built: BuiltWorld) -> dict[str, float]:
    """Measure the contacts and stays of the scenario, for Tables I and IV."""
    contacts = [end - start for _, _, start, end in built.network.contact_list()]  # type: ignore[attr-defined]
    stays = [stay.leave - stay.enter for stay in built.presence if stay.leave is not None]
    measures = {"contacts": float(len(contacts))}
    for name, lengths in (("contact", contacts), ("stay", stays)):
        if lengths:
            seconds = np.array(lengths) / SECOND
            measures |= {f"{name}_s_mean": float(seconds.mean()), f"{name}_s_sd": float(seconds.std())}
            measures |= {f"{name}_s_min": float(seconds.min()), f"{name}_s_max": float(seconds.max())}
    arrivals = [(stay.enter, 1) for stay in built.presence]
    departures = [(stay.leave, -1) for stay in built.presence if stay.leave is not None]
    active = np.cumsum([step for _, step in sorted(arrivals + departures)])
    half = measures.get("stay_s_max", 0.0) / 2
    measures["stays_below_half_a_day"] = float(sum(length / SECOND < half for length in stays))
    first = min((stay.enter for stay in built.presence), default=0)
    measures["entered_in_20_minutes"] = float(
        sum(stay.enter < first + TWENTY_MINUTES for stay in built.presence)
    )
    measures["active_most"] = float(active.max(initial=0))
    measures["duration_s"] = (
        (max(at for at, _ in departures) - min(at for at, _ in arrivals)) / SECOND if departures else 0.0
    )
    return measures


def measure_log(log: pa.Table, gauges: pa.Table, built: BuiltWorld) -> dict[str, float]:
    """Measure the log, for Tables II, III, V and VI, and the text about Figures 5, 6, 10 and 11."""
    counted = measure_events(log.to_batches())
    measures = {name: float(value) for name, value in counted.items() if value is not None}
    for delay, statistic in product(_DELAYS, _STATISTICS):
        if f"{delay}_us_{statistic}" in measures:
            measures[f"{delay}_s_{statistic}"] = measures.pop(f"{delay}_us_{statistic}") / SECOND
    receptions = measures["receptions"]
    measures["co_delivery_percent"] = (
        100 * measures["deliveries"] / max(1.0, measures["broadcasts"] + receptions)
    )
    measures["expired_percent"] = 100 * measures["expired"] / max(1.0, receptions)
    measures["barrier_entries_mean"] = measures["control_entries"] / max(1.0, measures["messages_in_packet"])
    sizes = measure_gauges(gauges.to_batches())
    measures |= {name: float(value) for name, value in sizes.items() if value is not None}
    measures |= _registry_over_the_day(gauges)
    measures |= _distributions(log)
    measures |= _pending_at_one_bus(log)
    if ONE_BUS in built.names:
        measures["one_bus_causal_barrier_peak"] = _mean_peak(gauges, [ONE_BUS], "causal_barrier")
    return measures | _five_minute_stays(log, gauges, built)


def _distributions(log: pa.Table) -> dict[str, float]:
    """Return shares of transits and waits, and percentiles of the wait that the paper's text names."""
    delays = read_delays(log)
    if not delays.transit.size:
        return {}
    measures = {f"transit_within_{at}s_percent": _share(delays.transit < at) for at in TRANSITS_WITHIN}
    measures["transit_over_300s_percent"] = _share(delays.transit > 300)
    if delays.wait.size:
        measures |= {f"wait_within_{at:g}s_percent": _share(delays.wait < at) for at in WAITS_WITHIN}
        measures |= {f"wait_s_p{share}": float(np.percentile(delays.wait, share)) for share in (80, 90)}
    return measures


def _share(mask: Any) -> float:
    return 100 * float(mask.mean())


class Delays(NamedTuple):
    """Transits of all receptions; waits and transits of all deliveries of received messages; in seconds."""

    transit: np.ndarray[Any, Any]
    wait: np.ndarray[Any, Any]
    delivered_transit: np.ndarray[Any, Any]


def read_delays(log: pa.Table) -> Delays:
    kind = log["kind"].cast(pa.string())
    columns = ("node", "message_source", "message_number", "at_us")

    def rows(row_kind: str) -> dict[str, Any]:
        selected = log.filter(pc.equal(kind, row_kind)).select(columns)
        codes = {
            name: selected[name].combine_chunks().indices.to_numpy().astype(np.int64)
            for name in ("node", "message_source")
        }
        return codes | {name: selected[name].to_numpy() for name in ("message_number", "at_us")}

    born, received, delivered = rows("broadcast"), rows("received"), rows("delivered")
    width = int(max(side["message_number"].max(initial=0) for side in (born, received, delivered))) + 1
    sources = int(max(side["message_source"].max(initial=0) for side in (born, received, delivered))) + 1

    def message(side: dict[str, Any]) -> Any:
        return side["message_source"] * width + side["message_number"]

    at = np.zeros(sources * width, np.int64)
    at[message(born)] = born["at_us"]
    transit = (received["at_us"] - at[message(received)]) / SECOND
    copies = received["node"] * sources * width + message(received)
    order = np.argsort(copies)
    delivered_copies = delivered["node"] * sources * width + message(delivered)
    place = np.minimum(np.searchsorted(copies[order], delivered_copies), max(copies.size - 1, 0))
    if not copies.size:
        return Delays(transit, np.empty(0), np.empty(0))
    has_reception = copies[order][place] == delivered_copies
    reception = order[place[has_reception]]
    wait = (delivered["at_us"][has_reception] - received["at_us"][reception]) / SECOND
    return Delays(transit, wait, transit[reception])


def _pending_at_one_bus(log: pa.Table) -> dict[str, float]:
    """Return the most messages that one bus had received and neither delivered nor given up, from its rows."""
    rows = log.filter(pc.equal(log["node"].cast(pa.string()), ONE_BUS)).sort_by("step")
    if not rows.num_rows:
        return {}
    pending: set[tuple[str, int, int]] = set()
    most = 0
    names = ("message_source", "message_incarnation", "message_number")
    columns = [rows["kind"].cast(pa.string()).to_pylist(), *(rows[name].to_pylist() for name in names)]
    for kind, *message in zip(*columns, strict=True):
        if kind == "received":
            pending.add(tuple(message))
            most = max(most, len(pending))
        elif kind in ("delivered", "discarded"):
            pending.discard(tuple(message))
    return {"one_bus_pending_most": float(most)}


def _registry_over_the_day(gauges: pa.Table) -> dict[str, float]:
    """Divide the mean size of the co-delivered registry in the last third of the day by that in the middle."""
    registry = gauges.filter(pc.equal(gauges["name"].cast(pa.string()), "co_delivered"))
    if not registry.num_rows:
        return {}
    at, value = registry["at_us"].to_numpy(), registry["value"].to_numpy()
    third = at.max() / 3
    middle, late = value[(at >= third) & (at < 2 * third)], value[at >= 2 * third]
    if not middle.size or not late.size or not middle.mean():
        return {}
    return {"co_delivered_late_over_middle": float(late.mean() / middle.mean())}


def _five_minute_stays(log: pa.Table, gauges: pa.Table, built: BuiltWorld) -> dict[str, float]:
    """Return mean receptions, deliveries and peaks of nodes that stay about five minutes (Figure 11)."""
    names = [built.names[stay.node] for stay in stays_of_five_minutes(built)]
    if not names:
        return {}
    kind, node = log["kind"].cast(pa.string()), log["node"].cast(pa.string())
    at_these_nodes = pc.is_in(node, pa.array(names))
    means = {
        f"five_minute_stay_{name}_mean": _count(pc.and_(at_these_nodes, pc.equal(kind, word))) / len(names)
        for name, word in (("receptions", "received"), ("deliveries", "delivered"))
    }
    peaks = {name: _mean_peak(gauges, names, name) for name in ("pending", "co_delivered")}
    return means | {f"five_minute_stay_{name}_peak_mean": peak for name, peak in peaks.items()}


def stays_of_five_minutes(built: BuiltWorld) -> list[Presence]:
    low, high = FIVE_MINUTES
    return [
        stay for stay in built.presence if stay.leave is not None and low <= stay.leave - stay.enter <= high
    ]


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _mean_peak(gauges: pa.Table, names: Sequence[str], registry: str) -> float:
    """Return the mean over some nodes of the greatest size of a registry of each."""
    mask = pc.and_(
        pc.equal(gauges["name"].cast(pa.string()), registry),
        pc.is_in(gauges["node"].cast(pa.string()), pa.array(names)),
    )
    rows = gauges.filter(mask).select(["node", "peak"])
    peaks = pa.table({"node": rows["node"].cast(pa.string()), "peak": rows["peak"]})
    most = peaks.group_by("node").aggregate([("peak", "max")])["peak_max"].to_numpy()
    return float(most.mean()) if most.size else 0.0

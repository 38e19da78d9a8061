"""The map of a run: the paths of all nodes, and which nodes reach each other when.

The paths and links come from the trace if the run has one. For a cellular run the cells are read from the log:
a host is placed at the station that it heard last. In other worlds nodes have no position; they stand in a
circle, and a link appears when a packet crosses it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from math import cos, pi, sin, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.lake.columns import distinct_names, indices
from precede.lake.layout import Lake
from precede.report.packing import Ints, pack, planes, zigzag

_FINE: Final = 20_000
_MOST_LINKS: Final = 20_000
_STATION: Final = re.compile(r"s\d+")
_HOST: Final = re.compile(r"h\d+")

Way = tuple[int, int, float, float, int, float, float]
"""A straight part of a node's path: node, t0, x0, y0, t1, x1, y1."""


class Stage(NamedTuple):
    """The content of a map: nodes, paths and links by their indices in `nodes`; times in microseconds."""

    nodes: list[str]
    ways: list[Way]
    links: list[tuple[int, int, int, int]]
    stations: list[int] = []  # noqa: RUF012


def of_trace(lake: Lake, contacts_unit: str, trace: str) -> Stage:
    """Return the map of a trace in the lake. Time counts from its first instant, as in a run."""
    met = lake.read("contacts", contacts_unit, ["a", "b", "start_us", "end_us"])
    if not lake.has("segments", trace):
        nodes = distinct_names(met["a"], met["b"])
        links = _links(met, nodes, pc.min(met["start_us"]).as_py() or 0)
        until = max((end for *_, end in links), default=1)
        return Stage(nodes, _circle(range(len(nodes)), until), links)
    moved = lake.read("segments", trace, ["node", "t0_us", "x0", "y0", "t1_us", "x1", "y1"])
    nodes = distinct_names(met["a"], met["b"], moved["node"])
    starts = [pc.min(met["start_us"]).as_py(), pc.min(moved["t0_us"]).as_py()]
    zero = min((start for start in starts if start is not None), default=0)
    node = indices(moved["node"], nodes)
    order = np.lexsort((moved["t0_us"].to_numpy(), node))
    t0, t1 = ((moved[name].to_numpy() - zero)[order].tolist() for name in ("t0_us", "t1_us"))
    x0, y0, x1, y1 = (moved[name].to_numpy()[order].tolist() for name in ("x0", "y0", "x1", "y1"))
    ways = list(zip(node[order].tolist(), t0, x0, y0, t1, x1, y1, strict=True))
    return Stage(nodes, ways, _links(met, nodes, zero))


def _links(met: pa.Table, nodes: Sequence[str], zero: int) -> list[tuple[int, int, int, int]]:
    """Return contacts as links sorted by start; time counts from `zero`."""
    order = np.argsort(met["start_us"].to_numpy(), kind="stable")
    pairs = [indices(met[name], nodes)[order].tolist() for name in ("a", "b")]
    times = [(met[name].to_numpy() - zero)[order].tolist() for name in ("start_us", "end_us")]
    return list(zip(*pairs, *times, strict=True))


def of_log(lake: Lake, run_id: str, until: int) -> Stage | None:
    """Make the map of a run without a trace from the packets in its log; None if it has none up to then."""
    about_packets = pc.field("kind").isin(["sent", "packet_received"]) & (pc.field("at_us") <= until)
    table = lake.read("events", run_id, ["node", "kind", "at_us", "peer", "medium"], about_packets)
    table = table.filter(pc.is_valid(table["peer"]))
    received = table.filter(pc.equal(table["kind"].cast(pa.string()), "packet_received"))
    table = received if received.num_rows else table
    if not table.num_rows:
        return None
    nodes = distinct_names(lake.read("events", run_id, ["node"])["node"], table["peer"])
    stations = [index for index, name in enumerate(nodes) if _STATION.fullmatch(name)]
    hosts = [index for index, name in enumerate(nodes) if _HOST.fullmatch(name)]
    order = np.argsort(table["at_us"].to_numpy(), kind="stable")
    node, peer = (indices(table[name], nodes)[order] for name in ("node", "peer"))
    at: Ints = table["at_us"].to_numpy()[order]
    if stations and hosts and len(stations) + len(hosts) == len(nodes):
        return _cells(nodes, stations, hosts, (node, peer, at), until)
    flash = max(1, until // 400)
    step = -(-len(at) // _MOST_LINKS)
    rows = zip(node[::step].tolist(), peer[::step].tolist(), at[::step].tolist(), strict=True)
    return Stage(nodes, _circle(range(len(nodes)), until), [(a, b, t, t + flash) for a, b, t in rows])


def _cells(
    nodes: list[str], stations: list[int], hosts: list[int], packets: tuple[Ints, Ints, Ints], until: int
) -> Stage:
    """Return a map with the stations in a circle, and every host near the station that it heard last."""
    receivers, senders, instants = packets
    middle = {way[0]: (way[2], way[3]) for way in _circle(stations, until)}
    ways: list[Way] = [(s, 0, *middle[s], until, *middle[s]) for s in stations]
    links = []
    for number, host in enumerate(hosts):
        from_stations = (receivers == host) & np.isin(senders, stations)
        station_heard, at = senders[from_stations], instants[from_stations]
        if not len(station_heard):
            continue
        changes = np.flatnonzero(np.diff(station_heard, prepend=-1))
        angle, distance = 2.4 * number, 60 + 130 * sqrt((number + 1) / len(hosts))
        offset = distance * cos(angle), distance * sin(angle)
        stays = [(int(station_heard[c]), int(at[c])) for c in changes]
        stays[0] = (stays[0][0], 0)
        for k, (station, since) in enumerate(stays):
            end = stays[k + 1][1] if k + 1 < len(stays) else until
            x, y = middle[station][0] + offset[0], middle[station][1] + offset[1]
            ways.append((host, since, x, y, max(end, since), x, y))
            links.append((host, station, since, end))
    ways.sort(key=lambda way: way[:2])
    links.sort(key=lambda link: link[2])
    return Stage(nodes, ways, links, stations)


def _circle(nodes: Sequence[int], until: int) -> list[Way]:
    """Return the paths of nodes that stand still in a circle, for worlds without positions."""
    ways: list[Way] = []
    for number, node in enumerate(nodes):
        angle = pi / 2 - 2 * pi * number / len(nodes)
        x, y = 1000 * cos(angle), 1000 * sin(angle)
        ways.append((node, 0, x, y, until, x, y))
    return ways


def page_map(stage: Stage) -> dict[str, Any]:
    """Return the data for `map.js` in whole units, each part of a path as differences from the part before."""
    node = np.array([way[0] for way in stage.ways], dtype=np.int64)
    clock = np.array([(way[1], way[4]) for way in stage.ways], dtype=np.int64).reshape(-1, 2)
    span = np.array([way[2:4] + way[5:7] for way in stage.ways], dtype=np.float64).reshape(-1, 4)
    last = max(int(clock.max(initial=0)), max((end for *_, end in stage.links), default=0))
    unit = max(1, 10 ** max(0, len(str(last)) - 9))
    ticks = clock // unit
    scale = _FINE / max(1.0, float(span.max(initial=1) - span.min(initial=0)))
    spots = np.rint(span * scale).astype(np.int64)
    first = np.diff(node, prepend=-1) != 0
    ended = np.where(first, 0, np.roll(ticks[:, 1], 1)) if len(node) else ticks[:, 1]
    before = np.where(first[:, None], 0, np.roll(spots[:, 2:], 1, axis=0)) if len(node) else spots[:, 2:]
    links = np.array(stage.links, dtype=np.int64).reshape(-1, 4)
    starts = links[:, 2] // unit
    parts = [planes(node, 2), planes(ticks[:, 0] - ended, 4), planes(ticks[:, 1] - ticks[:, 0], 4)]
    for column in (spots[:, 0] - before[:, 0], spots[:, 1] - before[:, 1]):
        parts.append(planes(zigzag(column), 4))
    for column in (spots[:, 2] - spots[:, 0], spots[:, 3] - spots[:, 1]):
        parts.append(planes(zigzag(column), 4))
    parts += [planes(links[:, 0], 2), planes(links[:, 1], 2)]
    parts += [planes(np.diff(starts, prepend=0), 4), planes(links[:, 3] // unit - starts, 4)]
    return {
        "nodes": stage.nodes,
        "segments": len(stage.ways),
        "links": len(stage.links),
        "unit": unit,
        "stations": stage.stations,
        "packed": pack(parts),
    }


def script(function: str, data: Mapping[str, Any]) -> str:
    """Return data as a script that calls a function of the page: a page from a disk may not fetch files."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return f"PRECEDE.{function}({text});\n"

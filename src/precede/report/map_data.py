"""Where a run happens, as its page's map carries it: everybody's way, and who reaches whom when.

From the trace where there is one; of a cellular run the cells are read off the log (whose station a host
hears); else nodes stand in a circle and a link lights up when a packet crosses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import cos, pi, sin, sqrt
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precede.report.packing import Ints, pack, places, planes, zigzag
from precede.report.run_data import natural

_FINE: Final = 20_000
_MOST_LINKS: Final = 20_000
_STATION: Final = re.compile(r"s\d+")

Way = tuple[int, int, float, float, int, float, float]


class Stage(NamedTuple):
    """Nodes, their ways (node, t0, x0, y0, t1, x1, y1) and links (a, b, start, end), times in microseconds."""

    nodes: list[str]
    ways: list[Way]
    links: list[tuple[int, int, int, int]]
    stations: list[int] = []  # noqa: RUF012


def of_trace(contacts: Path | None, segments: Path | None) -> Stage | None:
    """A trace of the lake; its time counted from its first instant, as in a run."""
    if contacts is None:
        return None
    met = pq.read_table(contacts, columns=["a", "b", "start_us", "end_us"])
    columns = ["node", "t0_us", "x0", "y0", "t1_us", "x1", "y1"]
    moved = pq.read_table(segments, columns=columns) if segments is not None else None
    names = {*met["a"].unique().to_pylist(), *met["b"].unique().to_pylist()}
    names |= set(moved["node"].unique().to_pylist()) if moved is not None else set()
    nodes = sorted(names, key=natural)
    starts = [pc.min(met["start_us"]).as_py(), pc.min(moved["t0_us"]).as_py() if moved is not None else None]
    zero = min((start for start in starts if start is not None), default=0)
    order = np.argsort(met["start_us"].to_numpy(), kind="stable")
    ends = [(met[name].to_numpy() - zero)[order].tolist() for name in ("start_us", "end_us")]
    pairs = [places(met[name], nodes)[order].tolist() for name in ("a", "b")]
    links = list(zip(*pairs, *ends, strict=True))
    if moved is None:
        until = max((end for *_, end in links), default=1)
        return Stage(nodes, _circle(range(len(nodes)), until), links)
    who = places(moved["node"], nodes)
    by = np.lexsort((moved["t0_us"].to_numpy(), who))
    t0, t1 = ((moved[name].to_numpy() - zero)[by].tolist() for name in ("t0_us", "t1_us"))
    x0, y0, x1, y1 = (moved[name].to_numpy()[by].tolist() for name in ("x0", "y0", "x1", "y1"))
    return Stage(nodes, list(zip(who[by].tolist(), t0, x0, y0, t1, x1, y1, strict=True)), links)


def of_log(events: Path, until: int) -> Stage | None:
    """From the packets of a log, up to an instant; None where it has none."""
    wanted = pc.field("kind").isin(["sent", "packet_received"]) & (pc.field("at_us") <= until)
    table = pq.read_table(events, columns=["node", "kind", "at_us", "peer", "medium"], filters=wanted)
    table = table.filter(pc.is_valid(table["peer"]))
    heard = table.filter(pc.equal(_strings(table["kind"]), "packet_received"))
    table = heard if heard.num_rows else table
    if not table.num_rows:
        return None
    everybody = pq.read_table(events, columns=["node"])["node"].unique().to_pylist()
    nodes = sorted({*everybody, *table["peer"].unique().to_pylist()}, key=natural)
    stations = [place for place, name in enumerate(nodes) if _STATION.fullmatch(name)]
    hosts = [place for place, name in enumerate(nodes) if re.fullmatch(r"h\d+", name)]
    order = np.argsort(table["at_us"].to_numpy(), kind="stable")
    node, peer = (places(table[name], nodes)[order] for name in ("node", "peer"))
    at: Ints = table["at_us"].to_numpy()[order]
    if stations and hosts and len(stations) + len(hosts) == len(nodes):
        return _cells(nodes, stations, hosts, (node, peer, at), until)
    flash = max(1, until // 400)
    step = -(-len(at) // _MOST_LINKS)
    rows = zip(node[::step].tolist(), peer[::step].tolist(), at[::step].tolist(), strict=True)
    return Stage(nodes, _circle(range(len(nodes)), until), [(a, b, t, t + flash) for a, b, t in rows])


def _cells(
    nodes: list[str], stations: list[int], hosts: list[int], heard: tuple[Ints, Ints, Ints], until: int
) -> Stage:
    """Stations in a circle, hosts around the station they heard last; they move over when they hear another."""
    middle = {way[0]: (way[2], way[3]) for way in _circle(stations, until)}
    ways: list[Way] = [(s, 0, *middle[s], until, *middle[s]) for s in stations]
    links = []
    for number, host in enumerate(hosts):
        mine = (heard[0] == host) & np.isin(heard[1], stations)
        peer, at = heard[1][mine], heard[2][mine]
        if not len(peer):
            continue
        changes = np.flatnonzero(np.diff(peer, prepend=-1))
        angle, far = 2.4 * number, 60 + 130 * sqrt((number + 1) / len(hosts))
        offset = far * cos(angle), far * sin(angle)
        stays = [(int(peer[c]), int(at[c])) for c in changes]
        stays[0] = (stays[0][0], 0)
        for k, (station, since) in enumerate(stays):
            end = stays[k + 1][1] if k + 1 < len(stays) else until
            x, y = middle[station][0] + offset[0], middle[station][1] + offset[1]
            ways.append((host, since, x, y, max(end, since), x, y))
            links.append((host, station, since, end))
    ways.sort(key=lambda way: way[:2])
    links.sort(key=lambda link: link[2])
    return Stage(nodes, ways, links, stations)


def _circle(who: Sequence[int], until: int) -> list[Way]:
    """Who stands where, for ever, when nobody knows where they are."""
    ways: list[Way] = []
    for number, node in enumerate(who):
        angle = pi / 2 - 2 * pi * number / len(who)
        x, y = 1000 * cos(angle), 1000 * sin(angle)
        ways.append((node, 0, x, y, until, x, y))
    return ways


def _strings(column: Any) -> Any:
    return pc.cast(column.combine_chunks(), pa.string())


def page_map(stage: Stage) -> dict[str, Any]:
    """What `map.js` reads: whole units of place and of time, each way as a difference from the one before."""
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


def script(function: str, told: Mapping[str, Any]) -> str:
    """Data as a script that calls a function of the page: what a page opened from a disk may load."""
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    return f"PRECEDE.{function}({text});\n"

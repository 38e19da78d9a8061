"""World kind `flood`: radios in a field or on a grid; one transmission is heard by all in range (drift2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import HOUR
from precede.experiments.tables import Table, csv_rows
from precede.experiments.worlds.kinds import BuiltWorld, Presence, WorldKind, numbered
from precede.experiments.worlds.point_to_point import PARTITION, read_partition
from precede.sim.networks.flood import FloodRadio
from precede.sim.networks.motion import (
    Leg,
    Motion,
    Point,
    grid,
    random_waypoints,
    scattered,
    scattered_connected,
)
from precede.sim.randomness import Streams

_KEYS: Final = {
    "kind": "flood",
    "nodes": "how many nodes (not with grid or places)",
    "reach": "how far a transmission is heard, in metres; default 88",
    "field": "[width, height] in metres, nodes uniformly at random in it; default [400, 400]",
    "connected": "draw places until everybody can reach everybody; default true",
    "grid": "[columns, rows] instead of random places",
    "spacing": "metres between neighbours on the grid; default 70",
    "places": "a CSV file instead: node,x,y",
    "speed": "metres per second of those that move, to random points, without a pause; default 0",
    "mobile": "how many nodes move (the first ones), or a list of names; default all when speed is given",
    "delay": "hop delay behind the air time: a distribution in seconds, or a duration; default 1ms",
    "jitter": "what each link adds to it; default none",
    "access": "time a transmission waits for the channel: a distribution; default none",
    "bandwidth": 'bytes per second on the air; default "inf"',
    "overhead": "air time of each transmission beside its bytes; default 0s",
    "loss": "probability that a link loses a transmission; default 0",
    "collisions": "a receiver that hears two transmissions at once loses both; default false",
    "carrier_sense": "wait while the channel is heard to be busy; default false",
    "partitions": 'list of { start, end, groups = [["0", "1"], ["2"]] }',
    "presence": 'list of { node, enter = "10s", leave = "60s" }; others are there from the beginning',
    "linger": "how long a node that leaves can still say so; default 0s",
    "members": "names of those whom everybody knows from the beginning; default those who are there then",
}
_FARTHEST: Final = 1e9


def _build(table: Table, seed: int) -> BuiltWorld:
    streams = Streams(seed)
    places, names = _places(table, streams)
    network = FloodRadio(
        motion=Motion(places, _legs(table, places, names, streams)),
        reach=table.number("reach", 88.0),
        delay=table.distribution("delay", "1ms"),
        jitter=table.distribution("jitter") if table.has("jitter") else None,
        access=table.distribution("access") if table.has("access") else None,
        bandwidth=table.number("bandwidth", float("inf"), least=1e-9),
        overhead=table.duration("overhead", 0),
        loss=table.number("loss", 0.0, most=1.0),
        collisions=table.truth("collisions"),
        carrier_sense=table.truth("carrier_sense"),
        partitions=[read_partition(table, item, names) for item in table.entries("partitions", PARTITION)],
    )
    presence = _presence(table, names)
    return BuiltWorld(
        network,
        names,
        presence,
        members=_members(table, names, presence),
        end=HOUR,
        linger=table.duration("linger", 0),
    )


def _places(table: Table, streams: Streams) -> tuple[list[Point], tuple[str, ...]]:
    if table.has("places"):
        return _read_places(table.path("places"))
    if table.has("grid"):
        columns, rows = _pair(table, "grid", [1, 1])
        if not columns.is_integer() or not rows.is_integer() or min(columns, rows) < 1:
            raise table.wrong("grid", f"[columns, rows] is wanted, not {table.data['grid']!r}")
        places = grid(int(columns), int(rows), table.number("spacing", 70.0, most=_FARTHEST))
        return places, numbered(len(places))
    count = table.count("nodes")
    width, height = _pair(table, "field", [400, 400])
    if table.truth("connected", True):
        reach = table.number("reach", 88.0)
        return scattered_connected(count, width, height, reach, streams), numbered(count)
    return scattered(count, width, height, streams.python("places", 0)), numbered(count)


def _pair(table: Table, key: str, default: list[float]) -> tuple[float, float]:
    value = table.raw(key, default)
    try:
        first, second = map(float, value.replace("x", " ").split() if isinstance(value, str) else value)
    except (TypeError, ValueError):
        raise table.wrong(key, f"two numbers are wanted, not {value!r}") from None
    if not (0 <= first <= _FARTHEST and 0 <= second <= _FARTHEST):
        raise table.wrong(key, f"two numbers from 0 to {_FARTHEST:g} are wanted, not {value!r}")
    return first, second


def _read_places(path: Path) -> tuple[list[Point], tuple[str, ...]]:
    places: dict[str, Point] = {}
    for line, row in csv_rows(path, ("node", "x", "y")):
        if row["node"] in places:
            raise BadInput(f"{line}: a second node {row['node']!r}")
        places[row["node"]] = _place(row, line)
    if not places:
        raise BadInput(f"{path}: no places")
    return list(places.values()), tuple(places)


def _place(row: dict[str, str], line: str) -> Point:
    try:
        x, y = float(row["x"]), float(row["y"])
    except (TypeError, ValueError):
        x = y = float("nan")
    if not (abs(x) <= _FARTHEST and abs(y) <= _FARTHEST):
        raise BadInput(f"{line}: not a place: {row['x']!r}, {row['y']!r}")
    return x, y


def _legs(
    table: Table, places: Sequence[Point], names: Sequence[str], streams: Streams
) -> dict[NodeId, Iterator[Leg]]:
    speed = table.number("speed", 0.0, most=_FARTHEST)
    if not speed:
        return {}
    width, height = _pair(table, "field", [400, 400])
    return {
        node: random_waypoints(places[node], width, height, speed, streams.python("waypoints", node))
        for node in _some(table, "mobile", names)
    }


def _some(table: Table, key: str, names: Sequence[str]) -> list[NodeId]:
    """The first so many, or those named; all when nothing is said."""
    value = table.raw(key)
    if isinstance(value, list):
        return [_node(table, key, name, names) for name in value]
    return list(range(len(names)))[: table.whole(key, len(names))]


def _node(table: Table, key: str, name: Any, names: Sequence[str]) -> NodeId:
    if str(name) not in names:
        raise table.wrong(key, f"no node {name!r}")
    return list(names).index(str(name))


def _presence(table: Table, names: Sequence[str]) -> tuple[Presence, ...]:
    stays: dict[NodeId, list[Presence]] = {node: [Presence(node)] for node in range(len(names))}
    listed: dict[NodeId, list[Presence]] = {}
    for item in table.entries("presence", ("node", "enter", "leave")):
        node = _node(table, "presence", table.field("presence", item, "node"), names)
        leave = table.instant("presence", item, "leave") if "leave" in item else None
        enter = table.instant("presence", item, "enter") if "enter" in item else 0
        listed.setdefault(node, []).append(Presence(node, enter, leave))
    stays.update(listed)
    return tuple(stay for node in sorted(stays) for stay in stays[node])


def _members(table: Table, names: Sequence[str], presence: Sequence[Presence]) -> tuple[NodeId, ...]:
    if table.has("members"):
        return tuple(sorted(_some(table, "members", names)))
    return tuple(sorted({stay.node for stay in presence if stay.enter == 0}))


KIND: Final = WorldKind("flood", "radios that hear each other within a range", _KEYS, _build)

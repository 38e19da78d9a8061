"""World kind `flood`: radios in a field or on a grid; one transmission is heard by all in range (drift2006)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import HOUR, Duration
from precede.experiments.keys import (
    count_or_names,
    distribution,
    duration,
    input_file,
    items,
    key,
    node_count,
    pair,
)
from precede.experiments.tables import Table, csv_rows
from precede.experiments.worlds.kinds import (
    BuiltWorld,
    Presence,
    StayItem,
    WorldKind,
    WorldTable,
    numbered,
    read_stays,
)
from precede.experiments.worlds.point_to_point import PartitionItem, read_partitions
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
from precede.sim.randomness import Distribution, Generators

_FARTHEST: Final = 1e9


def _area(value: Any) -> tuple[float, float]:
    first, second = pair(value)
    if not (0 <= first <= _FARTHEST and 0 <= second <= _FARTHEST):
        raise ValueError(f"expected two numbers from 0 to {_FARTHEST:g}, got {value!r}")
    return first, second


def _columns_and_rows(value: Any) -> tuple[int, int]:
    columns, rows = _area(value)
    if not columns.is_integer() or not rows.is_integer() or min(columns, rows) < 1:
        raise ValueError(f"expected [columns, rows], got {value!r}")
    return int(columns), int(rows)


class FloodTable(WorldTable, frozen=True, kw_only=True):
    """The keys of `[world]` for this kind."""

    nodes: Annotated[int | None, node_count("number of nodes; needed without grid and places")] = None
    reach: Annotated[float, key("metres within which a transmission is heard")] = 88.0
    field: Annotated[
        tuple[float, float],
        key("size in metres; nodes are placed uniformly at random in it", read=_area, shape="[width, height]"),
    ] = (400.0, 400.0)
    connected: Annotated[bool, key("draw places until the network is connected")] = True
    grid: Annotated[
        tuple[int, int] | None,
        key("place nodes on a grid, not at random", read=_columns_and_rows, shape="[columns, rows]"),
    ] = None
    spacing: Annotated[float, key("metres between neighbours on the grid", most=_FARTHEST)] = 70.0
    places: Annotated[Path | None, input_file("CSV node,x,y: places in metres, not at random")] = None
    speed: Annotated[
        float, key("metres per second of nodes that move, to random points, without a pause", most=_FARTHEST)
    ] = 0.0
    mobile: Annotated[
        int | tuple[str, ...] | None,
        key("the nodes that move: how many (the first ones), or names; none: all", read=count_or_names),
    ] = None
    delay: Annotated[Distribution, distribution("delay of a hop after its air time")] = Distribution(
        "constant(0.001)"
    )
    jitter: Annotated[Distribution | None, distribution("delay that each link adds")] = None
    access: Annotated[Distribution | None, distribution("time a transmission waits for the channel")] = None
    bandwidth: Annotated[float, key("bytes per second on the air", least=1e-9)] = float("inf")
    overhead: Annotated[Duration, duration("air time of each transmission in addition to its bytes")] = 0
    loss: Annotated[float, key("probability that a link loses a transmission", most=1.0)] = 0.0
    collisions: Annotated[bool, key("a node that hears two transmissions at once receives neither")] = False
    carrier_sense: Annotated[bool, key("a node waits while it hears another transmission")] = False
    partitions: Annotated[
        tuple[PartitionItem, ...], items(PartitionItem, "times when the network falls apart")
    ] = ()
    presence: Annotated[tuple[StayItem, ...], items(StayItem, "nodes that come late or leave early")] = ()
    linger: Annotated[Duration, duration("how long a node that leaves can still transmit")] = 0
    members: Annotated[
        int | tuple[str, ...] | None,
        key("nodes known to all from the beginning; none: those that are there then", read=count_or_names),
    ] = None

    def unused(self) -> Mapping[str, str]:
        """Return keys about places and movement that other keys make superfluous, each with the reason."""
        unused: dict[str, str] = {}
        if self.places is not None:
            unused |= dict.fromkeys(("nodes", "grid", "connected"), "with `places`")
        elif self.grid is not None:
            unused |= dict.fromkeys(("nodes", "connected"), "with `grid`")
        if self.grid is None or self.places is not None:
            unused["spacing"] = "without `grid`"
        if not self.speed:
            unused["mobile"] = "without `speed`"
            if self.grid is not None or self.places is not None:
                unused["field"] = "with `grid` or `places`, unless nodes move"
        return unused


def _build(world: FloodTable, table: Table, seed: int) -> BuiltWorld:
    generators = Generators(seed)
    places, names = _places(world, table, generators)
    network = FloodRadio(
        motion=Motion(places, _legs(world, table, places, names, generators)),
        reach=world.reach,
        delay=world.delay,
        jitter=world.jitter,
        access=world.access,
        bandwidth=world.bandwidth,
        overhead=world.overhead,
        loss=world.loss,
        collisions=world.collisions,
        carrier_sense=world.carrier_sense,
        partitions=read_partitions(table, world.partitions, names),
    )
    listed = read_stays(table, "presence", world.presence, names)
    presence = tuple(stay for node in range(len(names)) for stay in listed.get(node, [Presence(node)]))
    if world.members is None:
        members = tuple(sorted({stay.node for stay in presence if stay.enter == 0}))
    else:
        members = tuple(sorted(_chosen(table, "members", world.members, names)))
    return BuiltWorld(network, names, presence, members=members, end=HOUR, linger=world.linger)


def _places(world: FloodTable, table: Table, generators: Generators) -> tuple[list[Point], tuple[str, ...]]:
    if world.places is not None:
        return _read_places(world.places)
    if world.grid is not None:
        places = grid(*world.grid, world.spacing)
        return places, numbered(len(places))
    if world.nodes is None:
        raise table.lacks("'nodes'")
    width, height = world.field
    if world.connected:
        places = scattered_connected(world.nodes, width, height, world.reach, generators)
    else:
        places = scattered(world.nodes, width, height, generators.python("places", 0))
    return places, numbered(world.nodes)


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
    world: FloodTable, table: Table, places: Sequence[Point], names: Sequence[str], generators: Generators
) -> dict[NodeId, Iterator[Leg]]:
    if not world.speed:
        return {}
    width, height = world.field
    return {
        node: random_waypoints(places[node], width, height, world.speed, generators.python("waypoints", node))
        for node in _chosen(table, "mobile", world.mobile, names)
    }


def _chosen(
    table: Table, name: str, chosen: int | tuple[str, ...] | None, names: Sequence[str]
) -> Sequence[NodeId]:
    """Return the nodes that a key selects by a number (the first ones) or by names; all for None."""
    if isinstance(chosen, tuple):
        return [table.node(name, node, names) for node in chosen]
    return range(len(names))[:chosen]


KIND: Final = WorldKind("flood", "radios that hear each other within a range", FloodTable, _build)

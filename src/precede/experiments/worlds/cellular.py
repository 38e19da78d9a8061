"""World kind `cellular`: stations on a wired tree with a radio cell each, and hosts that walk between cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration, Instant, seconds
from precede.experiments.keys import distribution, duration, input_file, instant, items, key, node_count
from precede.experiments.tables import Table, csv_rows
from precede.experiments.worlds.kinds import (
    BuiltWorld,
    Presence,
    StayItem,
    WorldKind,
    WorldTable,
    read_stays,
)
from precede.sim.networks.cellular import Cellular
from precede.sim.networks.contention import LEAST_WINDOW, ContentionRadio
from precede.sim.networks.journeys import Journey, Move, WireCut
from precede.sim.networks.lossy_radio import LossyRadio
from precede.sim.networks.radio import Radio
from precede.sim.randomness import Distribution, Generators
from precede.traces.cells import Floats, Positions, associate, hexagonal, tree_of_degree, walk

_FARTHEST: Final = 1e9


def _links(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of pairs of stations, got {value!r}")
    for link in value:
        if not isinstance(link, list) or len(link) != 2:
            raise ValueError(f"{link!r} is no pair of stations")
    return tuple(tuple(str(name) for name in link) for link in value)


def _link(value: Any) -> tuple[str, ...]:
    return _links([value])[0]


class MoveItem(Struct, frozen=True, kw_only=True):
    """One element of the key `moves`."""

    host: Annotated[str, key("name of the host")]
    at: Annotated[Instant, instant("when it changes cells")]
    cell: Annotated[str, key("name of its new station; empty: out of coverage")]


class WireCutItem(Struct, frozen=True, kw_only=True):
    """One element of the key `wire_cuts`."""

    link: Annotated[tuple[str, ...], key("the two stations of the link", read=_link)]
    start: Annotated[Instant, instant("when it is cut")]
    end: Annotated[Instant, instant("when it is mended; what was sent in between waits until then")]


class CellularTable(WorldTable, frozen=True, kw_only=True):
    """The keys of `[world]` for this kind."""

    stations: Annotated[int, node_count("number of stations; they are called s0, s1, ...")] = 10
    hosts: Annotated[int, node_count("number of hosts; they are called h0, h1, ...", least=0)] = 100
    stays: Annotated[
        tuple[StayItem, ...], items(StayItem, "hosts that come late or leave early, at most one stay each")
    ] = ()
    linger: Annotated[Duration, duration("how long a host that leaves can still transmit")] = 10 * SECOND
    degree: Annotated[int, key("most neighbours of a station in the tree", least=1)] = 3
    links: Annotated[
        tuple[tuple[str, ...], ...] | None,
        key("the tree, not drawn from places", read=_links, shape='list of ["s0", "s1"]'),
    ] = None
    wired_delay: Annotated[Distribution, distribution("delay of a tree link")] = Distribution("constant(0.01)")
    wired_bitrate: Annotated[float, key("bits per second of a tree link", least=1.0)] = 100e6
    wire_cuts: Annotated[
        tuple[WireCutItem, ...], items(WireCutItem, "tree links that are cut for a while")
    ] = ()
    range: Annotated[float, key("range of an antenna in metres", least=0.001, most=_FARTHEST)] = 120.0
    hysteresis: Annotated[float, key("a host changes to a station that is nearer by so many metres")] = 3.0
    movement: Annotated[Literal["walk", "positions", "moves", "still"], key("how hosts move")] = "walk"
    speed: Annotated[float, key("walk: metres per second", most=_FARTHEST)] = 1.39
    turn: Annotated[Duration, duration("walk: time between two changes of direction")] = 5 * SECOND
    step: Annotated[
        Duration, duration("walk, positions: time between two looks at all positions", least=MILLISECOND)
    ] = 500 * MILLISECOND
    duration: Annotated[Duration, duration("walk: hosts stand still after this")] = 5 * MINUTE
    positions: Annotated[
        Path | None, input_file("positions: CSV node,time,x,y in seconds and metres, nodes by name")
    ] = None
    moves: Annotated[tuple[MoveItem, ...], items(MoveItem, "moves: when hosts change cells")] = ()
    radio: Annotated[
        Literal["contention", "lossy"], key("a shared channel, or one without capacity and geometry")
    ] = "contention"
    bitrate: Annotated[float, key("contention: bits per second on the air", least=1.0)] = 20e6
    retries: Annotated[int, key("contention: MAC retries of a unicast frame")] = 0
    window: Annotated[int, key("contention: slots of the first back-off window", least=1)] = LEAST_WINDOW
    loss: Annotated[float, key("lossy: probability that a reception fails", most=1.0)] = 0.0
    radio_delay: Annotated[Distribution, distribution("lossy: delay of a frame")] = Distribution(
        "constant(0.001)"
    )
    fifo: Annotated[bool, key("lossy: frames between two nodes keep their order")] = False

    def unused(self) -> Mapping[str, str]:
        """Return the keys that have no effect, each with the reason, such as those of a radio not chosen."""
        radios = {"contention": ("bitrate", "retries", "window"), "lossy": ("loss", "radio_delay", "fifo")}
        movements = {
            "walk": ("hysteresis", "speed", "turn", "step", "duration"),
            "positions": ("hysteresis", "step", "positions"),
            "moves": ("moves",),
            "still": ("hysteresis", "speed", "turn", "step"),
        }
        unused = {name: f'with radio = "{self.radio}"' for used in radios.values() for name in used}
        unused |= {name: f'with movement = "{self.movement}"' for used in movements.values() for name in used}
        for name in (*radios[self.radio], *movements[self.movement]):
            del unused[name]
        return unused | ({"degree": "with `links`"} if self.links is not None else {})


def _build(world: CellularTable, table: Table, seed: int) -> BuiltWorld:
    """Build the network; ids of stations are below those of hosts."""
    stations = world.stations
    names = (*(f"s{number}" for number in range(stations)), *(f"h{number}" for number in range(world.hosts)))
    places = hexagonal(stations, world.range)
    journey = None
    if world.movement != "moves":
        positions = _positions(world, table, places, names[stations:], seed)
        journey = Journey(positions, associate(positions, places, world.range, world.hysteresis))
    links = _tree(world, table, places, names[:stations])
    network = Cellular(
        radio=_radio(world),
        stations=stations,
        links=links,
        delay=world.wired_delay,
        bandwidth=world.wired_bitrate,
        moves=_moves(world, table, names),
        journey=journey,
        station_places=[(float(x), float(y)) for x, y in places],
        wire_cuts=_wire_cuts(world, table, names, links),
    )
    return BuiltWorld(
        network=network,
        names=names,
        presence=_presence(world, table, names),
        roles=tuple("station" if node < stations else "host" for node in range(len(names))),
        sources=tuple(range(stations, len(names))),
        linger=world.linger,
    )


def _radio(world: CellularTable) -> Radio:
    if world.radio == "lossy":
        return LossyRadio(world.radio_delay, world.loss, world.fifo)
    return ContentionRadio(world.bitrate, world.range, world.retries, world.window)


def _positions(
    world: CellularTable, table: Table, places: Floats, hosts: Sequence[str], seed: int
) -> Positions:
    if world.movement == "positions":
        if world.positions is None:
            raise table.lacks("'positions'")
        return read_positions(world.positions, hosts, world.step)
    end = 0 if world.movement == "still" else world.duration
    generator = Generators(seed).numpy("walk")
    return walk(places, world.range, len(hosts), world.speed, world.turn, world.step, end, generator)


def read_positions(path: Path, hosts: Sequence[str], step: Duration) -> Positions:
    """Read the positions of hosts from a CSV file, one for every `step`.

    A host moves in straight lines between its rows. It is absent before its first row and after its last.
    """
    rows = _position_rows(path, hosts)
    last = max((at for track in rows.values() for at, _, _ in track), default=0)
    instants = np.arange(0, last + 1, step)
    x = np.full((len(instants), len(hosts)), np.nan)
    y = np.full((len(instants), len(hosts)), np.nan)
    for number, host in enumerate(hosts):
        track = sorted(rows.get(host, []))
        if track:
            at, xs, ys = (np.array(column, dtype=float) for column in zip(*track, strict=True))
            x[:, number] = np.interp(instants, at, xs, left=np.nan, right=np.nan)
            y[:, number] = np.interp(instants, at, ys, left=np.nan, right=np.nan)
    return Positions(step, np.nan_to_num(x, nan=1e12), np.nan_to_num(y, nan=1e12))


def _position_rows(path: Path, hosts: Sequence[str]) -> dict[str, list[tuple[Instant, float, float]]]:
    rows: dict[str, list[tuple[Instant, float, float]]] = {host: [] for host in hosts}
    for place, row in csv_rows(path, ("node", "time", "x", "y")):
        if row["node"] not in rows:
            raise BadInput(f"{place}: node: no host {row['node']!r}")
        try:
            at, x, y = seconds(float(row["time"])), float(row["x"]), float(row["y"])
        except (TypeError, ValueError) as error:
            raise BadInput(f"{place}: not a number: {error}") from error
        rows[row["node"]].append((at, x, y))
    return rows


def _tree(world: CellularTable, table: Table, places: Floats, names: Sequence[str]) -> list[tuple[int, int]]:
    if world.links is None:
        return tree_of_degree(places, world.degree)
    links = []
    component = list(range(len(names)))
    for link in world.links:
        one, other = (table.node("links", name, names) for name in link)
        if component[one] == component[other]:
            raise table.wrong("links", f"{list(link)!r} closes a circle: the links must be a tree")
        component = [component[one] if group == component[other] else group for group in component]
        links.append((one, other))
    if len(set(component)) > 1:
        raise table.wrong("links", "not every station is reached: the links must be a tree")
    return links


def _wire_cuts(
    world: CellularTable, table: Table, names: Sequence[str], links: Sequence[tuple[int, int]]
) -> list[WireCut]:
    cuts = []
    for cut in world.wire_cuts:
        one, other = (table.node("wire_cuts", name, names) for name in cut.link)
        if (one, other) not in links and (other, one) not in links:
            raise table.wrong("wire_cuts", f"there is no link {list(cut.link)!r} in the tree")
        cuts.append(WireCut((one, other), cut.start, cut.end))
    return cuts


def _moves(world: CellularTable, table: Table, names: Sequence[str]) -> list[Move]:
    moves = []
    for move in world.moves:
        host = table.node("moves", move.host, names)
        cell = None if move.cell == "" else table.node("moves", move.cell, names[: world.stations])
        if host < world.stations:
            raise table.wrong("moves", f"{move.host!r} is a station, and stations do not move")
        moves.append(Move(move.at, host, cell))
    return sorted(moves, key=lambda move: move.at)


def _presence(world: CellularTable, table: Table, names: Sequence[str]) -> tuple[Presence, ...]:
    stays = read_stays(table, "stays", world.stays, names)
    for node, listed in stays.items():
        if len(listed) > 1:
            raise table.wrong("stays", f"a second stay of host {names[node]!r}")
    return tuple(stays.get(node, [Presence(node)])[0] for node in range(len(names)))


KIND: Final = WorldKind(
    "cellular", "stations on a wired tree, a radio cell each, hosts that move", CellularTable, _build
)

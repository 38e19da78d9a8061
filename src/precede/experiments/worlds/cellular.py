"""World kind `cellular`: stations on a wired tree with a radio cell each, and hosts that walk between cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration, Instant, seconds
from precede.experiments.tables import Table, csv_rows
from precede.experiments.worlds.kinds import BuiltWorld, Presence, WorldKind
from precede.sim.networks.cellular import Cellular, Journey, Move
from precede.sim.networks.contention import LEAST_WINDOW, ContentionRadio
from precede.sim.networks.lossy_radio import LossyRadio
from precede.sim.networks.radio import Radio
from precede.sim.randomness import Streams
from precede.traces.cells import Floats, Positions, associate, hexagonal, tree_of_degree, walk

_KEYS: Final[dict[str, str]] = {
    "kind": "cellular",
    "stations": "how many stations; they are called s0, s1, ...; default 10",
    "hosts": "how many hosts; they are called h0, h1, ...; default 100",
    "stays": 'list of { node = "h3", enter = "2s", leave = "9s" } for hosts that are not there all the time',
    "linger": "how long a host that leaves may still say so; default 10s",
    "degree": "most neighbours of a station in the tree; default 3",
    "links": 'the tree instead, as a list of pairs: [["s0", "s1"], ["s0", "s2"]]',
    "wired_delay": "delay of a tree link: a duration or a distribution in seconds; default 10ms",
    "wired_bitrate": "bits per second of a tree link; default 100e6",
    "range": "range of an antenna in metres; default 120",
    "hysteresis": "how many metres nearer another station must be for a host to change; default 3",
    "movement": "walk, positions, moves or still; default walk",
    "speed": "walk: metres per second; default 1.39",
    "turn": "walk: time between two changes of direction; default 5s",
    "step": "walk, positions: time between two looks at where everybody is; default 500ms",
    "duration": "walk: hosts stand still after this; default 5min",
    "positions": "positions: a CSV file node,time,x,y in seconds and metres, nodes by name",
    "moves": 'moves: list of { host = "h0", at = "2s", cell = "s1" }, cell = "" for out of coverage',
    "radio": "contention, or lossy (no capacity, no geometry); default contention",
    "bitrate": "contention: bits per second on the air; default 20e6",
    "retries": "contention: MAC retries of a unicast frame; default 0",
    "window": "contention: slots of the first back-off window; default 32",
    "loss": "lossy: probability per reception; default 0",
    "radio_delay": "lossy: delay of a frame; default 1ms",
    "fifo": "lossy: frames between two nodes do not overtake each other; default false",
}


def build(table: Table, seed: int) -> BuiltWorld:
    """The network, with stations first and hosts after them."""
    stations, hosts = table.count("stations", 10), table.count("hosts", 100, least=0)
    names = (*(f"s{number}" for number in range(stations)), *(f"h{number}" for number in range(hosts)))
    reach = table.number("range", 120.0, least=0.001, most=1e9)
    places = hexagonal(stations, reach)
    movement = table.choice("movement", ("walk", "positions", "moves", "still"), "walk")
    journey = None
    if movement != "moves":
        positions = _positions(table, movement, places, reach, names[stations:], seed)
        journey = Journey(positions, associate(positions, places, reach, table.number("hysteresis", 3.0)))
    network = Cellular(
        radio=_radio(table, reach),
        stations=stations,
        links=_links(table, places, names[:stations]),
        delay=table.distribution("wired_delay", "10ms"),
        bandwidth=table.number("wired_bitrate", 100e6, least=1.0),
        moves=_moves(table, names, stations) if movement == "moves" else (),
        journey=journey,
        station_places=[(float(x), float(y)) for x, y in places],
    )
    return BuiltWorld(
        network=network,
        names=names,
        presence=_presence(table, names),
        roles=tuple("station" if node < stations else "host" for node in range(len(names))),
        sources=tuple(range(stations, len(names))),
        linger=table.duration("linger", 10 * SECOND),
    )


def _radio(table: Table, reach: float) -> Radio:
    if table.choice("radio", ("contention", "lossy"), "contention") == "lossy":
        delay = table.distribution("radio_delay", "1ms")
        return LossyRadio(delay, table.number("loss", 0.0, most=1.0), table.truth("fifo"))
    return ContentionRadio(
        table.number("bitrate", 20e6, least=1.0),
        reach,
        table.whole("retries", 0),
        table.whole("window", LEAST_WINDOW, least=1),
    )


def _positions(
    table: Table, movement: str, places: Floats, reach: float, hosts: Sequence[str], seed: int
) -> Positions:
    step = table.duration("step", 500 * MILLISECOND)
    if step < MILLISECOND:
        raise table.wrong("step", "less than 1ms")
    if movement == "positions":
        return read_positions(table.path("positions"), hosts, step)
    still = movement == "still"
    end = 0 if still else table.duration("duration", 5 * MINUTE)
    random = Streams(seed).numpy("walk")
    speed, turn = table.number("speed", 1.39, most=1e9), table.duration("turn", 5 * SECOND)
    return walk(places, reach, len(hosts), speed, turn, step, end, random)


def read_positions(path: Path, hosts: Sequence[str], step: Duration) -> Positions:
    """Straight lines between the rows of each host; before its first and after its last it is nowhere."""
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


def _links(table: Table, places: Floats, names: Sequence[str]) -> list[tuple[int, int]]:
    if not table.has("links"):
        return tree_of_degree(places, table.whole("degree", 3, least=1))
    links = []
    joined = list(range(len(names)))
    for pair in table.items("links"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise table.wrong("links", f"{pair!r} is no pair of stations")
        one, other = (_named(table, "links", name, names) for name in pair)
        if joined[one] == joined[other]:
            raise table.wrong("links", f"{pair!r} closes a circle: the links must be a tree")
        joined = [joined[one] if group == joined[other] else group for group in joined]
        links.append((one, other))
    if len(set(joined)) > 1:
        raise table.wrong("links", "not every station is reached: the links must be a tree")
    return links


def _moves(table: Table, names: Sequence[str], stations: int) -> list[Move]:
    moves = []
    for item in table.entries("moves", ("host", "at", "cell")):
        host = _named(table, "moves", table.field("moves", item, "host"), names)
        cell = table.field("moves", item, "cell")
        where = None if cell == "" else _named(table, "moves", cell, names[:stations])
        if host < stations:
            raise table.wrong("moves", f"{item!r}: a station does not move")
        moves.append(Move(table.instant("moves", item, "at"), host, where))
    return sorted(moves, key=lambda move: move.at)


def _presence(table: Table, names: Sequence[str]) -> tuple[Presence, ...]:
    stays: dict[int, Presence] = {}
    for item in table.entries("stays", ("node", "enter", "leave")):
        node = _named(table, "stays", table.field("stays", item, "node"), names)
        enter = table.instant("stays", item, "enter") if "enter" in item else 0
        leave = table.instant("stays", item, "leave") if "leave" in item else None
        if node in stays:
            raise table.wrong("stays", f"{item!r}: a second stay of this host")
        stays[node] = Presence(node, enter, leave)
    return tuple(stays.get(number, Presence(number)) for number in range(len(names)))


def _named(table: Table, key: str, name: Any, names: Sequence[str]) -> int:
    if str(name) not in names:
        raise table.wrong(key, f"no node {name!r} (there are {names[0]} to {names[-1]})")
    return list(names).index(str(name))


KIND: Final = WorldKind(
    "cellular", "stations on a wired tree, a radio cell each, hosts that move", _KEYS, build
)

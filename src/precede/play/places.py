"""Where nodes are: on the map of their world if it has one, else on the cube of VCube or on a ring."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np

from precede.core.instants import Instant
from precede.experiments.keys import read_table
from precede.experiments.run import Run, build_world
from precede.experiments.tables import Table
from precede.experiments.worlds import generators
from precede.experiments.worlds.contacts import ContactsTable
from precede.lake.layout import Lake
from precede.lake.storage import joined
from precede.sim.networks.cellular import Cellular
from precede.sim.networks.flood import FloodRadio
from precede.traces.mobility import Mobility, mobility_of

Point = tuple[float, float]
_APART = 0.55
"""How far from its station a host is drawn, as a share of the smallest distance of two stations."""

_EDGES: Final = ((1.0, 0.0), (0.0, 1.0), (0.45, 0.3), (1.9, 0.12))
"""The edges of a drawn hypercube, one for each dimension."""


class Places(Protocol):
    """The positions of nodes over time, in any unit; None for a node that is not there."""

    moves: bool

    def at(self, now: Instant) -> Sequence[Point | None]:
        """Return the position of each node. `now` does not decrease between calls."""

    def links(self, now: Instant) -> list[tuple[int, int]] | None:
        """Return the pairs in range; None if places do not say who hears whom."""


class NoRange:
    """Places of which the network knows more than their distance says."""

    def links(self, now: Instant) -> list[tuple[int, int]] | None:
        return None


class Ring(NoRange):
    """Nodes on a circle, in the order of their ids, clockwise from the top."""

    moves = False

    def __init__(self, nodes: int) -> None:
        angles = [2 * pi * node / max(nodes, 1) for node in range(nodes)]
        self._points = [(sin(angle), cos(angle)) for angle in angles]

    def at(self, now: Instant) -> Sequence[Point | None]:
        return self._points


class Cube:
    """Nodes at the corners of a hypercube: two differ in one bit of their numbers if an edge joins them."""

    moves = False

    def __init__(self, nodes: int) -> None:
        self._points = [
            (
                sum(x for bit, (x, _) in enumerate(_EDGES) if node >> bit & 1),
                sum(y for bit, (_, y) in enumerate(_EDGES) if node >> bit & 1),
            )
            for node in range(nodes)
        ]
        self._links = [(a, b) for b in range(nodes) for a in range(b) if (a ^ b).bit_count() == 1]

    def at(self, now: Instant) -> Sequence[Point | None]:
        return self._points

    def links(self, now: Instant) -> list[tuple[int, int]] | None:
        return self._links


class Travels(NoRange):
    """Nodes on the straight segments of a mobility trace."""

    moves = True

    def __init__(self, mobility: Mobility, names: Sequence[str], zero: Instant) -> None:
        self._zero = zero
        ids = {name: node for node, name in enumerate(mobility.names)}
        s = mobility.segments
        begins = np.searchsorted(s.node, np.arange(len(mobility.names) + 1))
        self._columns = (s.t0_us, s.x0, s.y0, s.t1_us, s.x1, s.y1)
        self._ranges = [
            (int(begins[ids[name]]), int(begins[ids[name] + 1])) if name in ids else (0, 0) for name in names
        ]

    def at(self, now: Instant) -> Sequence[Point | None]:
        return [self._place(*both, now + self._zero) for both in self._ranges]

    def _place(self, first: int, after: int, now: Instant) -> Point | None:
        t0, x0, y0, t1, x1, y1 = self._columns
        k = first + int(np.searchsorted(t0[first:after], now, side="right")) - 1
        if k < first or now > t1[k]:
            return None
        share = (now - t0[k]) / max(int(t1[k] - t0[k]), 1)
        return float(x0[k] + share * (x1[k] - x0[k])), float(y0[k] + share * (y1[k] - y0[k]))


class Field:
    """Nodes in the field of a flood radio."""

    def __init__(self, network: FloodRadio) -> None:
        self._motion, self._reach = network.motion, network.reach
        self.moves = network.motion.moves

    def at(self, now: Instant) -> Sequence[Point | None]:
        return [self._motion.place(node, now) for node in range(self._motion.nodes)]

    def links(self, now: Instant) -> list[tuple[int, int]] | None:
        near = [self._motion.in_range(node, self._reach, now) for node in range(self._motion.nodes)]
        return [(node, peer) for node, peers in enumerate(near) for peer in peers if node < peer]


class Cells(NoRange):
    """Stations at their places; a host at its own place, or around the station of its cell."""

    moves = True

    def __init__(self, network: Cellular) -> None:
        self._network = network

    def at(self, now: Instant) -> Sequence[Point | None]:
        network = self._network
        stations = network.place[: network.stations]
        if network.has_journey:
            return [*stations, *network.place[network.stations :]]
        apart = _APART * min(
            (abs(complex(*one) - complex(*two)) for one in stations for two in stations if one != two),
            default=1.0,
        )
        hosts = range(network.stations, len(network.cell))
        return [*stations, *(self._around(host, len(hosts), apart) for host in hosts)]

    def _around(self, host: int, hosts: int, apart: float) -> Point | None:
        cell = self._network.cell[host]
        if cell < 0:
            return None
        angle = 2 * pi * (host - self._network.stations) / hosts
        x, y = self._network.place[cell]
        return x + apart * sin(angle), y + apart * cos(angle)


def places_of(run: Run, network: object, names: Sequence[str]) -> Places:
    """Return where the nodes of a run are. `network` is the network of one of its worlds."""
    if isinstance(network, FloodRadio):
        return Field(cast(FloodRadio, build_world(run).network))
    if isinstance(network, Cellular):
        return Cells(network)
    if run.protocol == "vcube" and len(names) in (2, 4, 8, 16):
        return Cube(len(names))
    if run.world["kind"] == "contacts":
        table = Table(run.world, "world", run.scenario, base=Path(run.base))
        world = read_table(ContactsTable, table)
        if world.generator is not None:
            seed = run.seed if world.generator_seed is None else world.generator_seed
            return Travels(generators.mobility(world, table, seed), names, 0)
        if world.trace is not None:
            return _of_trace(Lake(joined(run.base, world.lake)), world, names) or Ring(len(names))
    return Ring(len(names))


def _of_trace(lake: Lake, world: ContactsTable, names: Sequence[str]) -> Travels | None:
    """Return the movement of a trace in the lake; None if the lake has only its contacts."""
    from precede.lake.stored_contacts import read_stored_contacts

    trace = str(world.trace)
    if not lake.has("segments", trace):
        return None
    columns = lake.read("segments", trace, ["node", "t0_us", "x0", "y0", "t1_us", "x1", "y1"])
    rows = zip(*(columns[name].to_pylist() for name in columns.column_names), strict=True)
    return Travels(mobility_of(rows), names, read_stored_contacts(lake, trace, world.range).span()[0])

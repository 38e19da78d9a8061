"""The world kinds a scenario can name, and what each gives a run.

One line per kind below. A kind reads its keys from the `[world]` table and builds the network, the names and
roles of the nodes, and when they enter and leave. It also draws itself for the swarm (`experiments.swarm`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.experiments.tables import Table
from precede.sim.networks.network import Network

KINDS: Final[dict[str, str]] = {
    "point_to_point": "precede.experiments.worlds.point_to_point:KIND",
    "flood": "precede.experiments.worlds.flood:KIND",
    "switched": "precede.experiments.worlds.switched:KIND",
    "contacts": "precede.experiments.worlds.contacts:KIND",
    "cellular": "precede.experiments.worlds.cellular:KIND",
}


class Presence(Struct, frozen=True):
    """One stay of a node in the world; `leave` None: until the end."""

    node: NodeId
    enter: Instant = 0
    leave: Instant | None = None


class BuiltWorld(Struct):
    """Everything a run needs of its world. Node ids are the places in `names`.

    `members` is what every node is told at the beginning; `sources` are the nodes whose applications send.
    `end` is when the world is over when nobody says otherwise; None: when nothing is left to do.
    """

    network: Network
    names: tuple[str, ...]
    presence: tuple[Presence, ...]
    roles: tuple[str, ...] = ()
    members: tuple[NodeId, ...] | None = None
    sources: tuple[NodeId, ...] | None = None
    end: Instant | None = None
    linger: Duration = 0

    def role(self, node: NodeId) -> str:
        return self.roles[node] if self.roles else "node"

    def all_members(self) -> tuple[NodeId, ...]:
        return self.members if self.members is not None else tuple(range(len(self.names)))

    def all_sources(self) -> tuple[NodeId, ...]:
        return self.sources if self.sources is not None else tuple(range(len(self.names)))


class WorldKind(Struct, frozen=True):
    """`keys` documents each key of `[world]`; `build(table, seed)` makes the world."""

    name: str
    title: str
    keys: Mapping[str, str]
    build: Callable[[Table, int], BuiltWorld]


def find_kind(name: str) -> WorldKind:
    """A world kind by name."""
    if name not in KINDS:
        raise BadInput(f"unknown world kind {name!r} (known: {', '.join(KINDS)})")
    module, _, attribute = KINDS[name].partition(":")
    found: Any = getattr(import_module(module), attribute)
    assert isinstance(found, WorldKind)
    return found


def numbered(count: int) -> tuple[str, ...]:
    """Names for nodes that have none."""
    return tuple(str(number) for number in range(count))


def everybody(count: int) -> tuple[Presence, ...]:
    """All nodes, from the beginning to the end."""
    return tuple(Presence(node) for node in range(count))

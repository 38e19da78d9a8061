"""The kinds of world that a scenario can name, and what each builds for a run.

A kind declares the keys of its `[world]` table as a struct. From such a struct it builds the network, the names
and roles of the nodes, and when they enter and leave.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, Final, Generic, TypeVar

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.experiments.keys import instant, key
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
    """Everything a run needs of its world. A node's id is its index in `names`.

    `members` are the nodes that every node knows at the beginning; `sources` are the nodes whose applications
    send. `end` is when the world ends unless the scenario says otherwise; None: when nothing is left to do.
    `note` is a sentence about the world that belongs beside its results.
    """

    network: Network
    names: tuple[str, ...]
    presence: tuple[Presence, ...]
    roles: tuple[str, ...] = ()
    members: tuple[NodeId, ...] | None = None
    sources: tuple[NodeId, ...] | None = None
    end: Instant | None = None
    linger: Duration = 0
    note: str = ""

    def role(self, node: NodeId) -> str:
        return self.roles[node] if self.roles else "node"

    def all_members(self) -> tuple[NodeId, ...]:
        return self.members if self.members is not None else tuple(range(len(self.names)))

    def all_sources(self) -> tuple[NodeId, ...]:
        return self.sources if self.sources is not None else tuple(range(len(self.names)))


class WorldTable(Struct, frozen=True, kw_only=True):
    """The key that every `[world]` has; each kind of world adds its own."""

    kind: Annotated[str, key("which kind of world")]

    def unused(self) -> Mapping[str, str]:
        """Return the keys that have no effect beside the other keys' values, each with the reason."""
        return {}


WorldT = TypeVar("WorldT", bound=WorldTable)


class WorldKind(Struct, Generic[WorldT], frozen=True):
    """One kind of world: the struct that declares its keys, and `build(world, table, seed)`."""

    name: str
    title: str
    keys: type[WorldT]
    build: Callable[[WorldT, Table, int], BuiltWorld]


def find_kind(name: str) -> WorldKind[Any]:
    if name not in KINDS:
        raise BadInput(f"unknown world kind {name!r} (known: {', '.join(KINDS)})")
    module, _, attribute = KINDS[name].partition(":")
    kind: Any = getattr(import_module(module), attribute)
    assert isinstance(kind, WorldKind)
    return kind


def numbered(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(count))


def everybody(count: int) -> tuple[Presence, ...]:
    return tuple(Presence(node) for node in range(count))


class StayItem(Struct, frozen=True, kw_only=True):
    """One element of a list of stays."""

    node: Annotated[str, key("name of the node")]
    enter: Annotated[Instant, instant("when it enters")] = 0
    leave: Annotated[Instant | None, instant("when it leaves; none: never")] = None


def read_stays(
    table: Table, name: str, stays: Sequence[StayItem], names: Sequence[str]
) -> dict[NodeId, list[Presence]]:
    """Return the stays of each listed node, in the order of the list, which is written under the key `name`."""
    listed: dict[NodeId, list[Presence]] = {}
    for stay in stays:
        node = table.node(name, stay.node, names)
        if stay.leave is not None and stay.leave < stay.enter:
            raise table.wrong(name, f"node {stay.node!r} leaves before it enters")
        listed.setdefault(node, []).append(Presence(node, stay.enter, stay.leave))
    return listed

"""World kind `point_to_point`: any node sends to any other; delay, loss, bandwidth, partitions."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import Struct

from precede.core.instants import Duration, Instant
from precede.experiments.keys import distribution, duration, instant, items, key, names, node_count
from precede.experiments.tables import Table
from precede.experiments.worlds.kinds import (
    BuiltWorld,
    Presence,
    StayItem,
    WorldKind,
    WorldTable,
    numbered,
    read_stays,
)
from precede.sim.networks.partition import Partition
from precede.sim.networks.point_to_point import PointToPoint
from precede.sim.randomness import Distribution


def _groups(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or not all(isinstance(group, list) for group in value):
        raise ValueError("expected a list of lists of names")
    return tuple(map(names, value))


class PartitionItem(Struct, frozen=True, kw_only=True):
    """One element of the key `partitions`."""

    start: Annotated[Instant, instant("when it begins")]
    end: Annotated[Instant, instant("when it is over")]
    groups: Annotated[
        tuple[tuple[str, ...], ...],
        key('lists of names, as [["0", "1"], ["2"]]; packets cross no group', read=_groups),
    ]
    one_way: Annotated[bool, key("nodes in no group are heard by all, and hear only each other")] = False


class PointToPointTable(WorldTable, frozen=True, kw_only=True):
    """The keys of `[world]` for this kind."""

    nodes: Annotated[int, node_count("number of nodes")]
    delay: Annotated[Distribution, distribution("delay of each packet")] = Distribution("exponential(0.05)")
    loss: Annotated[float, key("probability that a packet is lost", most=1.0)] = 0.0
    duplication: Annotated[float, key("probability that a packet arrives twice", most=1.0)] = 0.0
    fifo: Annotated[bool, key("packets of one link arrive in the order sent")] = False
    bandwidth: Annotated[float, key("bytes per second of each directed link", least=1e-9)] = float("inf")
    overhead: Annotated[Duration, duration("time each packet takes on its link in addition to its bytes")] = 0
    partitions: Annotated[
        tuple[PartitionItem, ...], items(PartitionItem, "times when the network falls apart")
    ] = ()
    link_events: Annotated[bool, key("tell nodes of links that come up and go down")] = False
    stays: Annotated[tuple[StayItem, ...], items(StayItem, "nodes that come late or leave early")] = ()
    linger: Annotated[Duration, duration("how long a node that leaves still takes part")] = 0


def _build(world: PointToPointTable, table: Table, seed: int) -> BuiltWorld:
    node_names = numbered(world.nodes)
    network = PointToPoint(
        delay=world.delay,
        loss=world.loss,
        duplication=world.duplication,
        fifo=world.fifo,
        bandwidth=world.bandwidth,
        overhead=world.overhead,
        partitions=read_partitions(table, world.partitions, node_names),
        link_events=world.link_events,
    )
    stays = read_stays(table, "stays", world.stays, node_names)
    presence = tuple(stay for node in range(world.nodes) for stay in stays.get(node, [Presence(node)]))
    return BuiltWorld(network, node_names, presence, linger=world.linger)


def read_partitions(
    table: Table, partitions: Sequence[PartitionItem], node_names: Sequence[str]
) -> list[Partition]:
    """Return the partitions of a world. Raise an error about a node that is unknown or in two groups."""
    return [_partition(table, item, node_names) for item in partitions]


def _partition(table: Table, item: PartitionItem, node_names: Sequence[str]) -> Partition:
    listed = [name for group in item.groups for name in group]
    for name in listed:
        table.node("partitions", name, node_names)
        if listed.count(name) > 1:
            raise table.wrong("partitions", f"{name!r} is in two groups")
    if item.end < item.start:
        raise table.wrong("partitions", "a partition ends before it starts")
    groups = tuple(tuple(node_names.index(name) for name in group) for group in item.groups)
    return Partition(item.start, item.end, groups, item.one_way)


KIND: Final = WorldKind("point_to_point", "any node sends to any other", PointToPointTable, _build)

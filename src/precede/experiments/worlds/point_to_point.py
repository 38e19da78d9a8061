"""World kind `point_to_point`: any node sends to any other; delay, loss, bandwidth, partitions."""

from __future__ import annotations

from typing import Any, Final

from precede.experiments.tables import Table
from precede.experiments.worlds.kinds import BuiltWorld, WorldKind, everybody, numbered
from precede.sim.networks.partition import Partition
from precede.sim.networks.point_to_point import PointToPoint

_KEYS: Final = {
    "kind": "point_to_point",
    "nodes": "how many nodes",
    "delay": "per packet: a distribution in seconds, or a duration; default exponential(0.05)",
    "loss": "probability that a packet is lost; default 0",
    "duplication": "probability that a packet arrives twice; default 0",
    "fifo": "packets of one link arrive in the order sent; default false",
    "bandwidth": 'bytes per second of each directed link; default "inf"',
    "overhead": "time each packet takes on its link beside its bytes; default 0s",
    "partitions": 'list of { start, end, groups = [["0", "1"], ["2"]] }',
    "link_events": "tell nodes of links that come and go; default false",
}
PARTITION: Final = ("start", "end", "groups")


def _build(table: Table, seed: int) -> BuiltWorld:
    count = table.count("nodes")
    names = numbered(count)
    network = PointToPoint(
        delay=table.distribution("delay", "exponential(0.05)"),
        loss=table.number("loss", 0.0, most=1.0),
        duplication=table.number("duplication", 0.0, most=1.0),
        fifo=table.truth("fifo"),
        bandwidth=table.number("bandwidth", float("inf"), least=1e-9),
        overhead=table.duration("overhead", 0),
        partitions=[read_partition(table, item, names) for item in table.entries("partitions", PARTITION)],
        link_events=table.truth("link_events"),
    )
    return BuiltWorld(network, names, everybody(count))


def read_partition(table: Table, item: Any, names: tuple[str, ...]) -> Partition:
    """One item of the key `partitions`."""
    groups = table.field("partitions", item, "groups")
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise table.wrong("partitions", f"{item!r}: groups is a list of lists of names")
    named = [str(name) for group in groups for name in group]
    for name in named:
        if name not in names or named.count(name) > 1:
            cause = f"{name!r} is in two groups" if name in names else f"no node {name!r}"
            raise table.wrong("partitions", f"{item!r}: {cause}")
    start, end = table.instant("partitions", item, "start"), table.instant("partitions", item, "end")
    if end < start:
        raise table.wrong("partitions", f"{item!r}: ends before it starts")
    return Partition(start, end, tuple(tuple(names.index(str(name)) for name in group) for group in groups))


KIND: Final = WorldKind("point_to_point", "any node sends to any other", _KEYS, _build)

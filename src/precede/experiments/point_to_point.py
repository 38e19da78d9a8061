"""World kind `point_to_point`: any node sends to any other; delay, loss, bandwidth, partitions."""

from __future__ import annotations

from typing import Any, Final

from precede.core.instants import parse_duration
from precede.experiments.tables import Table
from precede.experiments.worlds import BuiltWorld, WorldKind, everybody, numbered
from precede.sim.partition import Partition
from precede.sim.point_to_point import PointToPoint

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


def _build(table: Table, seed: int) -> BuiltWorld:
    count = table.whole("nodes", least=1)
    names = numbered(count)
    network = PointToPoint(
        delay=table.distribution("delay", "exponential(0.05)"),
        loss=table.number("loss", 0.0, most=1.0),
        duplication=table.number("duplication", 0.0, most=1.0),
        fifo=table.truth("fifo"),
        bandwidth=table.number("bandwidth", float("inf"), least=1e-9),
        overhead=table.duration("overhead", 0),
        partitions=[read_partition(table, item, names) for item in table.items("partitions")],
        link_events=table.truth("link_events"),
    )
    return BuiltWorld(network, names, everybody(count))


def read_partition(table: Table, item: Any, names: tuple[str, ...]) -> Partition:
    """One item of the key `partitions`."""
    try:
        groups = tuple(tuple(names.index(str(name)) for name in group) for group in item["groups"])
        return Partition(parse_duration(item["start"]), parse_duration(item["end"]), groups)
    except (KeyError, TypeError, ValueError) as error:
        raise table.wrong("partitions", f"{item!r}: {error}") from None


KIND: Final = WorldKind("point_to_point", "any node sends to any other", _KEYS, _build)

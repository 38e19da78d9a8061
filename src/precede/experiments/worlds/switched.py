"""World kind `switched`: the packet-switched network of vcube2018, section 5, and who is there when."""

from __future__ import annotations

from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, parse_duration
from precede.experiments.tables import Table
from precede.experiments.worlds.kinds import BuiltWorld, Presence, WorldKind, numbered
from precede.sim.networks.switched import Switched

_KEYS: Final = {
    "kind": "switched",
    "nodes": "how many nodes",
    "propagation": "time on the line: a distribution in seconds, or a duration; default normal(0.1, 0.025)",
    "drawn": "propagation drawn for each packet, or once for each link: packet or link; default packet",
    "longest": "no propagation is longer than this; default no limit",
    "transmission": "time each packet takes to leave its node's one sending queue; default 1ms",
    "processing": "time its receiver takes with each packet; default 1ms",
    "stays": 'list of { node, enter = "3s", leave = "20s" } of nodes that come late or leave early',
    "linger": "how long a node that left still takes part; default 0s",
}


def _build(table: Table, seed: int) -> BuiltWorld:
    count = table.count("nodes")
    names = numbered(count)
    network = Switched(
        propagation=table.distribution("propagation", "normal(0.1, 0.025)"),
        transmission=table.duration("transmission", MILLISECOND),
        processing=table.duration("processing", MILLISECOND),
        drawn="link" if table.choice("drawn", ("packet", "link"), "packet") == "link" else "packet",
        longest=table.maybe_duration("longest"),
    )
    stays = [_stay(table, item, names) for item in table.entries("stays", ("node", "enter", "leave"))]
    named = {stay.node for stay in stays}
    presence = [*stays, *(Presence(node) for node in range(count) if node not in named)]
    members = tuple(sorted(stay.node for stay in presence if stay.enter == 0))
    return BuiltWorld(
        network,
        names,
        tuple(sorted(presence, key=lambda stay: (stay.enter, stay.node))),
        members=members,
        linger=table.duration("linger", 0),
    )


def _stay(table: Table, item: Any, names: tuple[str, ...]) -> Presence:
    try:
        leave = parse_duration(item["leave"]) if "leave" in item else None
        stay = Presence(names.index(str(item["node"])), parse_duration(item.get("enter", 0)), leave)
    except (KeyError, TypeError, ValueError, BadInput) as error:
        raise table.wrong("stays", f"{item!r}: {error}") from None
    if leave is not None and leave < stay.enter:
        raise table.wrong("stays", f"{item!r}: leaves before it enters")
    return stay


KIND: Final = WorldKind("switched", "one sending queue per node, any node to any other", _KEYS, _build)

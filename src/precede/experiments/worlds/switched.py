"""World kind `switched`: the packet-switched network of vcube2018, section 5; nodes may come and go."""

from typing import Annotated, Final, Literal

from precede.core.instants import MILLISECOND, Duration
from precede.experiments.keys import distribution, duration, items, key, node_count
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
from precede.sim.networks.switched import Switched
from precede.sim.randomness import Distribution


class SwitchedTable(WorldTable, frozen=True, kw_only=True):
    """The keys of `[world]` for this kind."""

    nodes: Annotated[int, node_count("number of nodes")]
    propagation: Annotated[Distribution, distribution("time on the line")] = Distribution("normal(0.1, 0.025)")
    drawn: Annotated[
        Literal["packet", "link"], key("draw the propagation for each packet, or once for each link")
    ] = "packet"
    longest: Annotated[Duration | None, duration("longest propagation; none: no limit")] = None
    transmission: Annotated[
        Duration, duration("time each packet takes to leave the sending queue of its node")
    ] = MILLISECOND
    processing: Annotated[Duration, duration("time the receiver takes with each packet")] = MILLISECOND
    stays: Annotated[tuple[StayItem, ...], items(StayItem, "nodes that come late or leave early")] = ()
    linger: Annotated[Duration, duration("how long a node that leaves still takes part")] = 0


def _build(world: SwitchedTable, table: Table, seed: int) -> BuiltWorld:
    names = numbered(world.nodes)
    network = Switched(
        propagation=world.propagation,
        transmission=world.transmission,
        processing=world.processing,
        drawn=world.drawn,
        longest=world.longest,
    )
    stays = read_stays(table, "stays", world.stays, names)
    presence = [stay for node in range(world.nodes) for stay in stays.get(node, [Presence(node)])]
    return BuiltWorld(
        network,
        names,
        tuple(sorted(presence, key=lambda stay: (stay.enter, stay.node))),
        members=tuple(sorted(stay.node for stay in presence if stay.enter == 0)),
        linger=world.linger,
    )


KIND: Final = WorldKind("switched", "one sending queue per node, any node to any other", SwitchedTable, _build)

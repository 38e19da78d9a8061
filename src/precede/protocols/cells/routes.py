"""Routing between stations on their tree. The stations learn the routes; in was2021 the routes are static."""

from precede.core.effects import WIRED, Effect, Send
from precede.core.identity import NodeId
from precede.core.messages import Packet
from precede.protocols.cells.frames import RoutedPacket, RoutesPacket


class Routes:
    """One station's routing table: `by_station` maps each other station to the neighbour that leads to it.

    `unrouted` are the packets that wait for a route, by addressee.
    """

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.neighbours: list[NodeId] = []
        self.by_station: dict[NodeId, NodeId] = {}
        self.unrouted: dict[NodeId, list[RoutedPacket]] = {}

    def add_neighbour(self, peer: NodeId, effects: list[Effect]) -> None:
        """Add a tree link that came up, and send the peer the stations that this station leads to."""
        if peer not in self.neighbours:
            self.neighbours.append(peer)
            self.neighbours.sort()
        behind = [station for station, via in self.by_station.items() if via != peer]
        effects.append(Send(RoutesPacket((self.node, *sorted(behind))), peer, WIRED))

    def learn(self, packet: RoutesPacket, sender: NodeId, effects: list[Effect]) -> None:
        """Add routes to new stations through the sender, pass them on, and send packets that waited for one."""
        new = [
            station for station in packet.stations if station not in self.by_station and station != self.node
        ]
        for station in new:
            self.by_station[station] = sender
        if new:
            self.flood(RoutesPacket(tuple(new)), sender, effects)
        for station in new:
            for waiting in self.unrouted.pop(station, []):
                self.forward(waiting, effects)

    def forward(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        """Send a packet one hop towards its station; it waits here if there is no route yet."""
        via = self.by_station.get(packet.to)
        if via is None:
            self.unrouted.setdefault(packet.to, []).append(packet)
        else:
            effects.append(Send(packet, via, WIRED))

    def flood(self, packet: Packet, sender: NodeId | None, effects: list[Effect]) -> None:
        """Send a packet to every neighbour except the one it came from."""
        effects += [Send(packet, peer, WIRED) for peer in self.neighbours if peer != sender]

    def count_unrouted(self) -> int:
        return sum(len(packets) for packets in self.unrouted.values())

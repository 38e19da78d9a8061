"""Which neighbour leads to which station: learned once, over the tree itself (in the paper it is static)."""

from __future__ import annotations

from precede.core.effects import WIRED, Effect, Send
from precede.core.identity import NodeId
from precede.protocols.was2021.packets import RoutedPacket, RoutesPacket


class Routes:
    """The tree as one station sees it."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.neighbours: list[NodeId] = []
        self.by_station: dict[NodeId, NodeId] = {}
        self.held: dict[NodeId, list[RoutedPacket]] = {}

    def neighbour(self, peer: NodeId, effects: list[Effect]) -> None:
        """A tree link is up: tell the peer who is behind me, and the others who is behind it."""
        if peer not in self.neighbours:
            self.neighbours.append(peer)
            self.neighbours.sort()
        behind = [station for station, via in self.by_station.items() if via != peer]
        effects.append(Send(RoutesPacket((self.node, *sorted(behind))), peer, WIRED))

    def learn(self, packet: RoutesPacket, sender: NodeId, effects: list[Effect]) -> None:
        """Stations that are new to me are reached through the sender; my other neighbours want to know."""
        new = [
            station for station in packet.stations if station not in self.by_station and station != self.node
        ]
        for station in new:
            self.by_station[station] = sender
        if new:
            effects += [
                Send(RoutesPacket(tuple(new)), peer, WIRED) for peer in self.neighbours if peer != sender
            ]
        for station in new:
            for held in self.held.pop(station, []):
                self.forward(held, effects)

    def forward(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        """One hop towards its station; a packet for one not known yet waits for its route."""
        via = self.by_station.get(packet.to)
        if via is None:
            self.held.setdefault(packet.to, []).append(packet)
        else:
            effects.append(Send(packet, via, WIRED))

    def held_packets(self) -> int:
        return sum(len(packets) for packets in self.held.values())

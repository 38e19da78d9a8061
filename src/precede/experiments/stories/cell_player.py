"""Plays scenario texts about radio cells: stations on a wired line, hosts that enter and leave their cells.

Packets wait in the air or on the wire as on all pages. A page about cells also shows who is connected, for
which hosts a station acts, and which messages it keeps, whenever one of these changes.
"""

from itertools import pairwise
from typing import Any

from precede.core.effects import RADIO, WIRED
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.messages import Packet
from precede.experiments.stories.player import Actor, Player
from precede.experiments.stories.text import ScenarioText, Step
from precede.protocols import registry


class CellPlayer(Player):
    """A player for cells. Nodes with ids below `stations` are stations."""

    def __init__(self, text: ScenarioText, entry: registry.Entry[Any] | None = None) -> None:
        self.stations = len(text.stations)
        self.cell: dict[NodeId, NodeId] = {}
        self.shown: dict[str, str] = {}
        super().__init__(text, entry)
        for pair in pairwise(range(self.stations)):
            for one, other in (pair, pair[::-1]):
                actor = self.actors[self.names[one]]
                self._carry_out(actor, actor.node.link_up(other, self._clock(actor), WIRED))
        while self.air:
            sender, to, packet = self.air.pop(0)
            self._receive(self.actors[self.names[to]], sender, packet)
        self.lines = []

    def _role(self, actor: Actor) -> str:
        return "station" if actor.id < self.stations else "host"

    def _enters(self, step: Step) -> None:
        """Let a host enter a station's cell. It first leaves its old cell, which drops packets between them."""
        host, station = self._living(step), self.actors[step.peer].id
        if host.id < self.stations or station >= self.stations:
            raise self._wrong(step, "a host enters the cell of a station")
        self._leave_cell(host)
        self.cell[host.id] = station
        self._carry_out(host, host.node.link_up(station, self._clock(host), RADIO))

    def _leave_cell(self, host: Actor) -> None:
        old = self.cell.pop(host.id, None)
        if old is not None:
            self.air = [item for item in self.air if {item[0], item[1]} != {host.id, old}]
            self._carry_out(host, host.node.link_down(old, self._clock(host), RADIO))

    def _receive(self, actor: Actor, sender: NodeId, packet: Packet) -> None:
        wired = actor.id < self.stations and sender < self.stations
        over = WIRED if wired else RADIO
        self._carry_out(actor, actor.node.receive(packet, sender, self._clock(actor), over))

    def _send(self, actor: Actor, packet: Packet, to: NodeId) -> None:
        if to == NEIGHBOURS:
            heard = [host for host, station in self.cell.items() if station == actor.id]
            self.air += [(actor.id, host, packet) for host in sorted(heard)]
        elif to < self.stations or self.cell.get(to) == actor.id:
            self.air.append((actor.id, to, packet))

    def _show_more(self, name: str, actor: Actor) -> None:
        """Show what changed: a host's connection, or the hosts and kept messages of a station."""
        node = actor.node
        if actor.id >= self.stations:
            cell = self.cell.get(actor.id)
            connected = actor.up and getattr(node, "connected", False) and cell is not None
            where = f"to {self.names[cell]}" if connected and cell is not None else "to nobody"
            self._show_change(f"{name} is connected", where, "to nobody")
            return
        hosts = [self.names[host] for host in sorted(node.acts_for())] if hasattr(node, "acts_for") else []
        self._show_change(f"{name} acts for", " ".join(hosts) or "nobody", "nobody")
        kept = [self._called(id) for id in node.kept()] if hasattr(node, "kept") else []
        self._show_change(f"{name} keeps", " ".join(kept) or "nothing", "nothing")

    def _show_change(self, what: str, now: str, first: str) -> None:
        if self.shown.get(what, first) != now:
            self.shown[what] = now
            self.lines.append(f"{what} {now}")

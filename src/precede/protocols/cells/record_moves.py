"""Hosts that join and move between proxy stations: how a record follows its host (prs1997, section 9.2).

In the papers a host waits for the end of its hand-off before it moves on; ours need not. It is served once it
connects somewhere, because a request for its record follows the record from station to station.
"""

from typing import final

from precede.core.effects import RADIO, Effect, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.protocols.cells.central_discard import CentralDiscard
from precede.protocols.cells.offers import Offers
from precede.protocols.cells.packets import (
    ProxyConnectAckPacket,
    ProxyConnectPacket,
    ProxyGetPacket,
    ProxyGivePacket,
    ProxyOvertakenPacket,
)
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.routes import Routes
from precede.protocols.cells.rule import ProxyRule


@final
class RecordMoves:
    """Admits hosts that connect, and moves a host's record to the station to which the host has moved.

    `newest` is the largest connection number known of each host, `sent_to` the station to ask for a record that
    is no longer here, `admitted` when each host joined here.
    """

    def __init__(
        self,
        node: NodeId,
        hosts: dict[NodeId, ProxyRecord],
        rule: ProxyRule,
        routes: Routes,
        offers: Offers,
        discard: CentralDiscard,
    ) -> None:
        self.node = node
        self.hosts = hosts
        self.rule = rule
        self.routes = routes
        self.offers = offers
        self.discard = discard
        self.newest: dict[NodeId, int] = {}
        self.sent_to: dict[NodeId, NodeId] = {}
        self.admitted: dict[NodeId, Instant] = {}

    def on_connect(self, packet: ProxyConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """Confirm a host that connects if this station owns its record, let it join, or request its record."""
        host = packet.host
        if packet.ses < self.newest.get(host, 0):
            return
        self.newest[host] = packet.ses
        record = self.hosts.get(host)
        if record is not None:
            record.ses = packet.ses
            if record.owner:
                record.sent_at.clear()
                self.discard.advance(host, record, packet.delivered, now, effects)
                self._confirm(host, record, now, effects)
        elif packet.previous == self.node and host not in self.sent_to:
            self._confirm(host, self._join(host, packet.ses, now, effects), now, effects)
        else:
            self.hosts[host] = self._new_record(host, packet.ses)
            holder = self.sent_to.get(host, packet.previous)
            get = ProxyGetPacket(self.node, holder, host, packet.ses, self.node, packet.delivered)
            self.routes.forward(get, effects)

    def _new_record(self, host: NodeId, ses: int) -> ProxyRecord:
        return ProxyRecord(ses, self.rule.new_order(host))

    def _join(self, host: NodeId, ses: int, now: Instant, effects: list[Effect]) -> ProxyRecord:
        """Make and own the record of a new host, and announce the host if the rule wants that.

        A host joins at the first station that it tried. If its connect packet was lost there, the request for
        its record by the host's next station makes it join.
        """
        record = self.hosts[host] = self._new_record(host, ses)
        record.owner = True
        self.admitted[host] = now
        announcement = self.rule.admit(host, record, self.offers.received)
        if announcement is not None:
            self.routes.flood(announcement, None, effects)
        return record

    def _confirm(self, host: NodeId, record: ProxyRecord, now: Instant, effects: list[Effect]) -> None:
        packet = ProxyConnectAckPacket(host, record.ses, record.accepted, record.vector())
        effects.append(Send(packet, host, RADIO, ("connect", host)))
        self.offers.offer(host, record, now, effects)

    def on_get(self, packet: ProxyGetPacket, now: Instant, effects: list[Effect]) -> None:
        """Handle a request for a record: send the record, or keep, forward or refuse the request.

        The request is kept while this station itself waits for the record. The links are first-in first-out, so
        a request that follows a record from station to station arrives after it, and ends where the record is.
        """
        record = self.hosts.get(packet.host)
        if packet.asker == self.node:
            return
        if record is None and packet.host not in self.sent_to:
            record = self._join(packet.host, packet.ses, now, effects)
        if record is None:
            self._follow(packet, effects)
        elif packet.ses < record.ses:
            self._refuse_overtaken(packet, effects)
        elif record.owner:
            self._give(packet, record, now, effects)
        elif record.request is not None and record.request.ses > packet.ses:
            self._refuse_overtaken(packet, effects)
        else:
            if record.request is not None and record.request.asker != packet.asker:
                self._refuse_overtaken(record.request, effects)
            record.request = packet

    def _follow(self, packet: ProxyGetPacket, effects: list[Effect]) -> None:
        """Forward a request to the station that got the record, unless that station is the one asking."""
        to = self.sent_to[packet.host]
        if to != packet.asker:
            get = ProxyGetPacket(self.node, to, packet.host, packet.ses, packet.asker, packet.delivered)
            self.routes.forward(get, effects)

    def _refuse_overtaken(self, packet: ProxyGetPacket, effects: list[Effect]) -> None:
        answer = ProxyOvertakenPacket(self.node, packet.asker, packet.host, packet.ses)
        self.routes.forward(answer, effects)

    def on_overtaken(self, packet: ProxyOvertakenPacket, effects: list[Effect]) -> None:
        """Stop waiting for a record: its host has a newer connection at another station.

        If the host has come back here since, request its record (its state at a station) again. Otherwise, if
        another station's request waited here, forward it to where the record is.
        """
        record = self.hosts.get(packet.host)
        if record is None or record.owner:
            return
        self.sent_to[packet.host] = packet.origin
        if record.ses > packet.ses:
            get = ProxyGetPacket(self.node, packet.origin, packet.host, record.ses, self.node)
            self.routes.forward(get, effects)
            return
        del self.hosts[packet.host]
        if record.request is not None:
            self._follow(record.request, effects)

    def _give(self, packet: ProxyGetPacket, record: ProxyRecord, now: Instant, effects: list[Effect]) -> None:
        """Add the host's last deliveries to its record, then send it to the station that requested it."""
        self.discard.advance(packet.host, record, packet.delivered, now, effects)
        del self.hosts[packet.host]
        self.newest[packet.host] = max(packet.ses, self.newest.get(packet.host, 0))
        self.sent_to[packet.host] = packet.asker
        self.routes.forward(self.rule.give(packet, record), effects)

    def on_give(self, packet: ProxyGivePacket, now: Instant, effects: list[Effect]) -> None:
        """Handle a record that arrives: own it and confirm the host, or send it on to a newer connection."""
        record = self.hosts.get(packet.host)
        if record is None:
            record = self.hosts[packet.host] = self._new_record(packet.host, packet.ses)
        record.owner = True
        record.accepted = packet.accepted
        record.recd = dict(packet.delivered)
        self.rule.take_over(packet, record)
        request, record.request = record.request, None
        if request is not None and request.ses > record.ses:
            self._give(request, record, now, effects)
            return
        if request is not None:
            self._refuse_overtaken(request, effects)
        self._confirm(packet.host, record, now, effects)

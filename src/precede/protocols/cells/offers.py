"""Messages at a proxy station, and their transmission to the hosts that may deliver them now (prs1997, 9.1)."""

from typing import Any

from precede.core.effects import RADIO, Effect, Key, Send, SetTimer
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import Instant
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.packets import MessageKey, ProxyAppPacket, ProxyDataPacket, ProxyRepeatPacket
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.rule import ProxyRule


class Offers:
    """Sends each host the next message of each initial station (where messages enter) when the rule allows.

    It sends only to hosts whose record this station owns. `received` is the last number received of each
    initial station, `stored` the messages that are not deleted yet. `queued` has, for each frame in the radio's
    queue, its target hosts, and for each host whether the frame is a retransmission.
    """

    def __init__(self, hosts: dict[NodeId, ProxyRecord], rule: ProxyRule, options: ProxyOptions) -> None:
        self.hosts = hosts
        self.rule = rule
        self.retransmit = options.retransmit
        self.per_host = options.frames == "host"
        self.received: dict[NodeId, int] = {}
        self.stored: dict[MessageKey, Any] = {}
        self.queued: dict[Key, dict[NodeId, bool]] = {}
        self.repeating = False

    def store(self, app: ProxyAppPacket, now: Instant, effects: list[Effect]) -> None:
        """Keep a new message, and offer it to the hosts whose record this station owns."""
        self.received[app.origin] = app.number
        self.stored[app.key] = app
        for host, record in self.hosts.items():
            if record.owner:
                self._offer_next(host, record, app.origin, now, effects)

    def offer(self, host: NodeId, record: ProxyRecord, now: Instant, effects: list[Effect]) -> None:
        """Offer a host the next message of each initial station, if this station owns the host's record."""
        if record.owner:
            for origin in self.received:
                self._offer_next(host, record, origin, now, effects)

    def _offer_next(
        self, host: NodeId, record: ProxyRecord, origin: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Send a host the next message of one initial station, if the host may deliver it now.

        A message that is queued or was sent within `retransmit` is not sent again.
        """
        app = self._find_next(host, record, origin)
        if app is None:
            return
        key = app.key
        again = key in record.sent_at
        if again:
            at = record.sent_at[key]
            if at is None or now - at < self.retransmit:
                return
        if not self.rule.is_ready(record, app):
            return
        record.sent_at[key] = None
        self._send(app, host, again, effects)

    def _find_next(self, host: NodeId, record: ProxyRecord, origin: NodeId) -> Any:
        """Return the next message of an initial station for a host, or None.

        Advance `recd` (h_RECD) over messages for other hosts and deleted ones (every destination has those).
        """
        number, last = max(record.recd.get(origin, 0), 0) + 1, self.received[origin]
        while number <= last:
            app = self.stored.get((origin, number))
            if app is not None and self.rule.is_for(host, app):
                return app
            record.recd[origin] = number
            number += 1
        return None

    def _send(self, app: ProxyAppPacket, host: NodeId, again: bool, effects: list[Effect]) -> None:
        """Queue a frame for a host, or add the host to the targets of the frame if that is still queued."""
        key: Key = (*app.key, host) if self.per_host else app.key
        targets = self.queued.setdefault(key, {})
        targets[host] = again or targets.get(host, False)
        kind = ProxyRepeatPacket if any(targets.values()) else ProxyDataPacket
        packet = kind(app.origin, app.number, app.message, tuple(targets))
        effects.append(Send(packet, host if self.per_host else NEIGHBOURS, RADIO, key))

    def sent(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """Record when a frame left the radio's queue: its retransmission is due `retransmit` after that."""
        if key not in self.queued or not isinstance(key, tuple):
            return
        message = (int(key[0]), int(key[1]))
        for host in self.queued.pop(key):
            record = self.hosts.get(host)
            if record is not None and message in record.sent_at:
                record.sent_at[message] = now
        self.arm(now, effects)

    def repeat(self, now: Instant, effects: list[Effect]) -> None:
        """Handle the retransmission timer: offer every host its next messages; set the timer if some wait."""
        self.repeating = False
        for host, record in self.hosts.items():
            self.offer(host, record, now, effects)
        if any(record.sent_at for record in self.hosts.values()):
            self.arm(now, effects)

    def arm(self, now: Instant, effects: list[Effect]) -> None:
        if not self.repeating:
            self.repeating = True
            effects.append(SetTimer("repeat", now + self.retransmit))

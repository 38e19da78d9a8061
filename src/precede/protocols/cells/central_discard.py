"""Acknowledge and Delete: when all stations may delete a message (prs1997, section 9).

The initial station of a message is the one its sender was connected to. Once all destinations have acknowledged
the message there, it tells all stations to delete it.
"""

from typing import Any, final

from precede.core.effects import Effect, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.protocols.cells.packets import MessageKey, ProxyAcksPacket, ProxyDeletePacket, Vector
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.routes import Routes
from precede.protocols.cells.rule import ProxyRule


@final
class CentralDiscard:
    """Sends hosts' acknowledgements to initial stations, and Delete for messages that began here.

    Both are collected for `batch_duration`. `acks` holds, for each initial station, the last of its messages
    that each host has acknowledged since the last batch. `stored` are the messages kept at this station.
    `postponed` are those of them that are deleted elsewhere, and that a host here was sent and has not
    acknowledged: a host that joined lately, which their initial station did not know of.
    """

    def __init__(
        self,
        node: NodeId,
        hosts: dict[NodeId, ProxyRecord],
        rule: ProxyRule,
        routes: Routes,
        stored: dict[MessageKey, Any],
        batch_duration: Duration,
    ) -> None:
        self.node = node
        self.hosts = hosts
        self.rule = rule
        self.routes = routes
        self.stored = stored
        self.postponed: dict[MessageKey, None] = {}
        self.batch_duration = batch_duration
        self.acks: dict[NodeId, dict[NodeId, int]] = {}
        self.batching: bool = False

    def advance(
        self, host: NodeId, record: ProxyRecord, delivered: Vector, now: Instant, effects: list[Effect]
    ) -> None:
        """Record in `recd` (h_RECD) what a host delivered, and add to the next batch of acknowledgements."""
        for origin, number in delivered:
            if number <= record.recd.get(origin, 0):
                continue
            app = self.stored.get((origin, number))
            if app is not None:
                self.rule.deliver(record, app)
            record.recd[origin] = number
            if origin == self.node:
                self.acknowledge(host, number, now, effects)
            else:
                self.acks.setdefault(origin, {})[host] = number
        recd = record.recd
        record.sent_at = {key: at for key, at in record.sent_at.items() if key[1] > recd.get(key[0], 0)}
        if self.acks:
            self._arm(now, effects)

    def acknowledge(self, host: NodeId, number: int, now: Instant, effects: list[Effect]) -> None:
        if self.rule.acknowledge(host, number):
            self._arm(now, effects)

    def _arm(self, now: Instant, effects: list[Effect]) -> None:
        if not self.batching:
            self.batching = True
            effects.append(SetTimer("batch", now + self.batch_duration))

    def send_batch(self, effects: list[Effect]) -> None:
        """Send one packet of acknowledgements to each initial station, and one Delete to all stations."""
        self.batching = False
        for station, acks in self.acks.items():
            packet = ProxyAcksPacket(self.node, station, 0, 0, tuple(acks.items()))
            self.routes.forward(packet, effects)
        self.acks.clear()
        delete = tuple(self.rule.take_deletable())
        if delete:
            self.routes.flood(ProxyDeletePacket(delete), None, effects)
            self.delete(delete)

    def delete(self, keys: tuple[MessageKey, ...]) -> None:
        """Delete(M): remove from `stored` these messages, which every destination has delivered."""
        for key in keys:
            if self._is_under_way(key):
                self.postponed[key] = None
            else:
                self.stored.pop(key, None)

    def delete_postponed(self) -> None:
        """Delete the messages that were needed for hosts which have acknowledged them or are gone."""
        for key in [key for key in self.postponed if not self._is_under_way(key)]:
            del self.postponed[key]
            self.stored.pop(key, None)

    def _is_under_way(self, key: MessageKey) -> bool:
        """May a host here still deliver the message? Later ones must not be sent to it before it did."""
        return any(key in record.sent_at for record in self.hosts.values())

"""Figure 3 of drift2006 line by line, with the duplicate test of section 4.4: the oracle of our tests.

The option `repairs` switches on each of the repairs D1 to D4 alone. Without any this is the paper, which needs
a network that neither loses nor reorders packets. D5 is how the paper removes a crashed source (section 7): a
survivor TO-multicasts the removal. No option here makes that work (see `precede.protocols.drift2006.views`).
The option `misread` switches on wrong readings of the figure that fail with two nodes already:

own_late      a node processes its own message when it first hears it back, not at once
deaf          a node ignores the virtual-flooding data of duplicates
unheard_safe  a node does not wait for a source it has never heard of
overtaking    a node uses an entry of Seen although it lacks some of the messages before it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Struct

from precede.core.effects import (
    NOTHING,
    RADIO,
    Accept,
    Arrive,
    Deliver,
    Effect,
    Effects,
    Key,
    Medium,
    Send,
    SetTimer,
)
from precede.core.errors import BadInput, Refused
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Waiting
from precede.protocols.floods.options import parse_node_ids
from precede.protocols.options import duration, option
from precede.protocols.registry import Entry

SeenEntry: TypeAlias = tuple[NodeId, int, int]
"""<source, sequence number, timestamp>: an element of Seen."""

REPAIRS: Final = ("D1", "D2", "D3", "D4")
MISREADINGS: Final = ("own_late", "deaf", "unheard_safe", "overtaking")
_CHECK: Final[Key] = "check"


class PrintedPacket(Packet, frozen=True, gc=False):
    """<m, q, qsn, qts, qSeen> of Figure 3; `removes` names a crashed source (section 7)."""

    kind: ClassVar[str] = "drift_printed"
    message: Message | None
    source: NodeId
    number: int
    timestamp: int
    seen: tuple[SeenEntry, ...]
    removes: NodeId | None = None
    size_bytes: int = 0
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0


class RequestPacket(Packet, frozen=True, gc=False):
    """Requests the messages of one source that the sender lacks (the repair D4)."""

    kind: ClassVar[str] = "drift_request"
    source: NodeId
    numbers: tuple[int, ...]
    size_bytes: int = 32
    control_bytes: int = 32
    control_entries: int = 1
    messages: int = 0


class PrintedOptions(Struct, frozen=True, kw_only=True):
    sources: Annotated[str, option("which members are sources")] = "all"
    destinations: Annotated[str, option("which nodes deliver")] = "all"
    suspect_after: Annotated[
        Duration, duration("remove a source that is missing for this long, as section 7 does")
    ] = 0
    repairs: Annotated[str, option("which of the repairs D1 D2 D3 D4 are on")] = ""
    misread: Annotated[str, option("which of own_late deaf unheard_safe overtaking are on")] = ""


class LiteralDrift(Node):
    """A node that runs Figure 3; its attributes have the names of the figure."""

    draining: ClassVar[tuple[str, ...]] = ("pending", "early")

    def __init__(self, role: str, context: Context[PrintedOptions]) -> None:
        options = context.options
        self.me, self.incarnation = context.node, context.incarnation
        self.repairs = _words(options.repairs, REPAIRS, "repairs")
        self.misread = _words(options.misread, MISREADINGS, "misread")
        sources, destinations = parse_node_ids(options.sources), parse_node_ids(options.destinations)
        self.sigma = [node for node in context.members if sources is None or node in sources]
        self.source = role in ("node", "source") and self.me in self.sigma
        self.destination = role in ("node", "destination") and (destinations is None or self.me in destinations)
        self.lc = self.sn = 0
        self.rcvd: dict[tuple[NodeId, int], PrintedPacket] = {}
        self.seen: dict[tuple[NodeId, int], int] = {}
        self.rcvd_sn: dict[NodeId, int] = dict.fromkeys(self.sigma, 0)
        self.early: dict[tuple[NodeId, int], PrintedPacket] = {}
        self.kept: dict[tuple[NodeId, int], PrintedPacket] = {}
        self.requested: dict[tuple[NodeId, int], None] = {}
        self.since: Instant = 0
        self.removing: dict[NodeId, None] = {}
        self._suspect_after: Duration = options.suspect_after

    # -- TO-multicast(m) ---------------------------------------------------------------------------------

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None or not self.source:
            raise Refused("only sources broadcast, and to all")
        message = Message(MessageId(self.me, self.incarnation, self.sn + 1), payload)
        effects: list[Effect] = [Accept(message)]
        self._multicast(message, None, now, effects)
        return effects

    def _multicast(
        self, message: Message | None, removes: NodeId | None, now: Instant, effects: list[Effect]
    ) -> None:
        self.lc += 1
        self.sn += 1
        self._see(self.me, self.sn, self.lc)
        packet = PrintedPacket(message, self.me, self.sn, self.lc, (), removes)
        if "own_late" not in self.misread:
            self._process(packet, now, effects)
        self._flood(packet, effects)
        self._deliver(now, effects)

    # -- receive(qm, q, qsn, qts, qSeen) -------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if isinstance(packet, RequestPacket):
            for number in packet.numbers:
                if (packet.source, number) in self.kept:
                    self._flood(self.kept[packet.source, number], effects)
            return effects
        if not isinstance(packet, PrintedPacket):
            return NOTHING
        first = self._is_new(packet)
        if first or "deaf" not in self.misread:
            for entry in packet.seen:
                self._see(*entry)
        if first:
            if packet.message is not None and packet.source != self.me:
                effects.append(Arrive((packet.message,)))
            self._take(packet, now, effects)
            self._flood(packet, effects)
        if "D4" in self.repairs:
            self._request(effects)
        self._deliver(now, effects)
        return effects

    def _is_new(self, packet: PrintedPacket) -> bool:
        """Section 4.4: `RcvdSN[q] = qsn` is a duplicate. D3: so is every lower number."""
        received = self.rcvd_sn[packet.source]
        if (packet.source, packet.number) in self.early:
            return False
        return packet.number > received if "D3" in self.repairs else packet.number != received

    def _take(self, packet: PrintedPacket, now: Instant, effects: list[Effect]) -> None:
        """Process a first copy; with D1, only when every earlier message of its source is here."""
        source = packet.source
        if "D1" not in self.repairs:
            self._process(packet, now, effects)
            return
        self.early[source, packet.number] = packet
        while (ready := self.early.pop((source, self.rcvd_sn[source] + 1), None)) is not None:
            self._process(ready, now, effects)

    def _process(self, packet: PrintedPacket, now: Instant, effects: list[Effect]) -> None:
        """`rcpt processing` of Figure 3."""
        if not self.rcvd:
            self.since = now
            if self._suspect_after and self.source:
                effects.append(SetTimer(_CHECK, now + self._suspect_after))
        self.rcvd[packet.source, packet.number] = packet
        if self.source and packet.source != self.me:
            self.lc = max(self.lc, packet.timestamp) + 1
            self._see(self.me, self.sn, self.lc)
        if "D2" in self.repairs:
            self._see(packet.source, packet.number, packet.timestamp)
        self.rcvd_sn[packet.source] = packet.number

    def _flood(self, packet: PrintedPacket, effects: list[Effect]) -> None:
        """Broadcast a packet with getHighestTimestamp(Seen) attached."""
        highest: dict[NodeId, SeenEntry] = {}
        for (source, number), timestamp in self.seen.items():
            if source not in highest or timestamp > highest[source][2]:
                highest[source] = (source, number, timestamp)
        seen = tuple(highest[source] for source in sorted(highest))
        payload = 0 if packet.message is None else len(packet.message.payload)
        control = 20 + 12 * len(seen)
        carried = PrintedPacket(
            packet.message,
            packet.source,
            packet.number,
            packet.timestamp,
            seen,
            packet.removes,
            control + payload,
            control,
            len(seen),
            int(packet.message is not None),
        )
        self.kept[packet.source, packet.number] = carried
        effects.append(Send(carried, NEIGHBOURS, RADIO))

    def _see(self, source: NodeId, number: int, timestamp: int) -> None:
        """Keep the highest timestamp for each source and number, which is enough (section 4.4)."""
        if timestamp > self.seen.get((source, number), -1):
            self.seen[source, number] = timestamp

    def _request(self, effects: list[Effect]) -> None:
        """D4: request every number that is missing below the highest known one, once."""
        numbers = [*self.seen, *self.early]
        for source in self.sigma:
            last = max((number for other, number in numbers if other == source), default=0)
            missing = tuple(
                number
                for number in range(self.rcvd_sn[source] + 1, last + 1)
                if (source, number) not in self.early and (source, number) not in self.requested
            )
            if missing and source != self.me:
                self.requested.update(dict.fromkeys((source, number) for number in missing))
                effects.append(Send(RequestPacket(source, missing), NEIGHBOURS, RADIO))

    # -- delivery ----------------------------------------------------------------------------------------

    def _deliver(self, now: Instant, effects: list[Effect]) -> None:
        ready = [packet for packet in self.rcvd.values() if self._is_ready(packet.timestamp)]
        for packet in sorted(ready, key=lambda packet: (packet.timestamp, packet.source, packet.number)):
            del self.rcvd[packet.source, packet.number]
            self.since = now
            if packet.message is not None and self.destination:
                effects.append(Deliver(packet.message))
            if packet.removes in self.sigma:
                self.sigma.remove(packet.removes)

    def _is_ready(self, timestamp: int) -> bool:
        return all(self._clock(source) >= timestamp for source in self.sigma)

    def _clock(self, source: NodeId) -> int:
        """The highest `its` with RcvdSN[i] = isn, or -1 when Seen has none."""
        if "unheard_safe" in self.misread and not any(other == source for other, _ in self.seen):
            return 1 << 60
        if "overtaking" in self.misread or (source == self.me and "own_late" in self.misread):
            return max((at for (other, _), at in self.seen.items() if other == source), default=-1)
        return self.seen.get((source, self.rcvd_sn[source]), -1)

    # -- section 7 ---------------------------------------------------------------------------------------

    def timer(self, key: Key, now: Instant) -> Effects:
        """When a message has waited too long, TO-multicast the removal of the sources it waits for."""
        effects: list[Effect] = []
        if self.rcvd and now - self.since >= self._suspect_after:
            lowest = min(packet.timestamp for packet in self.rcvd.values())
            for source in [one for one in self.sigma if self._clock(one) < lowest]:
                if source not in self.removing and source != self.me:
                    self.removing[source] = None
                    self._multicast(None, source, now, effects)
        if self.rcvd:
            effects.append(SetTimer(_CHECK, now + self._suspect_after))
        return effects

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(packet.message.id, (), self.since)
            for packet in self.rcvd.values()
            if packet.message is not None
        ]

    def sizes(self) -> Mapping[str, int]:
        return {"pending": len(self.rcvd), "early": len(self.early), "seen": len(self.seen)}


def _words(text: str, choices: Sequence[str], option: str) -> tuple[str, ...]:
    """The words of an option's text; each must be one of the choices."""
    words = tuple(text.split())
    for word in words:
        if word not in choices:
            raise BadInput(f"option {option!r}: {word!r} is none of {', '.join(choices)}")
    return words


ENTRY: Final = Entry(
    name="drift_as_printed",
    title="Figure 3 as printed, errors included",
    paper="drift2006",
    order="total",
    worlds=("flood",),
    options=PrintedOptions,
    build=LiteralDrift,
    packets=(PrintedPacket, RequestPacket),
)
"""Plays the pages in `printed/`, which name the protocol `drift_as_printed`."""

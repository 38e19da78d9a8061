"""`Vertex`: a VCube node that writes rows and sends packets itself, instead of returning effects.

It inherits from `VCubeNode` what it knows, holds and lacks (vcube2018, Algorithm 2), and says again, in the
same order, what then happens: a row, or a packet to a child.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from precede.core.effects import Effect
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.node import Context
from precede.experiments.plain_vcube.output import AGGREGATES, Output
from precede.protocols.vcube2018.awaited import Awaited, Held, Pending
from precede.protocols.vcube2018.forwarding import NOBODY, ROOT, cluster_of
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import HEADER_BYTES, Prepared, Slot
from precede.protocols.vcube2018.sources import SourceSet
from precede.sim.networks.network import Flight


@final
class Vertex(VCubeNode):
    """A node of a plain VCube run. `born` is the message it has just broadcast, until it is sent.

    `_row` is the set in `_delivered` of the sources that lack the message with `_row_number`, which was looked
    at last. `_passed` counts messages that were removed from it and are not in `_delivered.counted` yet. They
    spare a packet three cache lines.
    """

    def __init__(self, context: Context[VCubeOptions]) -> None:
        super().__init__(context)
        self.born: StampedMessage | None = None
        self._output: Output | None = None
        self._flight: Flight | None = None
        self._row: SourceSet | None = None
        self._row_number = 0
        self._passed = 0

    def join(self, output: Output, flight: Flight | None) -> None:
        self._output = output
        self._flight = flight

    # -- CO_BROADCAST ------------------------------------------------------------------------------------

    def _stamp(self, payload: bytes, now: Instant) -> StampedMessage:
        self._delivered.counted += self._passed
        self._passed = self._row_number = 0
        return super()._stamp(payload, now)

    def _send_own(self, stamped: StampedMessage, effects: list[Effect]) -> None:
        """Keep an own message until the effects of its broadcast are carried out: then `send_born` sends it."""
        self.born = stamped

    def send_born(self) -> None:
        stamped, self.born = self.born, None
        output = self._output
        if stamped is None or output is None:
            return
        message = output.number(stamped)
        if self._single_tree and self._me != ROOT:
            output.send(self._me, self._flight, message, ROOT)
        else:
            self._send(output, message, self._clusters)

    # -- upon receive --------------------------------------------------------------------------------------

    def take_packet(self, output: Output, content: i64, sender: NodeId) -> None:
        """Process the messages of a packet, one at a time, as `VCubeNode.receive` does."""
        below = self._root_height if self._single_tree else cluster_of(self._me, sender) - 1
        below = min(below, self._clusters)
        if content < AGGREGATES:
            self._take_message(output, output.messages[content], below)
            return
        messages = output.take_aggregate(content)
        if self._causal_unpacking:
            messages = sorted(messages, key=_by_past)
        for message in messages:
            self._take_message(output, message, below)

    def _take_message(self, output: Output, message: Prepared, below: int) -> None:
        awaited = self._awaited.get(message.slot) if self._awaited else None
        if (awaited is not None and awaited.held is not None) or not self._passes_row(message):
            self._take_slowly(output, message, awaited, below)
            return
        if below == 0:
            output.received_and_delivered(self._me, message)
        else:
            output.received(self._me, message)
            self._send(output, message, below)
            output.delivered(self._me, message)
        if awaited is not None and awaited.lacking is not None:
            self._deliver_waiting(output, message.slot)

    def _passes_row(self, message: Prepared) -> bool:
        """Do what `Progress.passes` does, unless a message is early."""
        if self._some_early:
            return False
        needs = message.needs
        if needs is None:
            return self._delivered.passes(message)
        if message.number != self._row_number:
            at = message.number - self._delivered.first
            if not 0 <= at < len(self._delivered.lacking):
                return False
            self._row = self._delivered.lacking[at]
            self._row_number = message.number
        row = self._row
        if row is None or not row.take(message.source, needs):
            return False
        self._passed += 1
        return True

    def _take_slowly(self, output: Output, message: Prepared, awaited: Awaited | None, below: int) -> None:
        """Do what `VCubeNode._take_in` does with a message that waits, or that others wait for."""
        source, number = message.source, message.number
        if self._delivered.has(number, source) or message.slot in self._pending:
            if self._single_tree and source == self._me:
                self._send(output, message, below)
            return
        output.received(self._me, message)
        covered = self._cover(message, number == 1 or self._delivered.has(number - 1, source))
        under = self._delivered.lacked(message.rows)
        if below or self._held_from:
            may_release = len(covered) > 1 or (awaited is not None and awaited.held is not None)
            self._pass_on(output, message, below, under != 0, covered if may_release else None)
        if under:
            pending = Pending(output.stamped[message.serial], message, output.now)
            self._pending[message.slot] = pending
            self._await(under).lack(pending)
            return
        self._advance(message)
        output.delivered(self._me, message)
        if awaited is not None and awaited.lacking is not None:
            self._deliver_waiting(output, message.slot)

    def _advance(self, message: Prepared) -> None:
        """Count a message that was received before its turn as delivered."""
        self._delivered.advance(message)
        self._ahead.remove(message.number, message.source)
        if message.number != self._row_number:
            self._row_number = 0  # the rows of `_delivered` may have moved

    # -- CHECKAGG ------------------------------------------------------------------------------------------

    def _send(self, output: Output, message: Prepared, below: int) -> None:
        """Send a message to the children of the first `below` clusters."""
        for t in range(below):
            child = self._child(t)
            if child != NOBODY:
                output.send(self._me, self._flight, message, child)

    def _pass_on(
        self, output: Output, message: Prepared, below: int, may_hold: bool, covered: list[Slot] | None
    ) -> None:
        """Do what `Forwarding._forward` does. `covered` is None if no held message can wait for it."""
        if not self._aggregates:
            self._send(output, message, below)
            return
        self._holds = order = self._holds + 1
        held = 0
        if may_hold and below:
            held = self._hold_from_all(output.stamped[message.serial], message, below, order)
        released = self._release(covered) if covered is not None and self._held_from else None
        if released is None and held == 0:
            self._send(output, message, below)
            return
        for t in range(below):
            itself = None if held >> t & 1 else message
            free = released.get(t) if released is not None else None
            if free is not None:
                self._send_together(output, t, free, itself)
            elif itself is not None and (child := self._child(t)) != NOBODY:
                output.send(self._me, self._flight, itself, child)
        if released is not None:
            for t, free in released.items():
                if t >= below:
                    self._send_together(output, t, free, None)

    def _send_together(self, output: Output, t: int, free: list[Held], itself: Prepared | None) -> None:
        """Send the child of cluster t + 1 its released messages in order of reception, then `itself`.

        Packets are filled as `packets_of` fills them.
        """
        child = self._child(t)
        if child == NOBODY:
            return
        if len(free) > 1:
            free.sort(key=_by_reception)
        messages = [held.message for held in free]
        if itself is not None:
            messages.append(itself)
        filling: list[Prepared] = []
        size = HEADER_BYTES
        for message in messages:
            if filling and size + message.size_bytes > self._mtu:
                output.send_aggregate(self._me, self._flight, filling, child)
                filling, size = [], HEADER_BYTES
            filling.append(message)
            size += message.size_bytes
        output.send_aggregate(self._me, self._flight, filling, child)

    # -- CHECKDELIVERY -------------------------------------------------------------------------------------

    def _deliver_waiting(self, output: Output, slot: Slot) -> None:
        """Do what `VCubeNode._deliver_next` does after the delivery of one message."""
        arrived = [slot]
        while arrived:
            for pending in self._lacking_for(arrived.pop()):
                message: Prepared = pending.message
                under = self._delivered.lacked(message.rows)
                if under:
                    self._await(under).lack(pending)
                    continue
                output.delivered(self._me, message)
                del self._pending[message.slot]
                self._advance(message)
                arrived.append(message.slot)


def _by_past(message: Prepared) -> int:
    return message.past


def _by_reception(held: Held) -> int:
    return held.order

"""`Vertex`: a VCube node that writes rows and sends packets itself, instead of returning effects.

It inherits from `VCubeNode` what it knows of each source (vcube2018, Algorithm 2), keeps what waits in machine
words (`index`), and says again, in the same order, what then happens: a row, or a packet to a child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from mypy_extensions import i64

from precede.core.effects import Effect
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.node import Context, Waiting
from precede.experiments.plain_vcube.index import Index
from precede.experiments.plain_vcube.output import AGGREGATES, CHILD_BITS, LOWEST_SERIAL, SERIAL_BITS, Output
from precede.protocols.vcube2018.forwarding import NOBODY, ROOT, cluster_of
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import HEADER_BYTES, SOURCE_BITS, Prepared, id_of, slot_of
from precede.protocols.vcube2018.sources import SourceSet
from precede.sim.flight import Flight

_ONE_NUMBER: Final = 1 << SOURCE_BITS
"""The difference between the slots of a message and the one before it of the same source."""


@final
class Vertex(VCubeNode):
    """A node of a plain VCube run. `born` is the message it has just broadcast, until it is sent.

    `_row` is the set in `_delivered` of the sources that lack the message with `_row_number`, which was looked
    at last. `_passed` counts messages that were removed from it and are not in `_delivered.counted` yet. They
    spare a packet three cache lines.

    An entry of `_index` is a message's rank by order of reception (`_order`) and its serial number.
    """

    def __init__(self, context: Context[VCubeOptions]) -> None:
        super().__init__(context)
        self.born: StampedMessage | None = None
        self._output: Output | None = None
        self._flight: Flight | None = None
        self._row: SourceSet | None = None
        self._row_number = 0
        self._passed = 0
        self._index = Index()
        self._order: i64 = 0

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
        index = self._index
        at = index.find(_slot(message))
        if (at >= 0 and index.is_held_for(at)) or not self._passes_row(message):
            self._take_slowly(output, message, at, below)
            return
        if below == 0:
            output.received_and_delivered(self._me, message)
        else:
            output.received(self._me, message)
            self._send(output, message, below)
            output.delivered(self._me, message)
        if at >= 0 and index.is_lacked(at):
            self._deliver_waiting(output, _slot(message))

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

    def _take_slowly(self, output: Output, message: Prepared, at: i64, below: int) -> None:
        """Do what `VCubeNode._take_in` does with a message that waits, or that others wait for.

        `at` is where its row in the index begins, or -1.
        """
        source, number = message.source, message.number
        if self._delivered.has(number, source) or self._is_pending(number, source):
            if self._single_tree and source == self._me:
                self._send(output, message, below)
            return
        output.received(self._me, message)
        index = self._index
        covered = self._covered(number, source)
        under = self._delivered.lacked(message.rows)
        if below or index.held:
            may_release = covered > 1 or (at >= 0 and index.is_held_for(at))
            self._pass_on(output, message, below, under != 0, covered if may_release else 0)
        if under:
            index.pending += 1
            self._order += 1
            index.lack(under, index.new(self._order << SERIAL_BITS | message.serial, output.now))
            return
        self._advance(message)
        output.delivered(self._me, message)
        self._deliver_waiting(output, _slot(message))

    def _is_pending(self, number: int, source: NodeId) -> bool:
        """True if a message was received and is not delivered."""
        ahead = self._ahead.of(number)
        if ahead is not None and ahead.has(source):
            return True
        return self._some_early and slot_of(source, number) in self._early

    def _covered(self, number: int, source: NodeId) -> int:
        """Do what `VCubeNode._cover` does. Return how many messages it covers, from this one on."""
        if number > 1 and not self._delivered.has(number - 1, source):
            before = self._ahead.of(number - 1)
            if before is None or not before.has(source):
                self._early[slot_of(source, number)] = self._some_early = True
                return 0
        self._ahead.add(number, source)
        covered = 1
        while self._some_early and self._early.pop(slot_of(source, number + covered), False):
            self._ahead.add(number + covered, source)
            covered += 1
            self._some_early = len(self._early) > 0
        return covered

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

    def _pass_on(self, output: Output, message: Prepared, below: int, may_hold: bool, covered: int) -> None:
        """Do what `Forwarding._forward` does. `covered` is 0 if no held message can wait for this one."""
        if not self._aggregates:
            self._send(output, message, below)
            return
        held: i64 = 0
        if may_hold and below:
            held = self._hold(message, below)
        released = output.released
        if covered and self._index.held:
            self._release_all(output, message, covered)
        if not released.children and held == 0:
            self._send(output, message, below)
            return
        for t in range(below):
            is_held = held >> t & 1 != 0
            if released.children and released.has(t):
                self._send_together(output, t, None if is_held else message)
            elif not is_held and (child := self._child(t)) != NOBODY:
                output.send(self._me, self._flight, message, child)
        while released.children:
            self._send_together(output, released.children[0], None)

    def _hold(self, message: Prepared, below: int) -> i64:
        """Do what `Forwarding._hold_from_all` does."""
        index = self._index
        self._order += 1
        content: i64 = self._order << SERIAL_BITS | message.serial
        before: i64 = 0
        if message.number > 1:
            before = index.held_from(_slot(message) - _ONE_NUMBER)
        held: i64 = 0
        for t in range(below):
            under: i64 = self._missing.one_of(message.rows, self._shares[t])
            if under == 0:
                if before == 0:
                    break
                if before >> t & 1 == 0:
                    continue
                under = _slot(message) - _ONE_NUMBER
            index.hold(under, index.new(content, t))
            index.held += 1
            held |= _bit(t)
        if held != 0:
            index.change_held_from(_slot(message), held)
        return held

    def _release_all(self, output: Output, message: Prepared, covered: int) -> None:
        """Do what `Forwarding._release` does: sort the messages that are no longer held to their children."""
        arrived = output.arrived
        slot = _slot(message)
        for _ in range(covered):
            arrived.push(slot << CHILD_BITS)
            slot += _ONE_NUMBER
        while arrived.count != 0:
            word = arrived.pop()
            self._release_held(output, word >> CHILD_BITS, (word & (1 << CHILD_BITS) - 1) - 1)

    def _release_held(self, output: Output, under: i64, only: i64) -> None:
        """Release the messages that are held for this one, from the child `only` or, if -1, from any child."""
        index = self._index
        entry = index.take_held(under)
        while entry != 0:
            following = index.following(entry)
            t = index.detail(entry)
            message = output.messages[index.content(entry) & LOWEST_SERIAL]
            still: i64 = under
            if only in (-1, t):
                still = self._missing.one_of(message.rows, self._shares[t])
                if still == 0 and message.number > 1:
                    before = _slot(message) - _ONE_NUMBER
                    if index.held_from(before) >> t & 1 != 0:
                        still = before
            if still != 0:
                index.hold(still, entry)
            else:
                index.held -= 1
                index.change_held_from(_slot(message), _bit(t))
                output.released.add(t, index.content(entry))
                index.forget(entry)
                at = index.find(_slot(message))
                if at >= 0 and index.is_held_for(at):
                    output.arrived.push(_slot(message) << CHILD_BITS | (t + 1))
            entry = following

    def _send_together(self, output: Output, t: int, itself: Prepared | None) -> None:
        """Send the child of cluster t + 1 its released messages in order of reception, then `itself`.

        Packets are filled as `packets_of` fills them.
        """
        free = output.released.take(t)
        child = self._child(t)
        if child == NOBODY:
            return
        if len(free) > 1:
            free.sort()
        messages = [output.messages[content & LOWEST_SERIAL] for content in free]
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

    def _deliver_waiting(self, output: Output, slot: i64) -> None:
        """Do what `VCubeNode._deliver_next` does after the delivery of one message."""
        index, arrived = self._index, output.arrived
        arrived.push(slot)
        while arrived.count != 0:
            entry = index.take_lacking(arrived.pop())
            while entry != 0:
                following = index.following(entry)
                message = output.messages[index.content(entry) & LOWEST_SERIAL]
                under: i64 = self._delivered.lacked(message.rows)
                if under != 0:
                    index.lack(under, entry)
                else:
                    index.forget(entry)
                    index.pending -= 1
                    output.delivered(self._me, message)
                    self._advance(message)
                    arrived.push(_slot(message))
                entry = following

    # -- read-only -----------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        output = self._output
        assert output is not None
        pending = [
            (output.messages[content & LOWEST_SERIAL], since) for content, since in self._index.all_pending()
        ]
        return [Waiting(id_of(one.slot), self._all_lacking(one), since) for one, since in pending]

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": self._index.pending,
            "held": self._index.held,
            "vector_entries": self._positions,
        }


def _slot(message: Prepared) -> i64:
    """Return the slot of a message as a machine word."""
    source: i64 = message.source
    return i64(message.number) << SOURCE_BITS | source


def _bit(t: i64) -> i64:
    return _shifted(1, t)


def _shifted(word: i64, bits: i64) -> i64:
    """Shift a word left. mypyc shifts parameters as words of 64 bits, constants as words of 32."""
    return word << bits


def _by_past(message: Prepared) -> int:
    return message.past

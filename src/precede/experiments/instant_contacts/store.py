"""The messages that a node carries, and parcels of messages on their way."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.experiments.instant_contacts.random_order import by_rank, drawn
from precede.protocols.layered.epidemic.cache import ExpiringBatch
from precede.protocols.layered.epidemic.packets import HEADER_BYTES, ID_BYTES
from precede.protocols.layered.epidemic.transfer_order import TransferOrder, arranged
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, ParsedEnvelope


@final
class Parcel:
    """The messages of one packet, as bits, and its sizes.

    If they are a whole cache, they are those among the first `length` of a log that are alive `at` an instant:
    the batch is made only for a receiver that lacks some of them. Only then are they arranged by their ranks,
    too. Random ranks are drawn when the packet is sent: what the generator draws next depends on it.
    """

    __slots__ = (
        "_at",
        "_batch",
        "_length",
        "_log",
        "_order",
        "_ranks",
        "bits",
        "control_bytes",
        "control_entries",
        "count",
        "size_bytes",
    )

    def __init__(
        self, bits: int, count: int, payload_bytes: int, control_bytes: int, control_entries: int
    ) -> None:
        self.bits = bits
        self.count = count
        self.control_bytes = control_bytes + HEADER_BYTES + ID_BYTES * count
        self.control_entries = control_entries
        self.size_bytes = payload_bytes + self.control_bytes
        self._batch: Batch | None = None
        self._log: list[ParsedEnvelope] = []
        self._length = 0
        self._at: Instant = 0
        self._order: TransferOrder | None = None
        self._ranks: int = 0

    def batch(self) -> Batch:
        batch = self._batch
        if batch is None:
            log, at = self._log, self._at
            if self._length == self.count:
                batch = Batch(log[: self._length])
            else:
                batch = Batch([parsed for parsed in log[: self._length] if parsed.deadline > at])
            self._log = []
            self._batch = batch
        if self._order is not None:
            if self._order.is_random:
                batch = batch.reordered(by_rank(self._ranks, self.count))
            else:
                batch = arranged(batch, self._order.ranks(batch))
            self._batch = batch
            self._order, self._ranks = None, 0
        return batch

    def arrange(self, order: TransferOrder) -> None:
        """Let the messages go in this order."""
        if not order.is_received:
            self._order = order
            if order.is_random:
                self._ranks = drawn(order.generator, self.count)

    def fill(self, batch: Batch) -> None:
        self._batch = batch

    def fill_from(self, log: list[ParsedEnvelope], at: Instant) -> None:
        self._log, self._length, self._at = log, len(log), at


def parcel_of(batch: Batch, bits: int) -> Parcel:
    parcel = Parcel(bits, len(batch.ids), batch.payload_bytes, batch.control_bytes, batch.control_entries)
    parcel.fill(batch)
    return parcel


@final
class Store:
    """The messages that a node holds: `bits` by their serial numbers, and a log in order of reception.

    Bit n stands for the message with serial number n + the base of the world. The log may also have messages
    that have expired. The other fields are sums over the messages held.
    """

    __slots__ = (
        "_control_bytes",
        "_control_entries",
        "_deadlines",
        "_log",
        "_pushed",
        "bits",
        "count",
        "payload_bytes",
    )

    def __init__(self) -> None:
        self.bits = 0
        self.count = 0
        self.payload_bytes = 0
        self._control_bytes = 0
        self._control_entries = 0
        self._log: list[ParsedEnvelope] = []
        self._deadlines: list[tuple[Instant, int, ExpiringBatch]] = []
        self._pushed = 0

    def add(self, batch: Batch, bits: int) -> None:
        """Add a batch of messages, none of which is held."""
        self.bits |= bits
        self.count += len(batch.ids)
        self.payload_bytes += batch.payload_bytes
        self._control_bytes += batch.control_bytes
        self._control_entries += batch.control_entries
        self._log.extend(batch.contents)
        if batch.first_deadline != NEVER:
            self._pushed += 1
            heappush(self._deadlines, (batch.first_deadline, self._pushed, ExpiringBatch(batch)))

    def first_deadline(self) -> Instant:
        return self._deadlines[0][0] if self._deadlines else NEVER

    def ids(self, now: Instant) -> set[MessageId]:
        """Return the ids of all messages that are alive: those held, after `take_expired`."""
        return {parsed.id for parsed in self._log if parsed.deadline > now}

    def take_expired(self, now: Instant, base: int) -> list[ParsedEnvelope]:
        """Remove and return the messages whose deadline has passed, in the order of `Cache.expired`."""
        expired: list[ParsedEnvelope] = []
        deadlines, bits = self._deadlines, self.bits
        while deadlines and deadlines[0][0] <= now:
            _, pushed, expiring = heappop(deadlines)
            expiring.take_expired(now, expired)
            if expiring.first_deadline != NEVER:
                heappush(deadlines, (expiring.first_deadline, pushed, expiring))
        for parsed in expired:
            if parsed.serial >= base:  # else its bit is gone
                bits ^= 1 << (parsed.serial - base)
            self.payload_bytes -= parsed.payload_bytes
            self._control_bytes -= parsed.control_bytes
            self._control_entries -= parsed.control_entries
        self.bits = bits
        self.count -= len(expired)
        if len(self._log) > 2 * self.count:
            self._log = [parsed for parsed in self._log if parsed.deadline > now]
        return expired

    def lacked_by(self, peer_bits: int, base: int, now: Instant) -> Parcel | None:
        """Return the messages that a peer with these bits lacks, in the order of reception; None if none.

        Call it after `take_expired`.
        """
        lacked = self.bits ^ (self.bits & peer_bits)
        if not lacked:
            return None
        if lacked == self.bits:
            parcel = Parcel(lacked, self.count, self.payload_bytes, self._control_bytes, self._control_entries)
            parcel.fill_from(self._log, now)
            return parcel
        return parcel_of(Batch(chosen(self._log, lacked, base)), lacked)


def chosen(log: list[ParsedEnvelope], bits: int, base: int) -> list[ParsedEnvelope]:
    """Return the messages of a log that these bits name, in its order."""
    marks = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    remaining = bits.bit_count()
    contents: list[ParsedEnvelope] = []
    for parsed in reversed(log):  # a peer mostly lacks the latest messages
        if remaining == 0:
            break
        place = parsed.serial - base
        if 0 <= place < 8 * len(marks) and marks[place >> 3] >> (place & 7) & 1:
            contents.append(parsed)
            remaining -= 1
    contents.reverse()
    return contents

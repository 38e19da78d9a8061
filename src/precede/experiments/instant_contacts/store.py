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
    that have expired. `known` are the messages held, and the evicted ones until their deadline, which do not
    enter again: these are `evicted` by their serial numbers, and the log has them before `_first`. The other
    fields are sums over the messages held.
    """

    __slots__ = (
        "_control_bytes",
        "_control_entries",
        "_deadlines",
        "_expired_by",
        "_first",
        "_log",
        "_pushed",
        "bits",
        "count",
        "evicted",
        "known",
        "payload_bytes",
    )

    def __init__(self) -> None:
        self.bits = 0
        self.known = 0
        self.count = 0
        self.evicted: set[int] = set()
        self.payload_bytes = 0
        self._control_bytes = 0
        self._control_entries = 0
        self._log: list[ParsedEnvelope] = []
        self._deadlines: list[tuple[Instant, int, ExpiringBatch]] = []
        self._pushed = 0
        self._first = 0
        self._expired_by: Instant = 0

    def add(self, batch: Batch, bits: int) -> None:
        """Add a batch of messages, none of which is held."""
        self.bits |= bits
        self.known |= bits
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
        self._forget_evicted()
        return {parsed.id for parsed in self._log if parsed.deadline > now}

    def raise_base(self, count: int) -> None:
        """Let bit 0 stand for the serial number that bit `count` stood for."""
        self.bits >>= count
        self.known >>= count

    def evict_first(self, base: int) -> ParsedEnvelope:
        """Remove and return the message received first."""
        parsed = self._log[self._first]
        while parsed.deadline <= self._expired_by:
            self._first += 1
            parsed = self._log[self._first]
        self._first += 1
        self.evicted.add(parsed.serial)
        if parsed.serial >= base:
            self.bits ^= 1 << (parsed.serial - base)
        self._subtract(parsed)
        if self._first > 2 * self.count:
            self._forget_evicted()
        return parsed

    def _forget_evicted(self) -> None:
        """Remove the evicted messages from the log."""
        if self._first:
            self._log = self._log[self._first :]
            self._first = 0

    def _subtract(self, parsed: ParsedEnvelope) -> None:
        self.count -= 1
        self.payload_bytes -= parsed.payload_bytes
        self._control_bytes -= parsed.control_bytes
        self._control_entries -= parsed.control_entries

    def take_expired(self, now: Instant, base: int) -> list[ParsedEnvelope]:
        """Remove and return the messages whose deadline has passed, in the order of `Cache.expired`."""
        expired: list[ParsedEnvelope] = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            _, pushed, expiring = heappop(deadlines)
            expiring.take_expired(now, expired)
            if expiring.first_deadline != NEVER:
                heappush(deadlines, (expiring.first_deadline, pushed, expiring))
        gone = 0
        for parsed in expired:
            if parsed.serial >= base:  # else its bit is gone
                gone |= 1 << (parsed.serial - base)
            if parsed.serial not in self.evicted:
                self._subtract(parsed)
        self.bits ^= self.bits & gone
        self.known ^= self.known & gone
        self._expired_by = now
        if len(self._log) > 2 * self.count:
            self._log = [parsed for parsed in self._log[self._first :] if parsed.deadline > now]
            self._first = 0
        if self.evicted:
            dropped = [parsed for parsed in expired if parsed.serial not in self.evicted]
            self.evicted.difference_update([parsed.serial for parsed in expired])
            return dropped
        return expired

    def lacked_by(self, peer_bits: int, base: int, now: Instant) -> Parcel | None:
        """Return the messages that a peer with these bits lacks, in the order of reception; None if none.

        Call it after `take_expired`.
        """
        lacked = self.bits ^ (self.bits & peer_bits)
        if not lacked:
            return None
        self._forget_evicted()
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

"""A peer in contact with an epidemic node: the messages it lacks, and the one that is being transferred."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Any, final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.layered.epidemic.transfer_order import TransferOrder
from precede.protocols.layered.parsed_envelopes import Batch, ParsedEnvelope


@final
class Link:
    """One contact with one peer.

    `lacked` are the messages that the peer lacks as far as this node knows; a queue has them, and also messages
    that the peer received meanwhile. In the order of reception it is `_received`, which needs no ranks; in any
    other order it is the heap `_ranked`. `synced` is True once the peer has sent its summary. If transfers take
    time, `in_flight` is the message that the network transmits since `sent_at`. `number` distinguishes this
    contact from earlier ones with the same peer. `summary_queued`: a repeated summary has not left yet.
    """

    __slots__ = (
        "_order",
        "_ranked",
        "_received",
        "_serial",
        "in_flight",
        "lacked",
        "number",
        "sent_at",
        "summary_queued",
        "synced",
    )

    def __init__(self, number: int, order: TransferOrder) -> None:
        self.number = number
        self.synced = False
        self.lacked: dict[MessageId, ParsedEnvelope] = {}
        self.in_flight: ParsedEnvelope | None = None
        self.sent_at: Instant = 0
        self.summary_queued = False
        self._order = order
        self._received: deque[ParsedEnvelope] = deque()
        self._ranked: list[tuple[Any, int, ParsedEnvelope]] = []
        self._serial = 0

    def replace_queue(self, batch: Batch) -> None:
        """Replace the queue by the messages that the peer's summary lacks, without the message in flight."""
        self.lacked = {parsed.id: parsed for parsed in batch.contents}
        if self.in_flight is not None:
            self.lacked.pop(self.in_flight.id, None)
        if self._order.is_received:
            self._received = deque(self.lacked.values())
        else:
            self._ranked = [self._with_rank(parsed) for parsed in self.lacked.values()]
            heapify(self._ranked)

    def enqueue(self, parsed: ParsedEnvelope) -> None:
        self.lacked[parsed.id] = parsed
        if self._order.is_received:
            self._received.append(parsed)
        else:
            heappush(self._ranked, self._with_rank(parsed))

    def _with_rank(self, parsed: ParsedEnvelope) -> tuple[Any, int, ParsedEnvelope]:
        self._serial += 1
        return self._order.rank(parsed), self._serial, parsed

    def take_next(self, held: set[MessageId], now: Instant) -> ParsedEnvelope | None:
        """Remove and return the next message that the peer lacks, this node holds and that has not expired."""
        while self._received or self._ranked:
            parsed = self._received.popleft() if self._order.is_received else heappop(self._ranked)[2]
            if self._is_due(parsed, held, now):
                del self.lacked[parsed.id]
                return parsed
        return None

    def take_all(self, held: set[MessageId], now: Instant) -> list[ParsedEnvelope]:
        """Empty the queue; return the messages that the peer lacks, this node holds and have not expired."""
        queued = [*self._received, *[parsed for _, _, parsed in sorted(self._ranked)]]
        due = [parsed for parsed in queued if self._is_due(parsed, held, now)]
        self._received.clear()
        self._ranked, self.lacked = [], {}
        return due

    def _is_due(self, parsed: ParsedEnvelope, held: set[MessageId], now: Instant) -> bool:
        return parsed.deadline > now and parsed.id in self.lacked and parsed.id in held

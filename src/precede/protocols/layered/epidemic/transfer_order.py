"""Which messages of a transfer go first.

The paper leaves this open. By default a node sends messages in the order in which it received them. A peer then
receives predecessors first, so that almost no message waits.
"""

from __future__ import annotations

from random import Random
from typing import Any, final

from precede.protocols.layered.epidemic.options import OrderName
from precede.protocols.layered.parsed_envelopes import Batch, ParsedEnvelope


@final
class TransferOrder:
    """Decides which messages go first when two nodes meet, by the name of an order; `generator` shuffles."""

    __slots__ = ("_order", "generator", "is_random", "is_received")

    def __init__(self, order: OrderName, generator: Random) -> None:
        self._order = order
        self.is_received = order == "received"
        self.is_random = order == "random"
        self.generator = generator

    def rank(self, parsed: ParsedEnvelope) -> Any:
        """Return the rank of one message. Smaller ranks go first, equal ranks in the order of reception."""
        order = self._order
        if self.is_received:
            return 0
        if self.is_random:
            return self.generator.random()
        if order == "oldest":
            return parsed.envelope.born
        if order == "newest":
            return -parsed.envelope.born
        return parsed.id

    def ranks(self, batch: Batch) -> list[Any] | None:
        """Return the ranks of all messages of a batch; None if they stay in the order of reception."""
        if self.is_received:
            return None
        if self.is_random:
            return self.draws(len(batch.ids))
        return [self.rank(parsed) for parsed in batch.contents]

    def draws(self, count: int) -> list[Any]:
        """Return so many random ranks."""
        draw = self.generator.random
        return [draw() for _ in range(count)]


def arranged(batch: Batch, ranks: list[Any] | None) -> Batch:
    return batch if ranks is None else batch.reordered(sorted(range(len(ranks)), key=ranks.__getitem__))

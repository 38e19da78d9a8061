"""What an ordering and a dissemination hand each other (DESIGN section 2)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Size, Written
from precede.protocols.layered.parsed_envelopes import NEVER
from precede.protocols.layered.streams import Stream, stream_of


class Envelope(Struct, frozen=True, array_like=True, dict=True):
    """A message as a dissemination carries it: with its ordering's stamp, unread, and that stamp's size."""

    message: Message
    stamp: Any
    deadline: Instant | None
    destinations: tuple[NodeId, ...] | None
    control_bytes: Size
    control_entries: Size
    born: Instant = 0
    """When it was broadcast, by its source's clock: never used for order, only for what to carry first."""

    @cached_property
    def name(self) -> tuple[Stream, int, Instant]:
        """How a barrier names it: one tuple for all nodes of a simulation."""
        id = self.message.id
        return stream_of(id), id.number, NEVER if self.deadline is None else self.deadline

    @property
    def size_bytes(self) -> int:
        return len(self.message.payload) + self.control_bytes

    def written(self, relayed: bool = False) -> Written:
        """What its source wrote. One that is relayed may be in the hands of nodes it is not meant for."""
        order = (self.stamp, self.destinations, self.born)
        return Written(self.message, None if relayed else self.destinations, self.deadline, order)

"""The messages that a VCube node keeps until all nodes have them (decision 0011)."""

from collections.abc import Sequence
from typing import NamedTuple

from precede.core.instants import Instant
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import Slot


class Logged(NamedTuple):
    """A message received at `since`, which this node forwarded into its first `below` clusters."""

    stamped: StampedMessage
    below: int
    since: Instant


class MessageLog:
    """The kept messages, in the order of reception."""

    def __init__(self) -> None:
        self.entries: dict[Slot, Logged] = {}

    def add(self, stamped: StampedMessage, below: int, now: Instant) -> None:
        self.entries[stamped.prepared.slot] = Logged(stamped, below, now)

    def extend(self, slot: Slot, below: int) -> Logged | None:
        """Raise `below` of a kept message. Return its former entry, or None if there is nothing to raise."""
        logged = self.entries.get(slot)
        if logged is None or below <= logged.below:
            return None
        self.entries[slot] = logged._replace(below=below)
        return logged

    def lacked_by(self, have: Sequence[int], until: Instant) -> list[StampedMessage]:
        """Return the messages received up to `until` that are missing in a node's vector `have`."""
        return [
            logged.stamped
            for logged in self.entries.values()
            if logged.since <= until and is_beyond(logged.stamped, have)
        ]

    def forget(self, vector: Sequence[int]) -> None:
        """Drop the messages up to the numbers in `vector`, which all nodes have received."""
        for slot in [slot for slot, logged in self.entries.items() if not is_beyond(logged.stamped, vector)]:
            del self.entries[slot]


def is_beyond(stamped: StampedMessage, vector: Sequence[int]) -> bool:
    """Is the message's number larger than the vector's number for its source?"""
    message = stamped.prepared
    return message.source >= len(vector) or message.number > vector[message.source]

"""What a VCube node would otherwise work out again for every message it takes in (vcube2018, section 4).

In a simulation it is worked out once for all nodes. Masks have a bit for each source: 1,024 bits are no machine
word, so their type is left open, and Python's own whole numbers do the work.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, final

from precede.core.effects import Arrive, Deliver, Effects
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message

SOURCE_BITS: Final = 16
HEADER_BYTES: Final = 20
ENTRY_BYTES: Final = 4

Slot: TypeAlias = int
"""A message as one whole number: its number above its source. No message is 0."""

Mask: TypeAlias = Any
"""A whole number with a bit for each source."""


def slot_of(source: NodeId, number: int) -> Slot:
    return number << SOURCE_BITS | source


def id_of(slot: Slot) -> MessageId:
    return MessageId(slot & ((1 << SOURCE_BITS) - 1), 0, slot >> SOURCE_BITS)


@final
class Row:
    """The vector entries with one number: which sources have it."""

    __slots__ = ("mask", "number")

    def __init__(self, number: int, mask: Mask) -> None:
        self.number = number
        self.mask: Any = mask


@final
class Prepared:
    """A message's place, its effects, and its vector entries as rows, ascending by number.

    Where all entries have the message's own number, `needs` is their mask with the message's own bit, and one
    `and` tells whether a node has all of them and not the message; else it is 0.
    """

    __slots__ = (
        "arrive",
        "at_once",
        "bit",
        "deliver",
        "entries",
        "needs",
        "number",
        "rows",
        "size_bytes",
        "slot",
        "source",
    )

    def __init__(self, source: NodeId, number: int, message: Message, rows: list[Row], entries: int) -> None:
        self.source = source
        self.number = number
        self.slot: Any = slot_of(source, number)
        self.bit: Any = 1 << source
        self.rows = rows
        self.entries = entries
        self.size_bytes = ENTRY_BYTES * entries + len(message.payload)
        self.arrive: Any = Arrive((message,))
        self.deliver: Any = Deliver(message)
        self.at_once: Effects = [self.arrive, self.deliver]
        self.needs: Any = 0
        if not rows:
            self.needs = self.bit
        elif len(rows) == 1 and rows[0].number == number:
            self.needs = rows[0].mask | self.bit

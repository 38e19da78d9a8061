"""Values derived from a message once, for all nodes of a simulation that receive it (vcube2018, section 4).

Bit masks have one bit for each source. With 1,024 sources a mask does not fit a machine word, so its type is
`Any`: mypyc then uses Python's integers.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, final

from msgspec import Meta

from precede.core.effects import Arrive, Deliver, Effects
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message

SOURCE_BITS: Final = 16
HEADER_BYTES: Final = 20
ENTRY_BYTES: Final = 4

Slot: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 57)]
"""A message id as one integer: the number in the high bits, the source in the low 16 bits. It is never 0."""

Mask: TypeAlias = Any
"""An integer with one bit for each source."""


def slot_of(source: NodeId, number: int) -> Slot:
    return number << SOURCE_BITS | source


def id_of(slot: Slot) -> MessageId:
    return MessageId(slot & ((1 << SOURCE_BITS) - 1), 0, slot >> SOURCE_BITS)


@final
class Row:
    """All vector entries with the same number: the mask of their sources."""

    __slots__ = ("mask", "number")

    def __init__(self, number: int, mask: Mask) -> None:
        self.number = number
        self.mask: Any = mask


@final
class Share:
    """The sources whose messages a node forwards to one child: those of `mask`, shifted left by `shift` bits.

    The nodes of a whole hypercube share their masks. With a shifted mask for each child of each node, 16,384
    nodes took 500 MB for them.
    """

    __slots__ = ("mask", "shift")

    def __init__(self, mask: Mask, shift: int) -> None:
        self.mask: Any = mask
        self.shift = shift


@final
class Prepared:
    """A message's source and number, its effects, and its vector entries as rows, ascending by number.

    `at_once` are the effects of a message that is delivered on arrival. If all entries have the message's own
    number, `needs` is their mask with the message's own bit: one `and` then tells whether a node has delivered
    all of them but not the message. Otherwise `needs` is 0.
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

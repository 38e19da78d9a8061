"""Values derived from a message once, for all nodes of a simulation that receive it (vcube2018, section 4)."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, final

from msgspec import Meta

from precede.core.compiling import is_compiled
from precede.core.effects import Arrive, Deliver, Effects
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message
from precede.protocols.vcube2018 import sources
from precede.protocols.vcube2018.sources import Mask, Row, Share, SourceSet

SOURCE_BITS: Final = 16
HEADER_BYTES: Final = 20
ENTRY_BYTES: Final = 4

Slot: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 57)]
"""A message id as one integer: the number in the high bits, the source in the low 16 bits. It is never 0."""


def slot_of(source: NodeId, number: int) -> Slot:
    return number << SOURCE_BITS | source


def id_of(slot: Slot) -> MessageId:
    return MessageId(slot & ((1 << SOURCE_BITS) - 1), 0, slot >> SOURCE_BITS)


@final
class Prepared:
    """A message's source and number, its effects, and its vector entries as rows, ascending by number.

    `at_once` are the effects of a message that is delivered on arrival. If all entries have the message's own
    number, `needs` has them and the message itself: one operation then tells whether a node has delivered all
    of them but not the message. Otherwise `needs` is None. `past` is that of the stamped message. `serial` is
    the place of the message among those of its world, where the driver numbers them; else -1.
    """

    __slots__ = (
        "arrive",
        "at_once",
        "deliver",
        "entries",
        "needs",
        "number",
        "past",
        "rows",
        "serial",
        "size_bytes",
        "slot",
        "source",
    )

    def __init__(
        self, source: NodeId, number: int, message: Message, rows: list[Row], entries: int, past: int = 0
    ) -> None:
        self.source = source
        self.number = number
        self.past = past
        self.serial = -1
        self.slot: Any = slot_of(source, number)
        self.rows = rows
        self.entries = entries
        self.size_bytes = ENTRY_BYTES * entries + len(message.payload)
        self.arrive: Any = Arrive((message,))
        self.deliver: Any = Deliver(message)
        self.at_once: Effects = [self.arrive, self.deliver]
        self.needs: Row | None = None
        if not rows:
            self.needs = new_row(number, 1 << source)
        elif len(rows) == 1 and rows[0].number == number:
            self.needs = new_row(number, rows[0].mask | 1 << source)


def _classes() -> tuple[Any, Any, Any]:
    """Return the classes of rows, sets and shares: in machine words where the package is compiled."""
    if not is_compiled(sources):
        return Row, SourceSet, Share
    from precede.protocols.vcube2018.machine_sources import MachineRow, MachineShare, MachineSourceSet

    return MachineRow, MachineSourceSet, MachineShare


_CLASSES: Final = _classes()


def new_row(number: int, mask: Mask) -> Row:
    made: Row = _CLASSES[0](number, mask)
    return made


def new_set(mask: Mask) -> SourceSet:
    made: SourceSet = _CLASSES[1](mask)
    return made


def new_share(mask: Mask, shift: int, period: int = 0) -> Share:
    made: Share = _CLASSES[2](mask, shift, period)
    return made

"""Messages that a WAS host receives in one connection, delivered in order (was2021, section 4.1)."""

from collections.abc import Mapping

from precede.core.effects import Arrive, Deliver, Effect, Persist
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message
from precede.core.node import Saved, restore


class Downlink:
    """A host's position in its last confirmed connection, and the messages received too early.

    `last_ses` is that connection (Ses_LC), `next` the number to deliver next (seq_NC). `base` is the first of
    the cell's own numbers; recovered messages have lower ones. `rbuffer` (RBuffer) maps the number of an early
    message to the message and whether the host delivered it at another station. `skip` are the numbers
    delivered at another station. `top` is the highest number received. `seen` are messages that were in RBuffer
    when it was cleared: they have arrived once already.
    """

    def __init__(self, host: NodeId, durable: bool) -> None:
        self.host = host
        self.durable = durable
        self.last_ses = 0
        self.next = 0
        self.base = 0
        self.top = 0
        self.skip: frozenset[int] = frozenset()
        self.rbuffer: dict[int, tuple[Message, bool]] = {}
        self.seen: set[MessageId] = set()

    def restore(self, saved: Saved) -> bool:
        """Load the saved position. Return False if the host had never been connected."""
        if "position" not in saved:
            return False
        self.last_ses, self.next = restore(saved, "position", tuple[int, int], (0, 0))
        return True

    def begin(self, ses: int, start: int, recovered: int, skip: tuple[int, ...], effects: list[Effect]) -> None:
        """Start connection `ses`: first `recovered` messages, numbered below `start`, then the cell's own."""
        self.last_ses = ses
        self.base = start
        self.next = start - recovered
        self.top = self.next - 1
        self.save_position(effects)
        self.skip = frozenset(skip)

    def clear(self) -> None:
        """Empty RBuffer, because its numbers mean nothing in the next connection (E9).

        Note in `seen` those of its messages that the host has not delivered.
        """
        self.seen.update(message.id for message, before in self.rbuffer.values() if not before)
        self.rbuffer.clear()

    def has(self, number: int) -> bool:
        """Was the message with this number delivered or buffered in this connection?"""
        return number < self.next or number in self.rbuffer

    def is_incomplete(self) -> bool:
        """Is a message missing before a buffered one, or a recovered message still to come?"""
        return bool(self.rbuffer) or self.next < self.base

    def take(self, number: int, message: Message, before: bool, effects: list[Effect]) -> bool:
        """Deliver or buffer a message with a new number. Return True if numbers just below it are missing.

        `before`: the host delivered the message at another station, so it is only counted.
        """
        if not before and message.id.source != self.host and message.id not in self.seen:
            effects.append(Arrive((message,)))
        if number == self.next:
            self._deliver(message, before, effects)
            if self.rbuffer:
                self.drain(effects)
        else:
            self.rbuffer[number] = (message, before)
        opens_hole = number > self.top + 1
        self.top = max(self.top, number)
        return opens_hole

    def drain(self, effects: list[Effect]) -> None:
        while self.next in self.rbuffer:
            self._deliver(*self.rbuffer.pop(self.next), effects)

    def _deliver(self, message: Message, before: bool, effects: list[Effect]) -> None:
        """Advance `next`, and deliver the message unless the host did `before`, in one atomic step (E17)."""
        self.next += 1
        self.save_position(effects)
        if before:
            return
        if self.seen:
            self.seen.discard(message.id)
        effects.append(Deliver(message))

    def save_position(self, effects: list[Effect]) -> None:
        """Persist the connection and the next number together, if the host is durable (E17)."""
        if self.durable:
            effects.append(Persist("position", (self.last_ses, self.next)))


def ranges(numbers: Mapping[int, object]) -> tuple[tuple[int, int], ...]:
    """Return the numbers as ranges that include both ends.

    >>> ranges({4: "", 7: "", 5: ""})
    ((4, 5), (7, 7))
    """
    result: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if result and result[-1][1] == number - 1:
            result[-1] = (result[-1][0], number)
        else:
            result.append((number, number))
    return tuple(result)

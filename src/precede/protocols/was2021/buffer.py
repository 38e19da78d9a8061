"""SBuffer of a WAS station: the messages that some host of its cell still needs (was2021, section 4.1)."""

from precede.core.effects import RADIO, CancelSend, Effect, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.protocols.was2021.packets import DataPacket


class StationBuffer:
    """The station's numbering of messages, the messages it keeps, and when each was last transmitted.

    `last` is the highest number given, `low` the lowest number that may still be kept. `sent_at` is in the
    order of transmission, so the message to retransmit next is the first.
    """

    def __init__(self, retransmit: Duration) -> None:
        self.retransmit = retransmit
        self.last = 0
        self.low = 1
        self.messages: dict[int, Message] = {}
        self.position: dict[MessageId, int] = {}
        self.queued: dict[int, None] = {}
        self.sent_at: dict[int, Instant] = {}
        self.timer_at: Instant | None = None

    def add(self, message: Message) -> int:
        """Give a message the next number, keep it, and return the number."""
        self.last += 1
        self.messages[self.last] = message
        self.position[message.id] = self.last
        return self.last

    def pass_by(self) -> None:
        """Use up the next number without keeping its message, because no host of the cell needs it."""
        self.last += 1
        self.low = self.last + 1

    def numbers_from(self, first: int) -> list[int]:
        return [number for number in range(first, self.last + 1) if number in self.messages]

    def send(self, number: int, marks: tuple[NodeId, ...], effects: list[Effect]) -> None:
        if number in self.queued:
            return
        self.queued[number] = None
        self.sent_at.pop(number, None)
        effects.append(Send(DataPacket(number, self.messages[number], marks), NEIGHBOURS, RADIO, number))

    def sent(self, number: int, now: Instant, effects: list[Effect]) -> None:
        """Record when a message left the radio's queue: its retransmission is due `retransmit` after that."""
        self.queued.pop(number, None)
        if number in self.messages:
            self.sent_at.pop(number, None)
            self.sent_at[number] = now
            self.arm(effects)

    def take_due(self, now: Instant) -> list[int]:
        """Return the numbers transmitted at least `retransmit` ago. Their retransmission time starts again."""
        due = []
        for number, at in self.sent_at.items():
            if at + self.retransmit > now:
                break
            due.append(number)
        for number in due:
            del self.sent_at[number]
            self.sent_at[number] = now
        return due

    def arm(self, effects: list[Effect]) -> None:
        """Set the retransmission timer, unless it is set, for the message that was transmitted longest ago."""
        if self.timer_at is None and self.sent_at:
            self.timer_at = next(iter(self.sent_at.values())) + self.retransmit
            effects.append(SetTimer("repeat", self.timer_at))

    def discard_below(self, low: int, effects: list[Effect]) -> None:
        """Discard all messages below a number, and no others (E7)."""
        if low <= self.low:
            return
        for number in range(self.low, low):
            if number in self.messages:
                self.discard(number, effects)
        self.low = low

    def discard(self, number: int, effects: list[Effect]) -> None:
        """Discard one message; cancel its transmission if it is queued."""
        message = self.messages.pop(number)
        if self.position.get(message.id) == number:
            del self.position[message.id]
        self.sent_at.pop(number, None)
        if number in self.queued:
            del self.queued[number]
            effects.append(CancelSend(number))

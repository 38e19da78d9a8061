"""A WAS host's own messages until its station has accepted them (was2021, section 4.1)."""

from precede.core.effects import RADIO, Accept, CancelTimer, Effect, Persist, Send, SetTimer
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.core.node import Saved, restore
from precede.protocols.was2021.options import WasOptions
from precede.protocols.was2021.packets import UpPacket


class Uplink:
    """A host's own messages that no station has accepted yet (`sbuffer`).

    `number` is the number of the last own message (seq_h). `sent_at` is when each message was last sent (None:
    it is in the radio's queue).
    """

    def __init__(self, host: NodeId, incarnation: int, options: WasOptions) -> None:
        self.host = host
        self.incarnation = incarnation
        self.options = options
        self.number = 0
        self.sbuffer: dict[int, Message] = {}
        self.sent_at: dict[int, Instant | None] = {}

    def restore(self, saved: Saved) -> None:
        payloads = {key[1]: value for key, value in saved.items() if isinstance(key, tuple) and key[0] == "own"}
        for number in sorted(payloads):
            id = MessageId(self.host, self.incarnation, int(number))
            self.sbuffer[int(number)] = Message(id, payloads[number])
        self.number = max([restore(saved, "number", int, 0), *self.sbuffer])

    def add(self, payload: bytes, effects: list[Effect]) -> None:
        """Number and buffer a new message, persist it if the host is durable, and append `Accept`."""
        self.number += 1
        message = Message(MessageId(self.host, self.incarnation, self.number), payload)
        self.sbuffer[self.number] = message
        if self.options.durable:
            effects.append(Persist(("own", self.number), payload))
        effects.append(Accept(message))

    def send(self, cell: NodeId, ses: int, now: Instant, effects: list[Effect]) -> None:
        """Send the messages in the window that are not queued and were not sent within `uplink_retransmit`."""
        late = now - self.options.uplink_retransmit
        for position, (number, message) in enumerate(self.sbuffer.items()):
            if position >= self.options.uplink_window:
                break
            if number in self.sent_at:
                at = self.sent_at[number]
                if at is None or at > late:
                    continue
            self.sent_at[number] = None
            effects.append(Send(UpPacket(self.host, ses, message), cell, RADIO, number))

    def sent(self, number: int, now: Instant, effects: list[Effect]) -> None:
        """Record when a message left the radio's queue; its retransmission time counts from then."""
        if number in self.sent_at:
            self.sent_at[number] = now
            self.arm(effects)

    def arm(self, effects: list[Effect]) -> None:
        """Set the retransmission timer for the message that was sent longest ago."""
        oldest = min((at for at in self.sent_at.values() if at is not None), default=None)
        if oldest is not None:
            effects.append(SetTimer("uplink", oldest + self.options.uplink_retransmit))

    def forget(self, accepted: int, effects: list[Effect]) -> None:
        """Drop the messages up to `accepted`, which the station has; the last number stays saved."""
        done = [number for number in self.sbuffer if number <= accepted]
        if done and self.options.durable:
            effects.append(Persist("number", self.number))
            effects += [Persist(("own", number), None) for number in done]
        for number in done:
            del self.sbuffer[number]
            self.sent_at.pop(number, None)
        if not self.sbuffer:
            effects.append(CancelTimer("uplink"))

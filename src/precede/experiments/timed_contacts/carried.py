"""The messages of a world, as its nodes carry them: each is read once, for all of them."""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from precede.core.effects import Arrive, Deliver
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import HEADER_BYTES, ID_BYTES
from precede.protocols.layered.parsed_envelopes import Batch, ParsedEnvelope, batch_of

_SWEPT: Final = 1024
"""Every so many births the messages that have expired everywhere are forgotten."""


@final
class Carried:
    """A message, its serial number in the world, and the sizes of the packet with this message alone.

    `takes` is how long a transfer takes, without jitter. `holders` counts the nodes that carry it.
    """

    __slots__ = (
        "arrival",
        "batch",
        "control_bytes",
        "control_entries",
        "deadline",
        "deliver",
        "holders",
        "parsed",
        "payload_bytes",
        "serial",
        "size_bytes",
        "takes",
    )

    def __init__(self, envelope: Envelope, serial: i64) -> None:
        batch: Batch = batch_of((envelope,))
        parsed: ParsedEnvelope = batch.contents[0]
        control: i64 = batch.control_bytes
        self.serial: i64 = serial
        self.deadline: i64 = batch.first_deadline
        self.takes: i64 = 0
        self.holders: i64 = 0
        self.payload_bytes: i64 = batch.payload_bytes
        self.control_bytes: i64 = control + HEADER_BYTES + ID_BYTES
        self.control_entries: i64 = batch.control_entries
        self.size_bytes: i64 = self.payload_bytes + self.control_bytes
        self.batch = batch
        self.parsed = parsed
        self.deliver: Deliver = parsed.deliver
        self.arrival: Arrive = batch.arrival()


@final
class Catalogue:
    """All messages by serial number. Those below `first_alive` have expired, and no node carries them."""

    __slots__ = ("_messages", "deadlines", "first_alive")

    def __init__(self) -> None:
        self._messages: list[Carried | None] = []
        self.deadlines = vec[i64]()
        self.first_alive: i64 = 0

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, envelope: Envelope, now: i64) -> Carried:
        """Give a new message the next serial number."""
        message = Carried(envelope, len(self._messages))
        self._messages.append(message)
        self.deadlines = append(self.deadlines, message.deadline)
        if message.serial % _SWEPT == 0:
            self._forget_expired(now)
        return message

    def message(self, serial: i64) -> Carried:
        """Return a message that a node carries."""
        message = self._messages[serial]
        assert message is not None
        return message

    def _forget_expired(self, now: i64) -> None:
        """Forget messages that have expired, up to the first that a node carries or that may be alive."""
        serial = self.first_alive
        while serial < len(self._messages):
            message = self._messages[serial]
            if message is not None and (message.deadline > now or message.holders > 0):
                break
            self._messages[serial] = None
            serial += 1
        self.first_alive = serial

"""Envelopes parsed once for all nodes of a simulation that hold them. Compiled with mypyc.

An envelope is a plain value that a driver can decode. Reading its fields again at each of a thousand receptions
took a third of the time of an epidemic (guidec2021, section III), so a batch of parsed envelopes is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from precede.core.effects import Arrive, Deliver, Discard
from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.messages import Message

if TYPE_CHECKING:
    from precede.protocols.layered.envelope import Envelope

NEVER: Final[Instant] = 1 << 62
"""The deadline that a message without one has in memory: later than every instant."""
_MOST_PLACES: Final = 4096
"""Streams below it, in simulations, have a place in tables of tops: at most 32 kB of a node."""


@final
class MessageName:
    """A message as barriers name it. `entry` is the name as it travels: (stream, number, deadline).

    `place` is its stream, if that is a small number, else -1. Numbers are machine words where this module is
    compiled: every reception reads them.
    """

    __slots__ = ("deadline", "entry", "number", "place", "stream")

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self.stream = entry[0]
        self.number: i64 = entry[1]
        self.deadline: i64 = entry[2]
        self.place: i64 = entry[0] if isinstance(entry[0], int) and entry[0] < _MOST_PLACES else -1


@final
class ParsedEnvelope:
    """An envelope and its fields. `sort_key` is the deadline as a boxed float: it sorts fastest.

    `outlived`: an entry of `barrier` has a later deadline than the message. `serial` is its number in a world
    that numbers all messages. `digest` is its hash, once an ordering has computed it.
    """

    __slots__ = (
        "_discard",
        "_name",
        "addressed",
        "barrier",
        "control_bytes",
        "control_entries",
        "deadline",
        "deliver",
        "digest",
        "envelope",
        "id",
        "message",
        "number",
        "outlived",
        "payload_bytes",
        "serial",
        "sort_key",
        "stamp",
        "stream",
    )

    def __init__(self, envelope: Envelope) -> None:
        message = envelope.message
        id = message.id
        deadline: Instant = NEVER if envelope.deadline is None else envelope.deadline
        self.stream: Any = (id.source, id.incarnation) if id.incarnation else id.source
        self.number: i64 = id.number  # what every reception reads comes first: it shares a cache line
        self.deadline: i64 = deadline
        self.barrier: list[MessageName] | None = None
        self.deliver = Deliver(message, envelope)
        self.outlived = False
        self.serial = -1
        self.id: MessageId = id
        self._name: MessageName | None = None
        self.envelope = envelope
        self.message: Message = message
        self.sort_key: Any = float(deadline)
        self._discard: Discard | None = None
        self.payload_bytes: int = len(message.payload)
        self.control_bytes: int = envelope.control_bytes
        self.control_entries: int = envelope.control_entries
        self.addressed: bool = envelope.destinations is not None
        self.stamp: Any = envelope.stamp
        self.digest: Any = None

    @property
    def name(self) -> MessageName:
        """The message as barriers name it. It is made when it is first read: most orderings never do."""
        if self._name is None:
            self._name = MessageName(self.envelope.name)
        return self._name

    def discard(self, reason: str) -> Discard:
        """Return the effect that discards the message: mostly one object for all nodes."""
        if self._discard is None or self._discard.reason != reason:
            self._discard = Discard(self.message, reason)
        return self._discard


@final
class Batch:
    """An ordered list of parsed envelopes with the sums of their sizes and their first deadline.

    `set_token` is one object for all orders of the same messages: two batches with the same token hold the
    same messages. `summary` is the set of their ids if the batch is the whole content of a cache, else None. If
    `addressed`, some of them name destinations.
    """

    __slots__ = (
        "_arrival",
        "addressed",
        "contents",
        "control_bytes",
        "control_entries",
        "first_deadline",
        "ids",
        "payload_bytes",
        "set_token",
        "summary",
    )

    def __init__(self, contents: list[ParsedEnvelope]) -> None:
        ids: list[MessageId] = []
        payload = control = entries = 0
        first_deadline: Instant = NEVER
        addressed = False
        for parsed in contents:
            if parsed.addressed:
                addressed = True
            ids.append(parsed.id)
            payload += parsed.payload_bytes
            control += parsed.control_bytes
            entries += parsed.control_entries
            first_deadline = min(first_deadline, parsed.deadline)
        self.contents = contents
        self.set_token = contents
        self.summary: frozenset[MessageId] | None = None
        self.ids = ids
        self.addressed = addressed
        self.first_deadline = first_deadline
        self.payload_bytes = payload
        self.control_bytes = control
        self.control_entries = entries
        self._arrival: Arrive | None = None

    def without(self, held: set[MessageId]) -> Batch:
        """Return the messages whose ids are not in `held`; this very batch if that is all of them."""
        if self.summary is not None and self.summary <= held:
            return Batch([])
        new = [parsed for parsed in self.contents if parsed.id not in held]
        return self if len(new) == len(self.contents) else Batch(new)

    def select(self, positions: Sequence[int]) -> Batch:
        contents = self.contents
        return Batch([contents[position] for position in positions])

    def envelopes(self) -> list[Envelope]:
        return [parsed.envelope for parsed in self.contents]

    def reordered(self, positions: Sequence[int]) -> Batch:
        other = Batch([])
        contents, ids = self.contents, self.ids
        other.set_token = self.set_token
        other.summary = self.summary
        other.contents = [contents[position] for position in positions]
        other.ids = [ids[position] for position in positions]
        other.addressed = self.addressed
        other.first_deadline = self.first_deadline
        other.payload_bytes = self.payload_bytes
        other.control_bytes = self.control_bytes
        other.control_entries = self.control_entries
        return other

    def arrival(self) -> Arrive:
        """Return the effect `Arrive` for all of these messages: one object that all receiving nodes share."""
        if self._arrival is None:
            messages = tuple([parsed.message for parsed in self.contents])
            self._arrival = Arrive(messages, [parsed.deliver for parsed in self.contents])
        return self._arrival


def batch_of(envelopes: Sequence[Envelope]) -> Batch:
    """Return received envelopes as a batch, in their order. Of two with one id the first stays."""
    first: dict[MessageId, Envelope] = {}
    for envelope in envelopes:
        first.setdefault(envelope.message.id, envelope)
    return Batch([ParsedEnvelope(envelope) for envelope in first.values()])

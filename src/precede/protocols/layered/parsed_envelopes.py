"""What is read of envelopes once, for all nodes of a simulation that hold them (guidec2021, section III).

An envelope is a plain value that the real world decodes; reading its fields again at each of a thousand
receptions was a third of the time of an epidemic. This module is made to be compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, final

from precede.core.effects import Arrive, Deliver
from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.messages import Message

if TYPE_CHECKING:
    from precede.protocols.layered.envelope import Envelope

NEVER: Final[Instant] = 1 << 62
"""The deadline, inside, of a message without one."""
_END: Final = attrgetter("end")
_STREAM_BITS: Final = 32
"""Streams stand below numbers in a key: the low bits say where it is in a dictionary, and numbers are alike."""


@final
class Named:
    """A message as barriers name it; `entry` is that name, (stream, number, deadline), as it travels.

    Under `key` one finds whatever has to do with it: equal names have equal keys, and hardly any others.
    """

    __slots__ = ("deadline", "entry", "key", "number", "stream")

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self.stream = entry[0]
        self.number: int = entry[1]
        self.deadline: Instant = entry[2]
        self.key: Any = entry[1] << _STREAM_BITS | entry[0] if isinstance(entry[0], int) else entry[:2]


@final
class Opened:
    """An envelope and its contents; `barrier` is its stamp, for an ordering whose stamps are barriers.

    `end` is the deadline once more, as an object and as a float: these are sorted fastest.
    """

    __slots__ = (
        "barrier",
        "control_bytes",
        "control_entries",
        "deadline",
        "deliver",
        "end",
        "envelope",
        "id",
        "message",
        "name",
        "number",
        "payload_bytes",
        "stamp",
        "stream",
    )

    def __init__(self, envelope: Envelope) -> None:
        message = envelope.message
        id = message.id
        name = Named(envelope.name)
        self.envelope = envelope
        self.message: Message = message
        self.id: MessageId = id
        self.name = name
        self.stream = name.stream
        self.number = name.number
        self.end: Any = float(name.deadline)
        self.deadline = name.deadline
        self.stamp: Any = envelope.stamp
        self.barrier: list[Named] | None = None
        self.deliver = Deliver(message)
        self.payload_bytes: int = len(message.payload)
        self.control_bytes: int = envelope.control_bytes
        self.control_entries: int = envelope.control_entries


@final
class Batch:
    """Messages in an order, opened, and what they add up to. `first_end` is the first of their deadlines.

    `load` is one object for all orders of the same messages; `summary` are their ids, if they fill a cache.
    """

    __slots__ = (
        "_arrival",
        "_latest_first",
        "contents",
        "control_bytes",
        "control_entries",
        "first_end",
        "ids",
        "load",
        "payload_bytes",
        "summary",
    )

    def __init__(self, contents: list[Opened]) -> None:
        ids: list[MessageId] = []
        payload = control = entries = 0
        first_end: Instant = NEVER
        for opened in contents:
            ids.append(opened.id)
            payload += opened.payload_bytes
            control += opened.control_bytes
            entries += opened.control_entries
            first_end = min(first_end, opened.deadline)
        self.contents = contents
        self.load = contents
        self.summary: frozenset[MessageId] | None = None
        self.ids = ids
        self.first_end = first_end
        self.payload_bytes = payload
        self.control_bytes = control
        self.control_entries = entries
        self._arrival: Arrive | None = None
        self._latest_first: list[Opened] | None = None

    def without(self, held: set[MessageId]) -> Batch:
        """Those that are not held; this very batch if none is."""
        if self.summary is not None and self.summary <= held:
            return Batch([])
        new = [opened for opened in self.contents if opened.id not in held]
        return self if len(new) == len(self.contents) else Batch(new)

    def chosen(self, places: Sequence[int]) -> Batch:
        """Those at these places, in that order."""
        contents = self.contents
        return Batch([contents[place] for place in places])

    def envelopes(self) -> list[Envelope]:
        """As they are sent."""
        return [opened.envelope for opened in self.contents]

    def reordered(self, places: Sequence[int]) -> Batch:
        """All of them, in another order."""
        other = Batch([])
        contents, ids = self.contents, self.ids
        other.load = self.load
        other.summary = self.summary
        other.contents = [contents[place] for place in places]
        other.ids = [ids[place] for place in places]
        other.first_end = self.first_end
        other.payload_bytes = self.payload_bytes
        other.control_bytes = self.control_bytes
        other.control_entries = self.control_entries
        return other

    def arrival(self) -> Arrive:
        """What a node says to whom all of this is new."""
        if self._arrival is None:
            messages = tuple([opened.message for opened in self.contents])
            self._arrival = Arrive(messages, [opened.deliver for opened in self.contents])
        return self._arrival

    def latest_first(self) -> list[Opened]:
        """Those that end, the last to end first."""
        if self._latest_first is None:
            ending = [opened for opened in self.contents if opened.deadline != NEVER]
            ending.sort(key=_END, reverse=True)
            self._latest_first = ending
        return self._latest_first


def batch_of(envelopes: Sequence[Envelope]) -> Batch:
    """Envelopes that come from somewhere else; of two with one id (nobody honest sends them) the first."""
    first: dict[MessageId, Envelope] = {}
    for envelope in envelopes:
        first.setdefault(envelope.message.id, envelope)
    return Batch([Opened(envelope) for envelope in first.values()])

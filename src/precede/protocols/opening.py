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
    from precede.protocols.envelope import Envelope

NEVER: Final[Instant] = 1 << 62
"""The deadline, inside, of a message without one."""
_END: Final = attrgetter("end")


@final
class Opened:
    """An envelope and its contents; `name` is (stream, number, deadline), as a barrier names the message.

    `end` is the deadline once more, as an object: sorting by it makes no number anew.
    """

    __slots__ = (
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
        name: Any = envelope.name
        self.envelope = envelope
        self.message: Message = message
        self.id: MessageId = id
        self.name = name
        self.stream = name[0]
        self.number: int = id.number
        self.end = name[2]
        self.deadline: Instant = name[2]
        self.stamp: Any = envelope.stamp
        self.deliver = Deliver(message)
        self.payload_bytes: int = len(message.payload)
        self.control_bytes: int = envelope.control_bytes
        self.control_entries: int = envelope.control_entries


@final
class Batch:
    """Messages in an order, opened, and what they add up to. `first_end` is the first of their deadlines."""

    __slots__ = (
        "_arrival",
        "_latest_first",
        "contents",
        "control_bytes",
        "control_entries",
        "first_end",
        "ids",
        "payload_bytes",
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
        self.ids = ids
        self.first_end = first_end
        self.payload_bytes = payload
        self.control_bytes = control
        self.control_entries = entries
        self._arrival: Arrive | None = None
        self._latest_first: list[Opened] | None = None

    def without(self, held: dict[MessageId, int]) -> Batch:
        """Those that are not held; this very batch if none is."""
        places = [place for place, id in enumerate(self.ids) if id not in held]
        return self if len(places) == len(self.ids) else self.chosen(places)

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
            self._arrival = Arrive(tuple([opened.message for opened in self.contents]))
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

"""`lamport`: a rule that sorts by a Lamport clock, one more than the largest number on the sender's screen.

An answer has a larger number than its question, so it never stands above it. But the rule does not know whether
something is missing: an answer that comes first is shown before its question.
"""

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from precede.core.instants import Instant
from precede.protocols.layered.envelope import Envelope
from precede.protocols.registry import Entry
from precede.protocols.rules.rule import NUMBER_BYTES, Rule, WaitingOptions

LARGEST: Final = 1 << 62
"""The largest Lamport time. A node that has seen it gives it to its own messages too."""
LamportTime: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]


class Lamport(Rule):
    """Sorts by Lamport time, then by message id."""

    name = "lamport"
    stamp_type = LamportTime

    def stamp_now(self, now: Instant) -> tuple[Any, int, int]:
        return min(self._screen.last_number() + 1, LARGEST), NUMBER_BYTES, 1

    def number_of(self, envelope: Envelope, now: Instant) -> int:
        number: int = envelope.stamp
        return number


ENTRY: Final = Entry(
    name="lamport",
    title="a rule of apps: sort by a Lamport clock",
    paper="(Lamport 1978; practice today: offline-first lists and logs)",
    order="none",
    worlds=("contacts", "point_to_point", "flood"),
    options=WaitingOptions,
    ordering=Lamport,
)

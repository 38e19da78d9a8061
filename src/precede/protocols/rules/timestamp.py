"""`timestamp`: a rule that sorts by the sender's clock, with a guard against clocks that are ahead.

A message from a clock that is ahead would stay at the bottom, below everything that is written later. Mesh
chats therefore count a time in the future as now: bitchat sorts by `min(rawTs, Date())`, Secure Scuttlebutt
clients by the earlier of the asserted time and the time of reception. A clock that is behind has no guard.
"""

from typing import Annotated, Any, Final

from precede.core.instants import Duration, Instant
from precede.core.node import Context
from precede.protocols.layered.envelope import Envelope
from precede.protocols.options import duration
from precede.protocols.registry import Entry
from precede.protocols.rules.rule import NUMBER_BYTES, Rule, WaitingOptions


class TimestampOptions(WaitingOptions, frozen=True, kw_only=True):
    """The options of `timestamp`."""

    guard: Annotated[
        Duration, duration("how far a message's time may be ahead of the own clock; more counts as this much")
    ] = 0


class Timestamp(Rule):
    """Sorts by `Envelope.born`, the sender's clock, which every envelope carries."""

    name = "timestamp"
    stamp_type = None

    def __init__(self, context: Context[TimestampOptions]) -> None:
        super().__init__(context)
        self._guard: Duration = context.options.guard

    def stamp_now(self, now: Instant) -> tuple[Any, int, int]:
        return None, NUMBER_BYTES, 1

    def number_of(self, envelope: Envelope, now: Instant) -> int:
        return min(envelope.born, now + self._guard)


ENTRY: Final = Entry(
    name="timestamp",
    title="a rule of apps: sort by the sender's clock, with a guard against clocks that are ahead",
    paper="(practice today: bitchat, Secure Scuttlebutt clients, most chats)",
    order="none",
    worlds=("contacts", "point_to_point", "flood"),
    options=TimestampOptions,
    ordering=Timestamp,
)

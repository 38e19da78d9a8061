"""`sds`: the rule of Scalable Data Sync (SDS), the draft of Vac (vacp2p/rfc-index, vac/raw/sds.md, status raw).

A message carries a Lamport time, the ids of the last few messages in the sender's log, and a Bloom filter of
the ids that the sender has received. It waits until these messages are in the receiver's log ("Receive
Message"), and is then inserted by Lamport time, then by id ("Deliver Message", "Resolve Conflicts").

The last two messages of a log are not always all that the sender had seen last: with three concurrent messages
at the bottom, one of them is named by nobody. So an answer can be shown before its question.

* The draft starts the Lamport time at the clock in nanoseconds; ours counts in microseconds, as our clocks do.
* The draft marks dependencies as "irretrievably lost" after "a predetermined amount of time" and does not say
  what then happens to the message; we show it, because a chat that hides what it has helps nobody.
* The draft rebroadcasts unacknowledged messages, asks a store for missing ones, sends sync messages; we leave
  that to the dissemination, because an ordering sends nothing. The acknowledgements are counted as the draft
  says, in the size `own_unacknowledged`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from precede.core.effects import Effect, Effects
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.node import Context, Saved
from precede.protocols.layered.envelope import Envelope
from precede.protocols.options import duration, option
from precede.protocols.registry import Entry
from precede.protocols.rules.bloom import BloomFilter
from precede.protocols.rules.lamport import LARGEST, LamportTime
from precede.protocols.rules.rule import NUMBER_BYTES, Rule, RuleOptions

LONGEST_HISTORY: Final = 16
MOST_IN_FILTER: Final = 10_000
"""The capacity of the filter in the draft's implementations, and the largest that we accept."""
_LONGEST_FILTER: Final = BloomFilter(MOST_IN_FILTER).size_bytes
_ID_BYTES: Final = 12
_FILTERS_THAT_ACKNOWLEDGE: Final = 2
"""In how many received filters an own message must be before it counts as acknowledged."""


class SdsStamp(Struct, frozen=True, array_like=True):
    """The order data of a message: Lamport time, causal history, Bloom filter."""

    lamport: LamportTime
    history: Annotated[tuple[MessageId, ...], Meta(max_length=LONGEST_HISTORY)]
    filter: Annotated[bytes, Meta(max_length=_LONGEST_FILTER)]


class SdsOptions(RuleOptions, frozen=True, kw_only=True):
    """The options of `sds`."""

    wait: Annotated[
        Duration | None,
        duration("show a message after this wait though its causal history is missing; none: wait for ever"),
    ] = None
    history: Annotated[
        int, option("ids in the causal history; the draft recommends two", least=1, most=LONGEST_HISTORY)
    ] = 2
    filter: Annotated[int, option("capacity of the Bloom filter in ids", least=2, most=MOST_IN_FILTER)] = 200


class Sds(Rule):
    """Keeps the local log (the screen), the incoming buffer (`_pending`) and the unacknowledged messages.

    `_waiting_for` is an index of the waiting messages by one message of their history that is missing.
    """

    name = "sds"
    stamp_type = SdsStamp

    def __init__(self, context: Context[SdsOptions]) -> None:
        super().__init__(context)
        self._history: int = context.options.history
        self._filter = BloomFilter(context.options.filter)
        self._started: Instant = 0
        self._waiting_for: dict[MessageId, list[MessageId]] = {}
        self._unacknowledged: dict[MessageId, int] = {}

    def start(self, now: Instant, saved: Saved) -> Effects:
        self._started = now
        effects = super().start(now, saved)
        for id in self._screen.last(MOST_IN_FILTER):
            if not self._own.is_own(id):
                self._filter.add(id)
        return effects

    def stamp_now(self, now: Instant) -> tuple[Any, int, int]:
        lamport = min(max(self._screen.last_number(), self._started) + 1, LARGEST)
        stamp = SdsStamp(lamport, self._screen.last(self._history), self._filter.written())
        self._unacknowledged[self._own.next_id()] = 0
        size = NUMBER_BYTES + _ID_BYTES * len(stamp.history) + len(stamp.filter)
        return stamp, size, 1 + len(stamp.history)

    def number_of(self, envelope: Envelope, now: Instant) -> int:
        stamp: SdsStamp = envelope.stamp
        return stamp.lamport

    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        envelope, effects = super().stamp(payload, now, to, lifetime)
        self._wake(envelope.message.id, effects)  # only a liar's message waits for one that did not exist
        return envelope, effects

    def arrive(self, envelopes: Any, now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            self._review(envelope.stamp)
            self._filter.add(envelope.message.id)
            missing = self._missing(envelope)
            if missing is None:
                self._show_all(envelope, effects)
            else:
                self._waiting_for.setdefault(missing, []).append(envelope.message.id)
                self.hold(envelope, self.number_of(envelope, now), now, effects)

    def expire(self, id: MessageId, now: Instant, effects: list[Effect]) -> None:
        """Show a message whose causal history is lost, and the messages that waited for it alone."""
        envelope, _, _ = self._pending.pop(id)
        self._show_all(envelope, effects)

    def _missing(self, envelope: Envelope) -> MessageId | None:
        """Return one message of the causal history that is not in the local log, or None."""
        return next((id for id in envelope.stamp.history if id not in self._screen), None)

    def _show_all(self, first: Envelope, effects: list[Effect]) -> None:
        """Show this message, then the messages whose history is complete with it, and so on."""
        self.show(first, first.stamp.lamport, effects)
        self._held.release(first.message.id, effects)
        self._wake(first.message.id, effects)

    def _wake(self, id: MessageId, effects: list[Effect]) -> None:
        """Show the messages that waited for this one and whose history is complete now, and so on."""
        shown = [id]
        for id in shown:  # noqa: PLR1704
            for waiting in self._waiting_for.pop(id, ()):
                if waiting not in self._pending:  # its wait has expired
                    continue
                envelope = self._pending[waiting][0]
                missing = self._missing(envelope)
                if missing is not None:
                    self._waiting_for.setdefault(missing, []).append(waiting)
                    continue
                del self._pending[waiting]
                self.show(envelope, envelope.stamp.lamport, effects)
                self._held.release(waiting, effects)
                shown.append(waiting)

    def _review(self, stamp: SdsStamp) -> None:
        """Review the acknowledgements of own messages ("Review ACK Status")."""
        for id in stamp.history:
            self._unacknowledged.pop(id, None)
        for id in self._filter.may_hold(stamp.filter, list(self._unacknowledged)):
            self._unacknowledged[id] += 1
            if self._unacknowledged[id] == _FILTERS_THAT_ACKNOWLEDGE:
                del self._unacknowledged[id]

    def waits_for(self, envelope: Envelope) -> tuple[MessageId, ...]:
        return tuple(id for id in envelope.stamp.history if id not in self._screen)

    def sizes(self) -> Mapping[str, int]:
        return {**super().sizes(), "own_unacknowledged": len(self._unacknowledged)}


ENTRY: Final = Entry(
    name="sds",
    title="a rule of apps: Scalable Data Sync, the last ids as causal history, sorted by Lamport time",
    paper="(Vac's draft of Scalable Data Sync, status raw; Status, Waku)",
    order="none",
    worlds=("contacts", "point_to_point", "flood"),
    options=SdsOptions,
    ordering=Sds,
)

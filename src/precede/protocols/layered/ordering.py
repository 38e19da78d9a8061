"""The interface of an ordering: it decides when a message may be delivered.

An ordering stamps the node's own messages and holds received ones back until their order allows delivery. It
runs over any dissemination (`dissemination.py`); `LayeredNode` joins the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, Deliver, Effect, Effects, Key
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.node import Saved, Waiting
from precede.core.peaks import Sizes
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.parsed_envelopes import Batch, ParsedEnvelope


@mypyc_attr(allow_interpreted_subclasses=True)
class Ordering(ABC):
    """Decides when a message may be delivered. Its timer keys never begin with "net" (see `Dissemination`)."""

    draining: ClassVar[tuple[str, ...]] = ()
    """Names in `sizes()` that must be 0 once the network has healed and everything due was delivered."""

    stamp_type: ClassVar[Any] = Any
    """The type of its stamps: a driver that decodes untrusted bytes converts and checks them with it."""

    renewable: ClassVar[bool] = False
    """Can a new incarnation of a node continue from the state of an earlier one, as from a restored backup?"""

    knows_for_ever: ClassVar[bool] = True
    """False if `knows` forgets messages. Then the dissemination must remember every id it has seen."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Begin, with the state that was persisted before a restart."""
        return NOTHING

    @abstractmethod
    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        """Stamp a new own message; returns its envelope and its effects (Persist, Accept, Deliver)."""

    @abstractmethod
    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        """Take messages received for the first time; append deliveries, timers and discards."""

    def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        """Do the same as `arrive` with envelopes that are already parsed. Override it where that is faster."""
        self.arrive(batch.envelopes(), now, effects)

    @abstractmethod
    def knows(self, id: MessageId) -> bool:
        """Is this message delivered, waiting or discarded? Then another copy of it is a duplicate."""

    def dropped(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """Called when the dissemination removes a message that expired or was evicted."""

    def predecessors(self, id: MessageId, stamp: Any) -> tuple[MessageId, ...] | None:
        """Read-only: the messages that directly precede one with this stamp, as plain data; None if unknown."""
        return None

    def waits_since(self) -> Instant | None:
        """Read-only: since when the message waits that has waited longest; None if this is not known."""
        return None

    def cut(self) -> bytes | None:
        """Read-only: as `Node.cut`; the following three are those of `Node` too."""
        return None

    def can_adopt(self, cut: bytes) -> bool:
        return False

    def adopt(self, cut: bytes, now: Instant, effects: list[Effect]) -> None:
        """Go on from a cut that `can_adopt` has accepted."""

    def delivered_tops(self) -> Sequence[tuple[NodeId, int, int]] | None:
        return None

    def unfinished(self) -> Sequence[Envelope]:
        """Return own messages that a crash may have kept from being sent. Called once, after `start`."""
        return ()

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """Handle one of the ordering's own timers."""

    def waiting(self) -> Sequence[Waiting]:
        return ()

    def sizes(self) -> Mapping[str, int]:
        return {}

    def counted_sizes(self) -> Sizes | None:
        """Read-only: the same sizes and their peaks, where this part keeps them as `Sizes`."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchOrdering(Ordering):
    """An ordering that takes parsed envelopes. Where a subclass overrides `arrive`, batches go through that.

    `_arrive_is_own` says whether one does; it is None before the first batch.
    """

    _arrive_is_own: bool | None = None

    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        self.take_envelopes(envelopes, now, effects)

    def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        is_own = self._arrive_is_own
        if is_own is None:
            is_own = type(self).arrive is not BatchOrdering.arrive or "arrive" in getattr(self, "__dict__", ())
            self._arrive_is_own = is_own
        if is_own:
            self.arrive(batch.envelopes(), now, effects)
        else:
            self.take_parsed(batch.contents, now, effects)

    def take_envelopes(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        """Do the same as `take_parsed`. Override it where a whole `ParsedEnvelope` is more than needed."""
        self.take_parsed([ParsedEnvelope(envelope) for envelope in envelopes], now, effects)

    @abstractmethod
    def take_parsed(self, contents: list[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        """Take messages received for the first time. Many nodes may share their parsed envelopes."""


@mypyc_attr(allow_interpreted_subclasses=True)
class OneByOneOrdering(BatchOrdering):
    """An ordering that takes messages one at a time."""

    def take_envelopes(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        for envelope in envelopes:
            self.take(envelope, Deliver(envelope.message, envelope), now, effects)

    def take_parsed(self, contents: list[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        for parsed in contents:
            self.take(parsed.envelope, parsed.deliver, now, effects)

    @abstractmethod
    def take(self, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]) -> None:
        """Take a message received for the first time. `deliver` delivers it; many nodes may share it."""

"""The interface of an ordering: it decides when a message may be delivered.

An ordering stamps the node's own messages and holds received ones back until their order allows delivery. It
runs over any dissemination (`dissemination.py`); `LayeredNode` joins the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, Effect, Effects, Key
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.node import Saved, Waiting
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.parsed_envelopes import Batch


@mypyc_attr(allow_interpreted_subclasses=True)
class Ordering(ABC):
    """Decides when a message may be delivered. Timer keys it uses are passed to `timer` unchanged."""

    draining: ClassVar[tuple[str, ...]] = ()
    stamp_type: ClassVar[Any] = Any
    """What its stamps are, so that a driver which decodes untrusted bytes can convert and check them."""

    knows_for_ever: ClassVar[bool] = True
    """Does `knows` answer for all that it was ever given? Else the layer below has to remember."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    @abstractmethod
    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        """A new own message: its envelope, and the effects (persist, Accept, own Deliver) before it is sent."""

    @abstractmethod
    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        """First copies, already announced with `Arrive`: append deliveries, timers, discards."""

    def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        """The same, for an ordering that is glad to have them opened."""
        self.arrive(batch.envelopes(), now, effects)

    @abstractmethod
    def knows(self, id: MessageId) -> bool:
        """Is this message delivered, waiting or given up? Then another copy is a duplicate."""

    def dropped(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """The dissemination gives a message up (expired or evicted): notice before removal."""

    def unfinished(self) -> Sequence[Envelope]:
        """Own messages whose sending may have been cut by a crash: asked once, after `start`."""
        return ()

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """One of the ordering's own timers is due."""

    def waiting(self) -> Sequence[Waiting]:
        return ()

    def sizes(self) -> Mapping[str, int]:
        return {}

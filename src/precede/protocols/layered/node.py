"""`LayeredNode`: an ordering joined to a dissemination.

Every ordering runs over every dissemination. A protocol without these two layers (DRIFT, VCube, WAS, PRS)
implements `Node` directly and does not use this package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import Effect, Effects, Key, Medium
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node, Saved, Waiting
from precede.core.peaks import Peaks
from precede.protocols.layered.dissemination import Dissemination, is_net
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import batch_of

PATIENCE: Final[Duration] = 5 * SECOND
"""A message that has waited for so long may wait for one that no neighbour carries any more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LayeredNode(Node):
    """A node made of an ordering and a dissemination: forwards each input to the one it concerns."""

    def __init__(self, ordering: Ordering, dissemination: Dissemination) -> None:
        self.ordering = ordering
        self.dissemination = dissemination
        self._counts_sizes = True  # until `note_sizes` finds a part that does not keep them as `Sizes`

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects = [*self.ordering.start(now, saved), *self.dissemination.start(now, saved)]
        for envelope in self.ordering.unfinished():
            self.dissemination.spread(envelope, now, effects)
        return effects

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None and not self.dissemination.takes_destinations:
            raise Refused(
                "this dissemination carries every message to every node: for destination sets use a multicast"
                " protocol (prs) or another dissemination"
            )
        envelope, effects = self.ordering.stamp(payload, now, to, lifetime)
        self.dissemination.spread(envelope, now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        return self.dissemination.receive(packet, sender, now, over)

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return self.dissemination.sent(key, now, ok)

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.dissemination.link_up(peer, now, over)

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.dissemination.link_down(peer, now, over)

    def leave(self, now: Instant) -> Effects:
        return self.dissemination.leave(now)

    def timer(self, key: Key, now: Instant) -> Effects:
        if is_net(key):
            return self.dissemination.timer(key, now)
        effects: list[Effect] = []
        self.ordering.timer(key, now, effects)
        return effects

    def described(
        self, id: MessageId, content: Sequence[Any]
    ) -> tuple[Instant | None, tuple[MessageId, ...] | None]:
        if not content:
            return None, None
        stamp, *_, born = content  # the fields of an `Envelope` behind its message
        return born or None, self.ordering.predecessors(id, stamp)

    def lacks_state(self, now: Instant) -> bool:
        since = self.ordering.waits_since()
        return since is not None and now - since >= PATIENCE

    def cut(self) -> bytes | None:
        return self.ordering.cut()

    def can_adopt(self, cut: bytes, now: Instant) -> bool:
        return self.ordering.can_adopt(cut)

    def adopt(self, cut: bytes, now: Instant) -> Effects:
        effects: list[Effect] = []
        self.ordering.adopt(cut, now, effects)
        return effects

    def delivered_tops(self) -> Sequence[tuple[NodeId, int, int]] | None:
        return self.ordering.delivered_tops()

    def history_packet(self, messages: Sequence[tuple[Message, Sequence[Any]]]) -> Packet | None:
        envelopes = [Envelope(message, *content) for message, content in messages if content]
        return self.dissemination.history_packet(batch_of(envelopes)) if envelopes else None

    def waiting(self) -> Sequence[Waiting]:
        return self.ordering.waiting()

    def drains(self) -> tuple[str, ...]:
        return self.ordering.draining + self.dissemination.draining

    def sizes(self) -> Mapping[str, int]:
        return {**self.ordering.sizes(), **self.dissemination.sizes()}

    def note_sizes(self, peaks: Peaks) -> None:
        if not self._counts_sizes:
            peaks.note(self.sizes())
            return
        ordering, dissemination = self.ordering.counted_sizes(), self.dissemination.counted_sizes()
        if peaks.parts:
            return
        if (
            ordering is not None
            and dissemination is not None
            and set(ordering.names).isdisjoint(dissemination.names)
            and type(self).sizes is LayeredNode.sizes
            and all(_sizes_are_counted(part) for part in (self.ordering, self.dissemination))
        ):
            peaks.parts = [ordering, dissemination]
        else:
            self._counts_sizes = False
            peaks.note(self.sizes())


def _sizes_are_counted(part: Ordering | Dissemination) -> bool:
    """True if `sizes` and `counted_sizes` are of one class: if not, a subclass has sizes of its own."""
    for cls in type(part).__mro__:
        own = [name in vars(cls) for name in ("sizes", "counted_sizes")]
        if any(own):
            return all(own) and "sizes" not in getattr(part, "__dict__", ())
    return False

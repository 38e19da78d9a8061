"""State transfer in a total order: a node goes on at the position of another, with its application's state."""

from __future__ import annotations

from typing import Final

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.effects import Effect, Effects
from precede.core.instants import SECOND, Duration, Instant
from precede.core.node import Node
from precede.protocols.drift2006.groups import Groups
from precede.protocols.drift2006.join import Joining
from precede.protocols.drift2006.packets import Carried, CheckpointPacket
from precede.protocols.drift2006.state import NO_GROUP, DriftState
from precede.protocols.floods.reliable_floods import Floods

PATIENCE: Final[Duration] = 5 * SECOND
"""Floods that were missing for so long without any progress may be floods that nobody keeps any more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TransferableNode(Node):
    """The inputs of a DRIFT node for state transfer. A cut is a checkpoint: a position in the order."""

    state: DriftState
    floods: Floods[Carried]
    groups: Groups
    joining: Joining

    def await_state(self) -> None:
        self.groups.awaits_state = True

    def lacks_state(self, now: Instant) -> bool:
        floods = self.floods
        stuck = any(floods.missing_for(stream, now) >= PATIENCE for stream in floods.gaps.values())
        return self.groups.lacks_state or stuck

    def cut(self) -> bytes | None:
        """Return this node's position as an encoded checkpoint; None in no group."""
        if self.state.group == NO_GROUP:
            return None
        return msgspec.msgpack.encode(self.groups.checkpoint(self.state.me).packet)

    def can_adopt(self, cut: bytes, now: Instant) -> bool:
        """Is a cut a position in this node's group, or in one that it may enter, and not before its own?"""
        state = self.state
        try:
            checkpoint = msgspec.msgpack.decode(cut, type=CheckpointPacket)
        except msgspec.MsgspecError:
            return False
        if state.group == NO_GROUP:
            return checkpoint.extra.group >= 0 and self.groups.election.may_enter(checkpoint, now)
        done = {(source, serial): number for source, serial, number in checkpoint.done}
        has_all = all(done.get(id, 0) >= number for id, (number, _) in state.delivered.items())
        return checkpoint.extra.group == state.group and has_all

    def adopt(self, cut: bytes, now: Instant) -> Effects:
        """Go on from a cut that `can_adopt` has accepted: the application has the state there."""
        checkpoint = msgspec.msgpack.decode(cut, type=CheckpointPacket)
        effects: list[Effect] = []
        if self.state.group == NO_GROUP:
            self.groups.enter_at(checkpoint, now, effects)
        else:
            self.groups.skip(checkpoint, now, effects)
        self.joining.take_up_unused(now, effects)
        self.joining.apply_if_needed(now, effects)
        self._progress(now, effects)
        return effects

    def _progress(self, now: Instant, effects: list[Effect]) -> None:
        """Deliver what may be delivered now."""

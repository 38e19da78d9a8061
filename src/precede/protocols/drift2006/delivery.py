"""Moves of a DRIFT node in the total order (drift2006): delivery of Figure 3, cuts, checkpoints, new groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import final

from precede.core.effects import Discard, Effect, Observe, Persist
from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.core.node import Waiting
from precede.protocols.drift2006.fast.prepared import PreparedFlood
from precede.protocols.drift2006.packets import Carried, CheckpointPacket, Flood
from precede.protocols.drift2006.saved import OF_GROUP
from precede.protocols.drift2006.state import DriftState, set_sources
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId


@final
class Delivery:
    """Delivers floods that nothing earlier can precede and, with crashes, that a majority of voters holds."""

    def __init__(self, state: DriftState) -> None:
        self._state = state
        self._pending = state.pending
        self._view = state.view

    def deliver_safe(self, now: Instant, effects: list[Effect]) -> None:
        """Deliver all floods that may be delivered now, and raise this node's floor to the last safe one."""
        state, view = self._state, self._view
        while (placed := self._pending.pop_safe()) is not None:
            if view.crash_tolerant or state.cleared:
                state.cleared.append(placed)
                state.raise_floor(placed[0])
            else:
                self._deliver(placed[4], now, effects)
        while state.cleared and view.majority_holds(state.cleared[0][0]):
            self._deliver(state.cleared.popleft()[4], now, effects)

    def _deliver(self, flood: Flood, now: Instant, effects: list[Effect]) -> None:
        """Move this node's position in the total order behind a flood. Deliver its message if that is new."""
        state = self._state
        prepared: PreparedFlood = flood.prepared
        id = prepared.stream
        state.delivered[id] = (prepared.number, prepared.timestamp)
        state.position = prepared.timestamp
        state.progress_at = now
        number = prepared.message_number
        is_new = prepared.message is not None and number > state.last_messages.get(prepared.author, 0)
        if is_new:
            state.last_messages[prepared.author] = number
        if state.durable:
            effects.append(Persist(("done", *id), (*state.delivered[id], state.last_message(id))))
        if is_new and state.destination and prepared.deliver is not None:
            effects.append(prepared.deliver)

    def observe_tof(self, effects: list[Effect]) -> None:
        """Report the messages that TOF would deliver now."""
        state = self._state
        if state.shadow is None:
            return
        while (flood := state.shadow.pop_safe()) is not None:
            if flood.message is not None and state.destination:
                effects.append(Observe("tof", flood.message))

    def waiting(self) -> Sequence[Waiting]:
        """List the undelivered messages in their order; each waits for the one before it.

        A first one that is not safe waits for sources whose clocks are too low, written as their message 0.
        """
        state = self._state
        placed = sorted(state.pending.heap)
        lacking = state.seen.all_lacking(placed[0][0]) if placed and not state.cleared else []
        before = tuple(MessageId(source, 0, 0) for source, _ in lacking)
        waiting = []
        for _, _, _, _, flood, since in [*state.cleared, *placed]:
            if flood.message is not None:
                waiting.append(Waiting(flood.message.id, before, since))
                before = (flood.message.id,)
        return waiting


def take_back(state: DriftState, id: StreamId, end: int) -> list[Message]:
    """Remove the undelivered floods behind the `end` that a view set for a stream. Return their messages."""
    taken = _take(state, id, lambda number: number > end)
    state.unadmitted[id] = [flood for flood in state.unadmitted.get(id, ()) if flood.number <= end]
    if not state.unadmitted[id]:
        del state.unadmitted[id]
    return [flood.message for flood in taken if flood.message is not None]


def skip_to(
    state: DriftState, floods: Floods[Carried], checkpoint: CheckpointPacket, effects: list[Effect]
) -> None:
    """Move this node's position in the total order to a checkpoint's, and discard the floods before it."""
    for source, serial, number in checkpoint.done:
        id = (source, serial)
        if number <= state.delivered_number(id):
            continue
        state.delivered[id] = (number, 0)
        if state.durable:
            effects.append(Persist(("done", *id), (number, 0, state.last_message(id))))
        for flood in _take(state, id, number.__ge__):
            if flood.message is not None and state.destination:
                effects.append(Discard(flood.message, "skipped"))
        for ready in floods.skip_to(floods.stream(id), number):
            assert isinstance(ready, Flood)
            state.unadmitted.setdefault(id, []).append(ready)
    state.clock = max(state.clock, checkpoint.timestamp)
    state.position = max(state.position, checkpoint.timestamp)


def leave_group(state: DriftState, floods: Floods[Carried], effects: list[Effect]) -> None:
    """Forget everything about this node's group, in memory and in the store. Discard undelivered messages."""
    for stream in floods.streams.values():
        for flood in stream.kept.values():
            assert isinstance(flood, Flood)
            state.forget(flood, effects)
    for *_, flood, _ in [*state.cleared, *sorted(state.pending.heap)]:
        if flood.message is not None and state.destination:
            effects.append(Discard(flood.message, "abandoned"))
    if state.durable:
        effects += [
            Persist((name, *id), None)
            for id in {**state.admitted, **state.view.ends}
            for name in ("admitted", "ended", "done")
        ]
        effects += [Persist(name, None) for name in OF_GROUP if name != "origin" or state.origin is not None]
    state.own_stream = state.last_own_stream = state.origin = None
    state.delivered, state.admitted, state.unadmitted = {}, {}, {}
    state.pending.heap = []
    state.cleared = deque()
    floods.forget_all()
    state.reset_position()
    state.view.sponsors = {}
    set_sources(state, floods, (), {})


def _take(state: DriftState, id: StreamId, unwanted: Callable[[int], bool]) -> list[Flood]:
    """Remove and return the undelivered floods of a stream for whose number `unwanted` is True, in order."""
    taken = state.pending.remove(lambda flood: (flood.source, flood.serial) == id and unwanted(flood.number))
    kept = [placed for placed in state.cleared if placed[1:3] != id or not unwanted(placed[3])]
    if len(kept) < len(state.cleared):
        taken += [placed[4] for placed in state.cleared if placed[1:3] == id and unwanted(placed[3])]
        state.cleared = deque(kept)
    return sorted(taken, key=lambda flood: flood.number)

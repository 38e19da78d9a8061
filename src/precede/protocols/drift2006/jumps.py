"""Where a DRIFT node's place in the order changes otherwise than by delivering: cuts, checkpoints, restarts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from precede.core.effects import Discard, Effect, Persist
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.protocols.drift2006.packets import CheckpointPacket, Flood
from precede.protocols.drift2006.saved import OF_GROUP, SavedState
from precede.protocols.floods.reliable_floods import StreamId

if TYPE_CHECKING:
    from precede.protocols.drift2006.node import DriftNode


def take_back(node: DriftNode, id: StreamId, end: int) -> list[Message]:
    """A stream ends: what is in hand behind that was delivered nowhere. Returns those messages."""
    taken = _take(node, id, lambda number: number > end)
    node.strangers[id] = [flood for flood in node.strangers.get(id, ()) if flood.number <= end]
    if not node.strangers[id]:
        del node.strangers[id]
    return [flood.message for flood in taken if flood.message is not None]


def go_to(node: DriftNode, packet: CheckpointPacket, effects: list[Effect]) -> None:
    """Continue behind a place in the order that a neighbour has reached."""
    for source, life, number in packet.done:
        id = (source, life)
        if number <= node.done.get(id, (0, 0))[0]:
            continue
        node.done[id] = (number, 0)
        if node.durable:
            effects.append(Persist(("done", *id), node.done[id]))
        for flood in _take(node, id, number.__ge__):
            if flood.message is not None and node.destination:
                effects.append(Discard(flood.message, "skipped"))
        for ready in node.floods.skip_to(node.floods.stream(id), number):
            assert isinstance(ready, Flood)
            node.strangers.setdefault(id, []).append(ready)
    node.clock = max(node.clock, packet.timestamp)
    node.position = max(node.position, packet.timestamp)


def resume(node: DriftNode, saved: SavedState, now: Instant, effects: list[Effect]) -> None:
    """Everything as it was persisted."""
    node.done = dict(saved.done)
    node.position = max([timestamp for _, timestamp in saved.done.values()], default=0)
    ends = node.views.ends
    node.admitted = {id: timestamp for id, timestamp in saved.admitted.items() if ends.get(id) != 0}
    for id, (number, _) in saved.done.items():
        node.floods.stream(id, number)
    live = [id for id in node.admitted if id not in ends or node.floods.received(id) < ends[id]]
    clocks = {id: max(saved.admitted[id], node.done.get(id, (0, 0))[1]) for id in live}
    node.set_sources(live, clocks)
    node.own = saved.own
    if saved.own is not None and saved.own in node.seen.index and saved.own not in ends:
        sent = [flood.number for flood in saved.held if (flood.source, flood.life) == saved.own]
        node.become_source(saved.own, max([*sent, node.floods.stream(saved.own).received]), effects)
    node.views.clear(node.position)
    for flood in saved.held:
        stream = node.floods.stream((flood.source, flood.life))
        if flood.number <= stream.received:
            stream.kept[flood.number] = flood
        elif not node.views.is_cut(stream.id, flood.number):
            for ready in node.floods.first_copy(stream, flood.number, flood, now, effects):
                assert isinstance(ready, Flood)
                node.process(ready, now, effects)


def reset(node: DriftNode, effects: list[Effect]) -> None:
    """Out of a group for good: nothing of it is kept, and what was not delivered in it is given up."""
    for stream in node.floods.streams.values():
        for flood in stream.kept.values():
            assert isinstance(flood, Flood)
            node.forget(flood, effects)
    for *_, flood, _ in [*node.cleared, *sorted(node.pending.heap)]:
        if flood.message is not None and node.destination:
            effects.append(Discard(flood.message, "abandoned"))
    if node.durable:
        effects += [
            Persist((name, *id), None)
            for id in {**node.admitted, **node.views.ends}
            for name in ("admitted", "ended", "done")
        ]
        effects += [Persist(name, None) for name in OF_GROUP]
    node.mine = node.own = None
    node.done, node.admitted, node.strangers = {}, {}, {}
    node.pending.heap = []
    node.cleared = deque()
    node.floods.forget_all()
    node.views.sponsors = {}
    node.set_sources((), {})


def _take(node: DriftNode, id: StreamId, unwanted: Callable[[int], bool]) -> list[Flood]:
    """Out of what waits: the floods of a stream with these numbers, in their order."""
    taken = node.pending.remove(lambda flood: (flood.source, flood.life) == id and unwanted(flood.number))
    kept = [placed for placed in node.cleared if placed[1:3] != id or not unwanted(placed[3])]
    if len(kept) < len(node.cleared):
        taken += [placed[4] for placed in node.cleared if placed[1:3] == id and unwanted(placed[3])]
        node.cleared = deque(kept)
    return sorted(taken, key=lambda flood: flood.number)

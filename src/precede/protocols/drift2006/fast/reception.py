"""The fast path of a DRIFT node: the first copy of a usual flood (drift2006, Figure 3).

A flood is usual if it is the next message of its source, and the node lacks nothing. Large runs spend most of
their time here (`python -m benchmarks.drift`). The effects are those of the general path in `node`.
"""

from __future__ import annotations

from heapq import heappush
from typing import final

from precede.core.effects import Effect
from precede.core.instants import Instant
from precede.protocols.drift2006.delivery import Delivery
from precede.protocols.drift2006.dummies import Dummies
from precede.protocols.drift2006.fast.prepared import PreparedFlood
from precede.protocols.drift2006.packets import Carried, Flood
from precede.protocols.drift2006.state import USUAL_LEAP, DriftState
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import Stream


@final
class FastReception:
    """Receives usual floods. `relays`: the node relays floods; `waits`: it does so after a random time."""

    def __init__(
        self,
        state: DriftState,
        floods: Floods[Carried],
        dummies: Dummies,
        delivery: Delivery,
        relays: bool,
        waits: bool,
    ) -> None:
        self._state = state
        self._seen = state.seen
        self._view = state.view
        self._floods = floods
        self._streams = floods.streams
        self._gaps = floods.gaps
        self._answers = floods.answers
        self._dummies = dummies
        self._delivery = delivery
        self._relays = relays
        self._waits = waits

    def usual_stream(self, flood: PreparedFlood) -> Stream[Carried] | None:
        """Return the stream of a usual flood: its source's next message, with nothing missing or ended."""
        stream = self._streams.get(flood.stream)
        is_usual = (
            stream is not None
            and flood.number == stream.received + 1
            and flood.timestamp - self._state.clock <= USUAL_LEAP
            and flood.plain
            and flood.source != self._state.me
            and not self._state.durable
            and not self._gaps
            and not self._answers
            and not self._seen.ahead
            and not self._view.ends
            and flood.stream in self._seen.index
        )
        return stream if is_usual else None

    def receive(
        self, flood: Flood, prepared: PreparedFlood, stream: Stream[Carried], table: bytes, now: Instant
    ) -> list[Effect]:
        """Process a usual flood and the table of clocks that came with it."""
        state, seen = self._state, self._seen
        state.last_heard_at = now
        number, timestamp = prepared.number, prepared.timestamp
        arrive = prepared.arrive
        effects: list[Effect] = [arrive] if state.destination and arrive is not None else []
        self._floods.first_copy(stream, number, flood, now, effects)
        column = seen.index[prepared.stream]
        state.clock = clock = (state.clock if state.clock > timestamp else timestamp) + 1
        if state.own_stream is None:
            seen.advance(column, number, timestamp)
        else:
            seen.advance_two(column, number, timestamp, state.own_column, state.floods_sent, clock)
        heappush(state.pending.heap, (timestamp, prepared.source, prepared.serial, number, flood, now))
        if state.shadow is not None:
            state.shadow.push(flood)
            if state.own_stream is not None:
                state.shadow.clock(state.own_stream, clock)
        if not self._dummies.waiting:
            self._dummies.watch(now, effects)
        seen.keep(table)
        if self._relays and self._waits:
            self._floods.relay(stream.id, number, flood, now, effects)
        elif self._relays:
            self._floods.transmit(prepared.relay_key, flood, effects)
        self._delivery.deliver_safe(now, effects)
        return effects

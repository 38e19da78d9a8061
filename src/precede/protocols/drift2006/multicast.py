"""TO-multicast and receipt processing of Figure 3 (drift2006), and admissions of sources (section 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from precede.core.effects import Accept, Effect, Persist
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.protocols.drift2006.dummies import Dummies
from precede.protocols.drift2006.packets import Carried, Flood
from precede.protocols.drift2006.state import DriftState, set_sources
from precede.protocols.drift2006.votes import Votes
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId

Admitted: TypeAlias = Callable[[StreamId, int, Instant, list[Effect]], None]
"""A callback for an admitted stream, which may be this node's own, with the admission's timestamp."""

Complete: TypeAlias = Callable[[StreamId, Instant, list[Effect]], None]
"""A function that removes a source whose last flood has arrived."""


@final
class Multicast:
    """Stamps and floods this node's messages, and processes every flood whose predecessors are here."""

    def __init__(
        self,
        state: DriftState,
        floods: Floods[Carried],
        dummies: Dummies,
        votes: Votes,
        admitted: Admitted,
        complete: Complete,
    ) -> None:
        self._state = state
        self._floods = floods
        self._dummies = dummies
        self._votes = votes
        self._admitted = admitted
        self._complete = complete

    def send(
        self,
        now: Instant,
        effects: list[Effect],
        message: Message | None = None,
        admits: StreamId | None = None,
        closes: bool = False,
        accept: bool = False,
    ) -> None:
        """TO-multicast of Figure 3: stamp a message, an admission or the end of our stream, and flood it.

        `accept`: the message is new, so it is accepted before it is sent.
        """
        state = self._state
        own = state.own_stream
        assert own is not None
        state.clock += 1
        state.persist_clock(effects)
        state.floods_sent += 1
        flood = Flood(*own, state.floods_sent, state.clock, message, admits, closes)
        self.flood_own(flood, now, effects, accept)

    def flood_own(self, flood: Flood, now: Instant, effects: list[Effect], accept: bool = False) -> None:
        """Persist, accept, process and transmit a flood of this node."""
        id = (flood.source, flood.serial)
        self._state.keep(flood, effects)
        if accept and flood.message is not None:
            effects.append(Accept(flood.message))
        self._floods.first_copy(self._floods.stream(id), flood.number, flood, now, effects)
        self.process(flood, now, effects)
        self._floods.relay(id, flood.number, flood, now, effects)

    def process(self, flood: Flood, now: Instant, effects: list[Effect]) -> None:
        """Process a flood after all earlier ones of its stream (receipt processing of Figure 3).

        It raises clocks, becomes pending, and may admit a source or close its stream. A flood of a stream whose
        admission has not arrived is kept for later.
        """
        state, seen = self._state, self._state.seen
        id = (flood.source, flood.serial)
        column = seen.index.get(id)
        if column is None:
            state.unadmitted.setdefault(id, []).append(flood)
            return
        timestamp = flood.timestamp
        seen.advance(column, flood.number, timestamp)
        own = state.own_stream
        if id != own:
            state.clock = (state.clock if state.clock > timestamp else timestamp) + 1
            if own is not None:
                state.persist_clock(effects)
                seen.advance(state.own_column, state.floods_sent, state.clock)
        state.pending.push(flood, now)
        if state.shadow is not None:
            state.shadow.push(flood)
            if own is not None:
                state.shadow.clock(own, state.clock)
        if flood.admits is not None:
            self._admit(flood.admits, flood, now, effects)
        if flood.closes or state.view.ends.get(id) == flood.number:
            self._complete(id, now, effects)
        if not self._dummies.waiting:
            self._dummies.watch(now, effects)
        if state.view.crash_tolerant:
            self._votes.watch(now, effects)

    def _admit(self, newcomer: StreamId, flood: Flood, now: Instant, effects: list[Effect]) -> None:
        """Add a source, whose clock begins at the timestamp of its admission, and process its early floods.

        A restart may process an admission again; that has no effect, as the stream may have closed since.
        """
        state, view = self._state, self._state.view
        view.sponsors[newcomer] = (flood.source, flood.serial), flood.number
        if view.ends.get(newcomer) == 0 or newcomer in state.admitted:
            return
        if state.durable:
            effects.append(Persist(("admitted", *newcomer), flood.timestamp))
        state.admitted[newcomer] = flood.timestamp
        set_sources(state, self._floods, [*state.seen.columns, newcomer], {newcomer: flood.timestamp})
        self._admitted(newcomer, flood.timestamp, now, effects)
        for early in state.unadmitted.pop(newcomer, ()):
            self.process(early, now, effects)

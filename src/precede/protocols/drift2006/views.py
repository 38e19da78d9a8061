"""Views of DRIFT: how the sources continue without one that has crashed (drift2006, section 7).

The paper lets a survivor TO-multicast that a source has crashed; we agree on a sequence of *views* outside of
the total order, because that message could never be delivered: the rule still needs the crashed source's clock
(D5). The sources that vote in the current view decide the next one by Paxos (`votes`), with a flush: a view
says where the stream of each removed source ends, and a voter accepts it only when it holds everything up to
there. This is safe always, and live while a majority of the voters is up and connected.

No view may cut off a message that was delivered anywhere. The paper's rule does not ensure that: a node may
deliver a message of a crashed source that no other source received. So with crashes (`suspect_after` is set) a
message is delivered only when a majority of the voters *holds* it. Each voter virtually floods its floor, the
timestamp up to which it holds everything, and freezes it when it takes part in a view change. Two majorities
share a voter, so every flush contains what was delivered.

Joins and announced leaves stay in the total order (`join`). They change the set of sources at once; the set of
voters changes with the next view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from precede.core.effects import Discard, Effect, Key, Persist, SetTimer
from precede.core.instants import MILLISECOND, Instant
from precede.protocols.drift2006.delivery import take_back
from precede.protocols.drift2006.join import Joining
from precede.protocols.drift2006.packet_builder import PacketBuilder
from precede.protocols.drift2006.packets import MOST_ENDS, Carried, Flood, ViewRecord
from precede.protocols.drift2006.state import DriftState, set_sources
from precede.protocols.drift2006.votes import Votes, void_joins
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId, Want

TELL: Final[Key] = ("view", "tell")
_TELL_WITHIN: Final = 200 * MILLISECOND


@final
class Views:
    """Begins and installs views, ends streams, and sends the view to neighbours with an older one."""

    def __init__(
        self,
        state: DriftState,
        floods: Floods[Carried],
        builder: PacketBuilder,
        votes: Votes,
        joining: Joining,
    ) -> None:
        self._state = state
        self._floods = floods
        self._builder = builder
        self._votes = votes
        self._joining = joining
        self._view = state.view
        self._telling = False

    # -- the view ----------------------------------------------------------------------------------------

    def begin(self, record: ViewRecord, now: Instant) -> None:
        """Start in a view: the first one, a saved one, or that of a checkpoint."""
        self._view.ends = {(source, serial): number for source, serial, number in record.ends}
        self._enter(record, now)

    def _enter(self, record: ViewRecord, now: Instant) -> None:
        """Make this the current view; the caller ends the streams that it removes."""
        state, view = self._state, self._view
        view.number = record.number
        state.seen.label(state.group, view.number)
        view.set_voters(record.voters, state.me, state.incarnation)
        self._votes.begin_view()
        state.progress_at = now

    def install(self, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        """Make a decided view the current one: persist it, end the streams that it ends, and send it on.

        An older view is ignored. A view with the present number may still name joins that never took effect.
        """
        state, view = self._state, self._view
        if record.number == view.number:
            self._learn_void_joins(record, now, effects)
        if record.number <= view.number:
            return
        before = view.ends
        view.ends = {**before, **{(source, serial): number for source, serial, number in record.ends}}
        self._enter(record, now)
        void_joins(view.ends, view.sponsors)
        if state.durable:
            effects.append(Persist("view", (state.group, view.record())))
        for id, end in list(view.ends.items()):
            if before.get(id) != end:
                self._end_stream(id, end, now, effects)
        state.raise_floor(view.held_to)
        state.piggyback = None
        effects.append(self._builder.view())
        self._votes.watch(now, effects)

    def _end_stream(self, id: StreamId, end: int, now: Instant, effects: list[Effect]) -> None:
        """Discard a stream's floods behind its end. Remove the source once all floods before it are here."""
        state, floods = self._state, self._floods
        dropped = floods.drop_stream(id, end)
        messages = take_back(state, id, end)
        if id == state.own_stream:
            state.own_stream = None
            self._joining.cut_off(messages, now, effects)
        for flood in dropped:
            assert isinstance(flood, Flood)
            state.forget(flood, effects)
            if flood.message is not None and id[0] != state.me and state.destination:
                effects.append(Discard(flood.message, "cut"))
        if id in state.seen.index:
            stream = floods.stream(id)
            if stream.received >= end:
                self.complete(id, now, effects)
            else:
                floods.heard_of(stream, end, now, effects)
        if end == 0:
            self._remove_stream(id, effects)

    def _remove_stream(self, id: StreamId, effects: list[Effect]) -> None:
        """Remove a stream that ends before its first flood. Digests leave it out, so nobody requests it."""
        self._floods.streams.pop(id, None)
        if self._state.admitted.pop(id, None) is not None and self._state.durable:
            effects.append(Persist(("admitted", *id), None))

    def _learn_void_joins(self, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        """End streams at 0 that a neighbour with the same view says have never begun.

        Only nodes that received a join know that it is void (`void_joins`); the decided view need not name it.
        A node that knows only the numbers of the newcomer's floods would request them for ever.
        """
        state, view = self._state, self._view
        for source, serial, end in record.ends:
            id = (source, serial)
            if len(view.ends) >= MOST_ENDS:
                return  # any member can invent streams
            if end == 0 and id not in view.ends and id not in state.admitted:
                view.ends[id] = 0
                if state.durable:
                    effects.append(Persist(("ended", *id), 0))
                self._end_stream(id, 0, now, effects)

    def complete(self, id: StreamId, now: Instant, effects: list[Effect]) -> None:
        """Remove a source: its stream has ended or closed, and all of its floods are here."""
        state, view = self._state, self._view
        set_sources(state, self._floods, [other for other in state.seen.columns if other != id], {})
        view.ends.setdefault(id, self._floods.stream(id).received)
        if state.durable:
            effects.append(Persist(("ended", *id), view.ends[id]))
        if id == state.own_stream:
            state.own_stream = None
        self._votes.watch(now, effects)

    # -- neighbours --------------------------------------------------------------------------------------

    def compare(self, number: int, now: Instant, effects: list[Effect]) -> None:
        """Compare with a neighbour's view number: send our view soon if ours is later, a digest if older."""
        if number < self._view.number:
            self._tell_soon(now, effects)
        elif number > self._view.number:
            self._floods.trickle.differs(now, effects)

    def requested(self, wants: Sequence[Want], now: Instant, effects: list[Effect]) -> None:
        """Send the view soon if a neighbour requests floods behind a stream's end: it does not know the end."""
        if any(self._view.is_cut((source, serial), last) for source, serial, _, last in wants):
            self._tell_soon(now, effects)

    def _tell_soon(self, now: Instant, effects: list[Effect]) -> None:
        if not self._telling:
            self._telling = True
            effects.append(SetTimer(TELL, now + int(self._state.generator.random() * _TELL_WITHIN)))

    def timer(self, effects: list[Effect]) -> None:
        self._telling = False
        effects.append(self._builder.view())

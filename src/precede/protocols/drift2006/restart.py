"""Restarts a DRIFT node from its saved state; a crash may have fallen between any two writes (see `saved`)."""

from msgspec import Struct

from precede.core.effects import Accept, Effect, Persist
from precede.core.instants import Instant
from precede.core.node import Saved, restore
from precede.protocols.drift2006.join import Joining
from precede.protocols.drift2006.multicast import Multicast
from precede.protocols.drift2006.packets import Carried, Flood, node_incarnation
from precede.protocols.drift2006.saved import SavedState
from precede.protocols.drift2006.state import DriftState, set_sources
from precede.protocols.drift2006.views import Views
from precede.protocols.drift2006.votes import Votes
from precede.protocols.floods.reliable_floods import Floods


class Restart(Struct, eq=False):
    """Puts the parts of a node back to where they were: the same group, position, votes and promises."""

    _state: DriftState
    _floods: Floods[Carried]
    _votes: Votes
    _multicast: Multicast
    _joining: Joining
    _views: Views

    def restore_counters(self, store: Saved) -> None:
        """Restore the counters that outlive every group, so that no number is used twice."""
        state = self._state
        self._joining.attempts = restore(store, "lives", int, 0)
        state.message_number = restore(store, "number", int, 0)
        state.clock = state.persisted_clock = restore(store, "clock", int, 0)

    def restore_group(self, store: Saved, now: Instant, effects: list[Effect]) -> None:
        """Continue in the saved group; floods of this node that it may not have sent are sent now."""
        state, saved = self._state, SavedState.read(store)
        state.group, state.origin = saved.group, saved.origin
        self._views.begin(saved.view, now)
        # The end that a view decided counts, not the one that the source announced when it closed its stream.
        state.view.ends = {**saved.ended, **state.view.ends}
        self._votes.restore(store)
        self._restore_sources(saved, effects)
        self._restore_floods(saved, now, effects)
        for flood in saved.held:
            message = flood.message
            own = message is not None and message.id.source == state.me
            if message is not None and own and message.id.incarnation == state.incarnation:
                effects.append(Accept(message))
            id = (flood.source, flood.serial)
            if id == state.last_own_stream and flood.number > state.delivered_number(id):
                self._floods.relay(id, flood.number, flood, now, effects)
        self._finish_cuts(saved, now, effects)

    def _restore_sources(self, saved: SavedState, effects: list[Effect]) -> None:
        """Restore the position in the order, the set of sources, and this node's own stream."""
        state, floods = self._state, self._floods
        state.delivered = {id: (number, timestamp) for id, (number, timestamp, _) in saved.done.items()}
        for id, (_, _, message_number) in saved.done.items():
            life = (id[0], node_incarnation(id))
            state.last_messages[life] = max(state.last_messages.get(life, 0), message_number)
        state.position = max([timestamp for _, timestamp in state.delivered.values()], default=0)
        ends = state.view.ends
        state.admitted = {id: timestamp for id, timestamp in saved.admitted.items() if ends.get(id) != 0}
        for id, (number, _, _) in saved.done.items():
            floods.stream(id, number)
        sources = [id for id in state.admitted if id not in ends or floods.received(id) < ends[id]]
        clocks = {id: max(saved.admitted[id], state.delivered.get(id, (0, 0))[1]) for id in sources}
        set_sources(state, floods, sources, clocks)
        own = state.last_own_stream = saved.own
        is_of_original = own is not None and node_incarnation(own) != state.incarnation  # this node is a copy
        if own is not None and not is_of_original and own in state.seen.index and own not in ends:
            sent = [flood.number for flood in saved.held if (flood.source, flood.serial) == own]
            state.become_source(own, max([*sent, floods.stream(own).received]), effects)
        state.raise_floor(state.position)

    def _restore_floods(self, saved: SavedState, now: Instant, effects: list[Effect]) -> None:
        """Keep the floods that were delivered, and process the others again."""
        for flood in saved.held:
            stream = self._floods.stream((flood.source, flood.serial))
            if flood.number <= stream.received:
                self._floods.keep(stream, flood.number, flood)
            elif not self._state.view.is_cut(stream.id, flood.number):
                for ready in self._floods.first_copy(stream, flood.number, flood, now, effects):
                    assert isinstance(ready, Flood)
                    self._multicast.process(ready, now, effects)

    def _finish_cuts(self, saved: SavedState, now: Instant, effects: list[Effect]) -> None:
        """Finish a view change that a crash interrupted: own messages cut off go into the next stream."""
        state, joining = self._state, self._joining
        cut = [flood for flood in saved.held if state.view.is_cut((flood.source, flood.serial), flood.number)]
        again = {message.id: message for message in saved.restamp}
        for flood in cut:
            if flood.source == state.me and flood.message is not None:
                again.setdefault(flood.message.id, flood.message)
        for flood in saved.held:
            if (flood.source, flood.serial) == state.own_stream and flood.message is not None:
                again.pop(flood.message.id, None)
        joining.resend = list(again.values())
        if state.durable and (joining.resend or saved.restamp):
            effects.append(Persist("restamp", tuple(joining.resend) or None))
        for flood in cut:
            state.forget(flood, effects)
        joining.take_up_unused(now, effects)
        if state.own_stream is not None:
            joining.send_again(now, effects)

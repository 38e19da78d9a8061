"""Crashed sources (drift2006, section 7): the sources agree, outside the total order, on who is still one.

The paper lets a survivor TO-multicast that a source has crashed; that message can never be delivered, since the
rule still needs the crashed source's clock (D5). We agree on a sequence of *views* instead, by Paxos among the
sources that vote in the current view, with a flush: a view says where the stream of each removed source ends,
and is accepted only by voters that have everything up to there. It is safe always and live while a majority of
the voters is up and connected.

A message that was delivered anywhere must not be cut off. The paper's rule does not give that: a node may
deliver a message of a crashed source that no source received. So with crashes (`suspect_after` set) a message
is delivered only when a majority of the voters *holds* it: each voter virtually floods its floor, the timestamp
up to which it holds everything, and keeps it where it is from the moment it takes part in a view change. Two
majorities share a voter, so what was delivered is in every flush.

Joins and announced leaves stay in the total order (`drift_join`). They change whose clocks count at once; who
votes changes with the next view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from precede.core.effects import RADIO, Discard, Effect, Key, Persist, Send, SetTimer
from precede.core.identity import NEIGHBOURS
from precede.core.instants import MILLISECOND, Duration, Instant
from precede.protocols.drift2006.clock_table import WIDE, ClockTable
from precede.protocols.drift2006.jumps import take_back
from precede.protocols.drift2006.packets import (
    LIFE_BITS,
    STREAM_BYTES,
    Flood,
    ViewPacket,
    ViewRecord,
    sizes_of,
)
from precede.protocols.drift2006.votes import Votes, void_joins
from precede.protocols.floods.reliable_floods import StreamId, Want

if TYPE_CHECKING:
    from precede.protocols.drift2006.node import DriftNode

TELL: Final[Key] = ("view", "tell")
_TELL_WITHIN: Final = 200 * MILLISECOND


class Views:
    """This node's view and what its voters hold. Inactive without `suspect_after`.

    `voter` is the stream as which this node votes, if it does: even when it leaves, for as long as it is there.
    """

    def __init__(self, node: DriftNode, suspect_after: Duration, vote_every: Duration) -> None:
        self.number = 0
        self.voters: tuple[StreamId, ...] = ()
        self.ends: dict[StreamId, int] = {}
        self.active = suspect_after > 0
        self.sponsors: dict[StreamId, tuple[StreamId, int]] = {}
        self.voter: StreamId | None = None
        self.progress_at: Instant = 0
        self.votes = Votes(node, self, suspect_after, vote_every)
        self._node = node
        self._floors = ClockTable((), WIDE)
        self._index: dict[StreamId, int] = {}
        self._cleared_to = 0
        self._telling = False

    # -- the view ----------------------------------------------------------------------------------------

    def begin(self, record: ViewRecord, now: Instant) -> None:
        """Start in a view: the first one, a saved one, or a checkpoint's."""
        self.number = record.number
        self._node.seen.label(self._node.entrance.group, self.number)
        self.ends = {(source, life): number for source, life, number in record.ends}
        self._set_voters(record.voters)
        self.progress_at = now

    def record(self) -> ViewRecord:
        return ViewRecord(self.number, self.voters, tuple((*id, end) for id, end in sorted(self.ends.items())))

    def _set_voters(self, voters: Sequence[StreamId]) -> None:
        self.voters = tuple(voters)
        node = self._node
        ours = [id for id in self.voters if id[0] == node.me and id[1] >> LIFE_BITS == node.incarnation]
        self.voter = ours[-1] if ours else None
        self._index = {id: place for place, id in enumerate(self.voters)}
        self._floors = ClockTable([(0, 0)] * len(self.voters) if self.active else (), WIDE)
        self.votes.new_view()

    def install(self, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        """A later view has been decided."""
        if record.number == self.number:
            self._learn_void(record, now, effects)
        if record.number <= self.number:
            return
        node = self._node
        before = self.ends
        self.number = record.number
        node.seen.label(node.entrance.group, self.number)
        self.ends = {**before, **{(source, life): number for source, life, number in record.ends}}
        self._set_voters(record.voters)
        self.progress_at = now
        void_joins(self.ends, self.sponsors)
        if node.durable:
            effects.append(Persist("view", (node.entrance.group, self.record())))
        for id, end in list(self.ends.items()):
            if before.get(id) != end:
                self._end_stream(id, end, now, effects)
        self.clear(self._cleared_to)
        node.voice.changed()
        effects.append(self._view_packet())
        self.votes.watch(now, effects)

    def _end_stream(self, id: StreamId, end: int, now: Instant, effects: list[Effect]) -> None:
        node = self._node
        ours = id == node.mine
        dropped = node.floods.drop_stream(id, end)
        messages = take_back(node, id, end)
        if ours:
            node.mine = None
            node.entrance.cut_off(messages, now, effects)
        for flood in dropped:
            assert isinstance(flood, Flood)
            node.forget(flood, effects)
            if flood.message is not None and id[0] != node.me and node.destination:
                effects.append(Discard(flood.message, "cut"))
        if id in node.seen.index:
            stream = node.floods.stream(id)
            if stream.received >= end:
                self.completed(id, now, effects)
            else:
                node.floods.heard_of(stream, end, now, effects)
        if end == 0:
            self._leave_no_trace(id, effects)

    def _leave_no_trace(self, id: StreamId, effects: list[Effect]) -> None:
        """Of a stream that ends before its first flood nothing is left to be told or asked for."""
        node = self._node
        node.floods.streams.pop(id, None)
        if node.admitted.pop(id, None) is not None and node.durable:
            effects.append(Persist(("admitted", *id), None))

    def _learn_void(self, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        """Only who has received a join knows that it never happened (`void_joins`); the view itself need not
        say it. Who has but heard of the newcomer's floods would ask for them for ever."""
        node = self._node
        for source, life, end in record.ends:
            id = (source, life)
            if end == 0 and id not in self.ends and id not in node.admitted:
                self.ends[id] = 0
                if node.durable:
                    effects.append(Persist(("ended", *id), 0))
                self._end_stream(id, 0, now, effects)

    def completed(self, id: StreamId, now: Instant, effects: list[Effect]) -> None:
        """Everything of a stream that ended or closed is in hand: its clock does not count any more."""
        node = self._node
        node.set_sources([other for other in node.seen.columns if other != id], {})
        self.ends.setdefault(id, node.floods.stream(id).received)
        if node.durable:
            effects.append(Persist(("ended", *id), self.ends[id]))
        if id == node.mine:
            node.mine = None
        self.votes.watch(now, effects)

    def watch(self, now: Instant, effects: list[Effect]) -> None:
        """Something has arrived or is missing."""
        if self.active:
            self.votes.watch(now, effects)

    def untidy(self) -> bool:
        """Those who vote are not those whose clocks count: somebody has joined or left."""
        return self.voters_without(self.ends) != self.voters

    def voters_without(self, ends: Mapping[StreamId, int]) -> tuple[StreamId, ...]:
        """Who is to vote next when these streams have ended; of two streams of one node the later one votes."""
        lasting = [id for id in sorted({*self.voters, *self._node.seen.columns}) if id not in ends]
        return tuple({id[0]: id for id in lasting}.values())

    def is_cut(self, id: StreamId, number: int) -> bool:
        return number > self.ends.get(id, number)

    def end_of(self, id: StreamId, number: int) -> int:
        return self.ends.get(id, number)

    def may_join(self, newcomer: StreamId, sponsor: StreamId, number: int) -> bool:
        self.sponsors[newcomer] = sponsor, number
        return newcomer not in self.ends or self.ends[newcomer] > 0

    # -- what a majority holds -----------------------------------------------------------------------------

    def floors_table(self) -> bytes:
        return self._floors.to_bytes() if self.active else b""

    def merge_floors(self, theirs: bytes) -> bool:
        if len(theirs) != WIDE.size * self._floors.width:
            return False
        return self._floors.merge((theirs,))[0]

    def clear(self, timestamp: int) -> None:
        """This node holds everything up to here; a voter says so, unless it is taking part in a view change."""
        if self.active:
            self._cleared_to = max(self._cleared_to, timestamp)
            if self.voter is None or self.votes.frozen:
                return
            if self._floors.raise_to(self._index[self.voter], 0, self._cleared_to):
                self._node.voice.changed()

    def holds(self, timestamp: int) -> bool:
        """Does a majority of the voters hold everything up to here?"""
        if not self.active:
            return True
        lacking: int = self._floors.below(timestamp).bit_count()
        return 2 * (self._floors.width - lacking) > self._floors.width

    def everywhere(self, timestamp: int) -> bool:
        """Do all voters?"""
        return not self.active or not self._floors.below(timestamp)

    def lowest_floor(self) -> int:
        return min((timestamp for _, timestamp in self._floors.clocks()), default=0)

    def progressed(self, now: Instant) -> None:
        self.progress_at = now

    # -- telling -----------------------------------------------------------------------------------------

    def compare(self, theirs: int, now: Instant, effects: list[Effect]) -> None:
        """A neighbour speaks from another view: tell it, or let it notice that we are behind."""
        if theirs < self.number:
            self._tell_soon(now, effects)
        elif theirs > self.number:
            self._node.floods.trickle.differs(now, effects)

    def asked(self, wants: Sequence[Want], now: Instant, effects: list[Effect]) -> None:
        """A neighbour asks for what lies behind the end of a stream: it does not know that end."""
        if any(self.is_cut((source, life), last) for source, life, _, last in wants):
            self._tell_soon(now, effects)

    def _tell_soon(self, now: Instant, effects: list[Effect]) -> None:
        if not self._telling:
            self._telling = True
            effects.append(SetTimer(TELL, now + int(self._node.random.random() * _TELL_WITHIN)))

    def _view_packet(self) -> Send:
        extra = self._node.voice.extra()
        record = self.record()
        entries = len(record.voters) + len(record.ends)
        return Send(
            ViewPacket(record, extra, *sizes_of(extra, STREAM_BYTES * entries, entries)), NEIGHBOURS, RADIO
        )

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        if key == TELL:
            self._telling = False
            effects.append(self._view_packet())
        else:
            self.votes.timer(key, now, effects)

"""The data that the parts of a DRIFT node share (drift2006, Figure 3): clocks, floods, sources, position.

Every part (`packet_builder`, `dummies`, `votes`, `views`, `join`, `groups`, ...) is given this state, never the
node or the parts that are built after it. `node` builds the parts and connects them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, final

from precede.core.effects import Effect, Persist
from precede.core.identity import MessageId, NodeId
from precede.core.instants import SECOND, Instant
from precede.core.node import Context
from precede.protocols.drift2006.clock_table import WIDE
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.order import Pending, Placed, Shadow
from precede.protocols.drift2006.packets import Carried, Flood, Origin, Piggyback, ViewRecord, node_incarnation
from precede.protocols.drift2006.seen import Seen, new_table
from precede.protocols.floods.options import parse_node_ids
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId

NO_GROUP: Final = -1
CONFIGURED_GROUP: Final = 0
"""The group of the members named in the configuration. Groups that nodes found have higher numbers."""

_CLOCK_RESERVE: Final = 256

USUAL_LEAP: Final = 64
MOST_LEAP: Final = 1 << 24
LEAP_PER_SECOND: Final = 10_000
"""How far received timestamps may raise the clock at once, and on average.

A flood raises clocks by two at most, so a clock leaps by twice the number of floods that a node has missed.
Eight million missed floods are more than neighbours keep; a node that missed more begins at a checkpoint. A
timestamp has 39 bits. Without a bound one signed flood would use them up everywhere; with it, that takes a
malicious source 20 months of leaps, or 8 thousand million floods of its own. Leaps up to `USUAL_LEAP` are not
counted. A flood too far ahead is dropped, and raises the clock as far as it may, so that the clocks of honest
nodes, of which some have accepted a leap that was just too far for others, meet again.
"""


@final
class View:
    """A node's current view, and its voters' floors: the timestamp up to which each holds every message.

    `crash_tolerant`: crashed sources are removed, and a message is delivered only when a majority of the voters
    holds it. False makes it the paper's protocol, without floors.
    A stream is the numbered broadcasts (floods) of one source between two restarts.
    `voters`: the streams whose nodes vote. `voter` is this node's own, also while it leaves the group.
    `ends`: the number of the last flood of every stream that has ended.
    `sponsors`: for every admitted stream, the stream and number of the flood that admitted it.
    `frozen`: this node takes part in a view change, so its floor must not rise.
    `held_to`: the timestamp up to which this node itself holds everything.
    """

    def __init__(self, crash_tolerant: bool) -> None:
        self.crash_tolerant = crash_tolerant
        self.number = 0
        self.voters: tuple[StreamId, ...] = ()
        self.voter: StreamId | None = None
        self.ends: dict[StreamId, int] = {}
        self.sponsors: dict[StreamId, tuple[StreamId, int]] = {}
        self.frozen = False
        self.held_to = 0
        self._floors = new_table((), WIDE)
        self._own_column = -1

    def record(self) -> ViewRecord:
        return ViewRecord(self.number, self.voters, tuple((*id, end) for id, end in sorted(self.ends.items())))

    def set_voters(self, voters: Sequence[StreamId], me: NodeId, incarnation: int) -> None:
        """Set the voters of a new view, with all floors at zero, and find this node's own voting stream."""
        self.voters = tuple(voters)
        own = [id for id in self.voters if id[0] == me and node_incarnation(id) == incarnation]
        self.voter = own[-1] if own else None
        self.frozen = False
        self._own_column = self.voters.index(own[-1]) if own else -1
        self._floors = new_table([(0, 0)] * len(self.voters) if self.crash_tolerant else (), WIDE)

    def next_voters(self, columns: Sequence[StreamId], ends: Mapping[StreamId, int]) -> tuple[StreamId, ...]:
        """Return the voters of the next view. When a node has two streams, the later one votes."""
        lasting = [id for id in sorted({*self.voters, *columns}) if id not in ends]
        return tuple({id[0]: id for id in lasting}.values())

    def is_cut(self, id: StreamId, number: int) -> bool:
        """Does this flood lie behind the end that a view set for its stream? Then it is never delivered."""
        return number > self.ends.get(id, number)

    # -- floors ------------------------------------------------------------------------------------------

    def raise_floor(self, timestamp: int) -> bool:
        """Record that this node holds everything up to a timestamp; True when its floor rose."""
        if not self.crash_tolerant:
            return False
        self.held_to = max(self.held_to, timestamp)
        if self.voter is None or self.frozen:
            return False
        return self._floors.raise_to(self._own_column, 0, self.held_to)

    def floors_table(self) -> bytes:
        """Return each voter's floor (it holds every message up to there) as a table; empty without crashes."""
        return self._floors.to_bytes() if self.crash_tolerant else b""

    def merge_floors(self, table: bytes) -> bool:
        if len(table) != WIDE.size * self._floors.width:
            return False
        return self._floors.merge((table,)) is True

    def majority_holds(self, timestamp: int) -> bool:
        """Does a majority of the voters hold all up to a timestamp? True if crashes are not tolerated."""
        if not self.crash_tolerant:
            return True
        lacking = self._floors.count_below(timestamp)
        return 2 * (self._floors.width - lacking) > self._floors.width

    def all_hold(self, timestamp: int) -> bool:
        """Do all voters hold all up to a timestamp? True if crashes are not tolerated."""
        return not self.crash_tolerant or self._floors.first_below(timestamp, 0) < 0


@final
class DriftState:
    """The state of one node.

    `me`, `incarnation`: this node and its incarnation. `generator`: its random numbers.
    `virtual`: packets carry clocks (DRIFT); without, only a source's own floods show its clock (TOF).
    `durable`: the node persists what a restart needs. `destination`: the node delivers to its application.

    `seen`: the sources' clocks, Seen of Figure 3. `view`: the current view.
    `pending`: floods that are not safe yet, Rcvd of Figure 3. `cleared`: floods that are safe by the clocks and
    wait until a majority of the voters holds them. `shadow`: what TOF would deliver, if that is observed.
    `delivered`: number and timestamp of the last delivered flood of each stream. `position`: the timestamp of
    the last delivered flood. `last_messages`: the number of the last delivered message of each node and
    incarnation. A source sends its messages in the order of their numbers, so a lower one was delivered.

    `group`: the number of this node's group, or `NO_GROUP`.
    `origin`: how the founders agreed on the group, if they did.
    `admitted`: every stream that is or was a source, with the timestamp of its admission.
    `unadmitted`: floods of streams whose admission has not arrived, in the order of their numbers.
    `own_stream`: the stream in which this node broadcasts now; None while it is no source. `own_column`: its
    column in `seen`. `last_own_stream`: the same stream, kept after it has ended.

    `clock`: the logical clock, LC of Figure 3. `persisted_clock`: the clock with which a restart begins.
    `floods_sent`: the number of this node's last flood in its stream, SN of Figure 3.
    `message_number`: the number of its application's last message.
    `last_heard_at`: when the node last received a flood. `progress_at`: when it last delivered one or began a
    view.
    `piggyback`: the virtual-flooding data of the last packet; None when it is out of date.
    """

    def __init__(self, role: str, context: Context[DriftOptions], virtual: bool) -> None:
        options = context.options
        limit = options.limit
        destinations = parse_node_ids(options.destinations)
        delivers = role in ("node", "destination")
        self.me: NodeId = context.node
        self.incarnation: int = context.incarnation
        self.generator: Random = context.random
        self.virtual = virtual
        self.durable: bool = options.durable
        self.destination = delivers and (destinations is None or self.me in destinations)
        self.view = View(options.suspect_after > 0)
        self.seen = Seen(self.generator, limit, options.policy, options.two_entries)
        self.seen.plain = virtual and limit is None and not self.view.crash_tolerant
        self.pending = Pending(self.seen)
        self.cleared: deque[Placed] = deque()
        self.shadow = Shadow() if options.shadow else None
        self.delivered: dict[StreamId, tuple[int, int]] = {}
        self.last_messages: dict[tuple[NodeId, int], int] = {}
        self.position = 0
        self._leap = MOST_LEAP
        self._leap_at: Instant = 0
        self.group = NO_GROUP
        self.origin: Origin | None = None
        self.admitted: dict[StreamId, int] = {}
        self.unadmitted: dict[StreamId, list[Flood]] = {}
        self.own_stream: StreamId | None = None
        self.own_column = -1
        self.last_own_stream: StreamId | None = None
        self.clock = 0
        self.persisted_clock = 0
        self.floods_sent = 0
        self.message_number = 0
        self.last_heard_at: Instant = 0
        self.progress_at: Instant = 0
        self.piggyback: Piggyback | None = None

    def has_undelivered(self) -> bool:
        return bool(self.pending.heap or self.cleared)

    def delivered_number(self, id: StreamId) -> int:
        return self.delivered.get(id, (0, 0))[0]

    def is_new(self, id: MessageId) -> bool:
        return id.number > self.last_messages.get((id.source, id.incarnation), 0)

    def last_message(self, id: StreamId) -> int:
        """Return the number of the last delivered message of the node and incarnation that began a stream."""
        return self.last_messages.get((id[0], node_incarnation(id)), 0)

    def is_plausible(self, timestamp: int, now: Instant) -> bool:
        """May a received timestamp raise the clock this far? If not, drop the flood; it is requested again."""
        leap = timestamp - self.clock
        if leap <= USUAL_LEAP:
            return True
        refilled = self._leap + (now - self._leap_at) * LEAP_PER_SECOND // SECOND
        self._leap, self._leap_at = min(refilled, MOST_LEAP), now
        if leap > self._leap:
            self.clock += self._leap
            self._leap = 0
            return False
        self._leap -= leap
        return True

    def merge_piggyback(self, piggyback: Piggyback) -> None:
        """Merge the clocks and floors that a packet carries (the virtual-flooding update of Figure 3)."""
        if not self.virtual:
            return
        news = False
        if piggyback.table:
            news = self.seen.receive_table(piggyback.table, piggyback.layout)
        if piggyback.chosen:
            news = self.seen.merge_chosen(piggyback.chosen) or news
        if piggyback.floors and piggyback.view == self.view.number:
            news = self.view.merge_floors(piggyback.floors) or news
        if news:
            self.piggyback = None

    def raise_floor(self, timestamp: int) -> None:
        """Record that this node holds everything up to a timestamp."""
        if self.view.raise_floor(timestamp):
            self.piggyback = None

    def reset_position(self) -> None:
        """Set the position to the start of an order: timestamps of another group mean nothing in this one."""
        self.position = 0
        self.view.held_to = 0

    # -- persisting --------------------------------------------------------------------------------------

    def keep(self, flood: Flood, effects: list[Effect]) -> None:
        if self.durable:
            effects.append(Persist(("held", flood.source, flood.serial, flood.number), flood))

    def forget(self, flood: Flood, effects: list[Effect]) -> None:
        if self.durable:
            effects.append(Persist(("held", flood.source, flood.serial, flood.number), None))

    def persist_clock(self, effects: list[Effect]) -> None:
        """Persist a clock ahead of the present one, so that a restart never repeats a sent timestamp."""
        if self.durable and self.clock >= self.persisted_clock:
            self.persisted_clock = self.clock + _CLOCK_RESERVE
            effects.append(Persist("clock", self.persisted_clock))

    # -- the sources -------------------------------------------------------------------------------------

    def become_source(self, id: StreamId, floods_sent: int, effects: list[Effect]) -> None:
        """Make this node a source: it broadcasts in this stream from now on."""
        self.own_stream = self.last_own_stream = id
        if self.durable:
            effects.append(Persist("own", id))
        self.floods_sent = floods_sent
        self.own_column = self.seen.index[id]
        self.persist_clock(effects)
        self.seen.advance(self.own_column, floods_sent, self.clock)
        self.piggyback = None


def set_sources(
    state: DriftState, floods: Floods[Carried], ids: Sequence[StreamId], clocks: Mapping[StreamId, int]
) -> None:
    """Replace the set of sources; `clocks` has the clock with which each new one begins."""
    ordered = tuple(sorted(ids))
    seen = state.seen
    if ordered == seen.columns:
        return
    streams = [floods.stream(id) for id in ordered]
    seen.set_columns(streams, [(stream.received, clocks.get(stream.id, 0)) for stream in streams])
    own = state.own_stream
    state.own_column = -1 if own is None else seen.index.get(own, -1)
    if state.shadow is not None:
        state.shadow.set_sources(ordered, lambda id: seen.clock_of(id)[1])
    for id in ordered:
        state.admitted.setdefault(id, 0)
    state.piggyback = None

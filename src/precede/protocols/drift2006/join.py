"""Coming and going (drift2006, section 7): joins through a source, announced leaves, beginning with no source
at all.

Join. A newcomer first learns a place in the total order from a neighbour that has one (a checkpoint) and
receives from there on. To become a source it asks one source, its sponsor, which TO-multicasts the admission.
It takes effect when it is *received*: whoever delivers anything later than the admission must have the
sponsor's clock from behind it, hence the admission itself. The newcomer's timestamps begin above it. If a
sponsor does not answer, the newcomer asks another under a new name, so that no two admissions speak of one
stream; should the first still come, the newcomer closes that stream at once.

Leave. A source TO-multicasts that nothing follows; its clock counts as infinite for whoever has that message.

Beginning. Would-be sources that find nobody to ask flood their candidacy; after a while the one with the lowest
id of those it has heard founds the group and the others join it. This stands in for the bootstrap of Cavin et
al. ([9]), which like this one needs to know all candidates. Should two groups meet, the later founded gives
way: its members move to the other one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from precede.core.effects import RADIO, Accept, CancelTimer, Effect, Key, Persist, Send, SetTimer
from precede.core.errors import BadInput
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Saved, restore
from precede.protocols.drift2006.jumps import go_to, reset, resume
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.packets import (
    HAVE_BYTES,
    LIFE_BITS,
    Application,
    Body,
    Candidacy,
    CheckpointPacket,
    ControlPacket,
    Flood,
    KnockPacket,
    Piggyback,
    ViewRecord,
    sizes_of,
)
from precede.protocols.drift2006.saved import SavedState, leftovers
from precede.protocols.floods.reliable_floods import StreamId

if TYPE_CHECKING:
    from precede.protocols.drift2006.node import DriftNode

OUT: Final = -1
CONFIGURED: Final = 0
"""Not in any group; in the group that was given at the beginning. Founded groups have higher numbers."""

KNOCK: Final[Key] = ("join", "knock")
APPLY: Final[Key] = ("join", "apply")
_KNOCK_EVERY: Final = SECOND
_ANSWER_WITHIN: Final = 100 * MILLISECOND
_ATTEMPTS: Final = 4
_MOST_NAMED: Final = 1_000_000


class Entrance:
    """How this node comes into its group and becomes a source of it."""

    def __init__(self, node: DriftNode, role: str, context: Context[DriftOptions]) -> None:
        self.group = OUT
        self.restamp: list[Message] = []
        self._node = node
        listed = named(context.options.sources)
        known = context.node in context.members and listed is not None and context.node not in listed
        self._wants = role in ("node", "source") and not known
        self._members = context.members
        self._first = context.incarnation == 0 and context.node in context.members
        self._lives = 0
        self._applied: StreamId | None = None
        self._sponsor: StreamId | None = None
        self._attempts = 0
        self._answering: dict[NodeId, None] = {}
        self._candidates: dict[NodeId, Instant] = {}
        self._out_since: Instant = 0
        self._ask_older_at: Instant = -(1 << 62)

    def start(self, now: Instant, saved: Saved, effects: list[Effect]) -> None:
        """Go on from what was saved, begin with the given members, or knock. No number is given twice."""
        node = self._node
        self._lives = restore(saved, "lives", int, 0)
        node.number = restore(saved, "number", int, 0)
        node.clock = node.promised_clock = restore(saved, "clock", int, 0)
        if "next" in saved:
            effects += [Persist(key, None) for key in leftovers(saved)]
            self._enter(msgspec.convert(saved["next"], CheckpointPacket), now, effects)
            effects.append(Persist("next", None))
        elif "group" in saved:
            self._restore(saved, now, effects)
        elif self._first:
            listed = named(node.options.sources)
            sources = tuple((member, 0) for member in self._members if listed is None or member in listed)
            self._wants = (node.me, 0) in sources
            self._begin(CONFIGURED, ViewRecord(0, sources, ()), sources, now, effects)
            if self._wants:
                node.become_source((node.me, 0), 0, effects)
        else:
            effects += [Persist(key, None) for key in leftovers(saved)]
            self._go_out(now, effects)
        if self.group != OUT and self._wants and node.mine is None:
            self._apply_soon(now, effects)

    def _begin(
        self,
        group: int,
        record: ViewRecord,
        sources: tuple[StreamId, ...],
        now: Instant,
        effects: list[Effect],
    ) -> None:
        node = self._node
        self.group = group
        if node.durable:
            effects.append(Persist("group", (group, record, sources)))
        node.views.begin(record, now)
        node.set_sources(sources, {})
        node.voice.changed()
        effects.append(CancelTimer(KNOCK))

    # -- from outside ------------------------------------------------------------------------------------

    def _go_out(self, now: Instant, effects: list[Effect]) -> None:
        self.group = OUT
        self._node.seen.label(OUT, self._node.views.number)
        self._out_since = now
        self._candidates = {}
        self._node.voice.changed()
        self._knock(now, effects)

    def knock(self, effects: list[Effect], to: NodeId = NEIGHBOURS) -> None:
        """Ask the neighbours, or one of them, for a place to begin."""
        extra = self._node.voice.extra()
        effects.append(Send(KnockPacket(extra, *sizes_of(extra, 0, 0)), to, RADIO))

    def _knock(self, now: Instant, effects: list[Effect]) -> None:
        node = self._node
        self.knock(effects)
        wait = _KNOCK_EVERY // 2 + int(node.random.random() * _KNOCK_EVERY)
        effects.append(SetTimer(KNOCK, now + wait))
        patience = node.options.bootstrap_after
        if not self._wants or not patience:
            return
        node.dummies.send_control(Candidacy(self._out_since), now, effects)
        recent = [id for id, heard in self._candidates.items() if now - heard <= patience]
        if now - self._out_since >= patience and all(id > node.me for id in recent):
            self._found(now, effects)

    def _found(self, now: Instant, effects: list[Effect]) -> None:
        """Nobody is there, and no candidate with a lower id: the group is this node."""
        node = self._node
        id = self._new_life(effects)
        # Microseconds since 1970 have 51 bits, and a number on the wire has 63.
        group = (max(now, 0) + 1) << 11 | (node.me & 0x7FF)
        self._begin(group, ViewRecord(0, (id,), ()), (id,), now, effects)
        node.become_source(id, 0, effects)
        self._restamp(now, effects)

    def same_group(
        self, packet: Packet, extra: Piggyback, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> bool:
        """May this packet be read as one of our group? Others are answered here."""
        if extra.group == self.group and self.group != OUT:
            return True
        if self.group == OUT:
            if isinstance(packet, CheckpointPacket):
                self.checkpoint(packet, now, effects)
            elif (
                isinstance(packet, ControlPacket)
                and extra.group == OUT
                and self._node.dummies.relay(packet, now, effects)
            ):
                self._candidates[packet.origin] = now
        elif extra.group == OUT or (extra.group > self.group and isinstance(packet, KnockPacket)):
            self.knocked(sender, now, effects)
        elif extra.group < self.group:
            self._meet_older(packet, sender, now, effects)
        return False

    def _meet_older(self, packet: Packet, sender: NodeId, now: Instant, effects: list[Effect]) -> None:
        """An older group is here: ask it for a place, and begin anew in it as soon as there is one.

        Not before: who is outside in between could be let in again by the group it has left, without its place.
        """
        if isinstance(packet, CheckpointPacket):
            self._move(packet, now, effects)
        elif now >= self._ask_older_at:
            self._ask_older_at = now + _KNOCK_EVERY // 4
            self.knock(effects, sender)

    def _move(self, packet: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """What was not delivered in our group may have been elsewhere: it is given up. A crash on the way is no
        way back: the restart goes on from where to."""
        node = self._node
        if node.durable:
            effects.append(Persist("next", packet))
        reset(node, effects)
        self.restamp = []
        self._applied = None
        effects.append(CancelTimer(APPLY))
        self._enter(packet, now, effects)
        if node.durable:
            effects.append(Persist("next", None))
        if self._wants:
            self._apply_soon(now, effects)

    def _enter(self, packet: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """Begin in a group at a place that a member has reached."""
        go_to(self._node, packet, effects)
        self._begin(packet.extra.group, packet.view, packet.sources, now, effects)
        self._node.views.clear(self._node.position)

    def knocked(self, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Somebody needs a place to begin: answer after a random while."""
        if peer not in self._answering:
            self._answering[peer] = None
            wait = int(self._node.random.random() * _ANSWER_WITHIN)
            effects.append(SetTimer(("join", "answer", peer), now + wait))

    def _answer(self, peer: NodeId, effects: list[Effect]) -> None:
        node = self._node
        self._answering.pop(peer, None)
        if self.group == OUT:
            return
        ends = node.views.ends
        unfinished = [id for id in node.admitted if id in ends and node.done.get(id, (0, 0))[0] < ends[id]]
        sources = tuple(id for id in sorted({*node.seen.columns, *unfinished}) if self._is_past(id))
        done = tuple((*id, number) for id, (number, _) in sorted(node.done.items()))
        extra = node.voice.extra()
        entries = len(sources) + len(done)
        packet = CheckpointPacket(
            node.views.record(),
            node.position,
            sources,
            done,
            extra,
            *sizes_of(extra, HAVE_BYTES * entries, entries),
        )
        effects.append(Send(packet, peer, RADIO))

    def _is_past(self, id: StreamId) -> bool:
        """Does the admission of this stream lie before our place in the order? Else a newcomer will see it."""
        sponsor, number = self._node.views.sponsors.get(id, ((0, 0), 0))
        return number <= self._node.done.get(sponsor, (0, 0))[0]

    def checkpoint(self, packet: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """A place to begin, or, for a node that lacks what nobody keeps any more, to go on from."""
        node = self._node
        if self.group == OUT:
            self._enter(packet, now, effects)
        elif any(
            node.floods.is_hopeless(node.floods.stream((source, life)), now) for source, life, _ in packet.done
        ):
            node.views.install(packet.view, now, effects)
            if node.durable:
                new = [id for id in packet.sources if id not in node.admitted]
                effects += [Persist(("admitted", *id), 0) for id in new]
            go_to(node, packet, effects)
            ends = node.views.ends
            kept = [
                id
                for id in {**dict.fromkeys(node.seen.columns), **dict.fromkeys(packet.sources)}
                if id not in ends or node.floods.stream(id).received < ends[id]
            ]
            node.set_sources(kept, {})
        self._take_up(now, effects)
        if self._wants and node.mine is None:
            self._apply_soon(now, effects)

    def _take_up(self, now: Instant, effects: list[Effect]) -> None:
        """Streams of ours that were admitted unseen (skipped by a checkpoint, just before a crash): the others
        wait for their clocks. One that is unused becomes ours if we have none, and the rest are closed."""
        node = self._node
        for id in node.seen.columns:
            unused = node.floods.stream(id).exists == 0 and id not in node.views.ends
            if id[0] == node.me and id[1] >> LIFE_BITS == node.incarnation and id != node.mine and unused:
                if node.mine is None and self._wants:
                    self._applied = id
                self.admitted(id, node.admitted.get(id, 0), now, effects)

    # -- becoming a source -------------------------------------------------------------------------------

    def _new_life(self, effects: list[Effect]) -> StreamId:
        self._lives += 1
        if self._node.durable:
            effects.append(Persist("lives", self._lives))
        return (self._node.me, self._node.incarnation << LIFE_BITS | self._lives)

    def _apply_soon(self, now: Instant, effects: list[Effect]) -> None:
        effects.append(SetTimer(APPLY, now + int(self._node.random.random() * _KNOCK_EVERY)))

    def _apply(self, now: Instant, effects: list[Effect]) -> None:
        """Ask a sponsor; after some attempts another one."""
        node = self._node
        if not self._wants or node.mine is not None or self.group == OUT:
            return
        sponsors = [id for id in node.seen.columns if id[0] != node.me and id not in node.views.ends]
        if not sponsors:
            if not node.seen.columns and not node.undelivered():
                self._go_out(now, effects)
            else:
                self._apply_soon(now, effects)
            return
        if self._applied is None or self._sponsor not in sponsors or self._attempts >= _ATTEMPTS:
            self._applied = self._new_life(effects)
            self._sponsor = sponsors[int(node.random.random() * len(sponsors))]
            self._attempts = 0
        assert self._sponsor is not None
        self._attempts += 1
        node.dummies.send_control(Application(self._applied, self._sponsor), now, effects)
        effects.append(SetTimer(APPLY, now + 2 * _KNOCK_EVERY + int(node.random.random() * _KNOCK_EVERY)))

    def receive(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        """An application: the sponsor admits; everybody learns that the applicant's earlier lives are over."""
        if not isinstance(body, Application):
            return
        node = self._node
        source, life = body.stream
        node.views.votes.suspect(
            [id for id in node.seen.columns if id[0] == source and id[1] >> LIFE_BITS < life >> LIFE_BITS],
            now,
            effects,
        )
        if (
            body.sponsor == node.mine
            and body.stream not in node.views.sponsors
            and body.stream not in node.views.ends
        ):
            node.multicast(now, effects, admits=body.stream)

    def admitted(self, newcomer: StreamId, timestamp: int, now: Instant, effects: list[Effect]) -> None:
        """An admission was received. Ours begins; one that we asked for and gave up on is closed unused."""
        node = self._node
        if newcomer == self._applied and self._wants:
            self._applied = None
            effects.append(CancelTimer(APPLY))
            node.clock = max(node.clock, timestamp) + 1
            node.become_source(newcomer, 0, effects)
            self._restamp(now, effects)
        elif newcomer[0] == node.me and newcomer[1] >> LIFE_BITS == node.incarnation:
            node.clock = max(node.clock, timestamp) + 1
            node.promise_clock(effects)
            node.flood_own(Flood(*newcomer, 1, node.clock, closes=True), now, effects)

    def _restamp(self, now: Instant, effects: list[Effect]) -> None:
        """What was cut off with an earlier stream of ours, and so delivered nowhere, is multicast again."""
        messages, self.restamp = self.restamp, []
        for message in messages:
            self._node.multicast(now, effects, message=message)
        if messages and self._node.durable:
            effects.append(Persist("restamp", None))

    def cut_off(self, messages: list[Message], now: Instant, effects: list[Effect]) -> None:
        """The others have gone on without us."""
        self.restamp += messages
        if messages and self._node.durable:
            effects.append(Persist("restamp", tuple(self.restamp)))
        if self._wants:
            self._apply_soon(now, effects)

    def leave(self, now: Instant, effects: list[Effect]) -> None:
        """Announce it and be done (a source that is being admitted just now closes its stream when it is)."""
        self._wants = False
        if self._node.mine is not None:
            self._node.multicast(now, effects, closes=True)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        if key == KNOCK:
            if self.group == OUT:
                self._knock(now, effects)
        elif key == APPLY:
            self._apply(now, effects)
        else:
            assert isinstance(key, tuple)
            self._answer(int(key[2]), effects)

    # -- after a restart -----------------------------------------------------------------------------------

    def _restore(self, store: Saved, now: Instant, effects: list[Effect]) -> None:
        """The same place, the same promises; own floods that may not have left are sent again."""
        node, saved = self._node, SavedState.read(store)
        self.group = saved.group
        node.views.begin(saved.view, now)
        # What was agreed on goes before a source's own closing word.
        node.views.ends = {**saved.ended, **node.views.ends}
        node.views.votes.restore(store)
        resume(node, saved, now, effects)
        for flood in saved.held:
            message = flood.message
            mine = message is not None and message.id.source == node.me
            if message is not None and mine and message.id.incarnation == node.incarnation:
                effects.append(Accept(message))
            if (flood.source, flood.life) == node.own and flood.number > node.done.get(node.own, (0, 0))[0]:
                node.floods.relay((flood.source, flood.life), flood.number, flood, now, effects)
        self._finish_cuts(saved, now, effects)

    def _finish_cuts(self, saved: SavedState, now: Instant, effects: list[Effect]) -> None:
        """What the crash left of a stream that had been cut: our messages in it go into the next one, once."""
        node = self._node
        cut = [flood for flood in saved.held if node.views.is_cut((flood.source, flood.life), flood.number)]
        again = {message.id: message for message in saved.restamp}
        for flood in cut:
            if flood.source == node.me and flood.message is not None:
                again.setdefault(flood.message.id, flood.message)
        for flood in saved.held:
            if (flood.source, flood.life) == node.mine and flood.message is not None:
                again.pop(flood.message.id, None)
        self.restamp = list(again.values())
        if node.durable and (self.restamp or saved.restamp):
            effects.append(Persist("restamp", tuple(self.restamp) or None))
        for flood in cut:
            node.forget(flood, effects)
        self._take_up(now, effects)
        if node.mine is not None:
            self._restamp(now, effects)


def named(written: str) -> frozenset[int] | None:
    """Ids written as `0 3 5-9`; None for `all`."""
    if written.strip() == "all":
        return None
    found: set[int] = set()
    for part in written.replace(",", " ").split():
        first, _, last = part.partition("-")
        try:
            ids = range(int(first), int(last or first) + 1)
        except ValueError:
            raise BadInput(f"not ids of nodes: {written!r} (write 0 3 5-9, or all)") from None
        if not ids or len(ids) > _MOST_NAMED:
            raise BadInput(f"not ids of nodes: {written!r}: {part} is none, or too many")
        found.update(ids)
    return frozenset(found)

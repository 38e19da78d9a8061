"""Explores every schedule of a small founding: three founders, their packets, and crashes around each write.

A packet that was sent can reach any founder at any later time, any number of times, or never: that is loss,
duplication and reordering at once. A transition is an input of one founder; a crash can fall behind any of its
effects. The founders are the real `Ballots`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from precede.core.effects import Persist
from precede.core.node import round_trip
from precede.protocols.drift2006.founding.ballots import SAVED, Ballots, _Leading
from precede.protocols.drift2006.founding.numbers import list_number
from precede.protocols.drift2006.packets import Origin, ViewRecord
from tests.protocols.drift2006.exploring import explore

FOUNDERS = (0, 1, 2)
Record = ViewRecord


class Memory(NamedTuple):
    """What one founder knows; `life` counts its crashes without a store, `saved` is its store."""

    life: int
    stream: tuple[int, int] | None = None
    promised: Any = None
    accepted: Any = None
    highest: int = 0
    leading: Any = None
    founded: Any = None
    saved: Any = None


class State(NamedTuple):
    founders: tuple[Memory, ...]
    packets: frozenset[Any]
    leads: int
    crashes: int


class Split(Exception):
    """Two founders are in different groups, or one without a quorum."""


class Explorer:
    """All states within bounds: how many ballots are led, by whom, and how many founders crash."""

    def __init__(
        self,
        durable: bool = True,
        leads: int = 2,
        crashes: int = 0,
        leaders: tuple[int, ...] = (0, 1),
        ballots: type[Ballots] = Ballots,
        send_first: bool = False,
        ballot_number: bool = False,
    ) -> None:
        self.durable = durable
        self.leads = leads
        self.crashes = crashes
        self.leaders = leaders
        self.ballots = ballots
        self.send_first = send_first
        self.ballot_number = ballot_number

    # -- one founder ---------------------------------------------------------------------------------------

    def wake(self, me: int, memory: Memory, effects: list[Any]) -> Ballots:
        """The founder as an object; it appends what it writes, sends and decides to `effects`."""
        ballots: Ballots

        def decide(record: Record, now: int, out: list[Any]) -> None:
            group = ("ballot", ballots.promised) if self.ballot_number else record
            out.append(Persist("group", group))
            out.append(Origin(ballots.number, group, ballots.stream))  # type: ignore[arg-type]

        ballots = self.ballots(
            me,
            FOUNDERS,
            self.durable,
            lambda out: (me, memory.life),
            lambda body, now, out: out.append(body),
            decide,
        )
        ballots.stream, ballots.promised, ballots.accepted = memory.stream, memory.promised, memory.accepted
        ballots._highest_round = memory.highest
        if memory.leading is not None:
            ballot, promises, record, accepted = memory.leading
            ballots.leading = _Leading(ballot)
            ballots.leading.promises = {promise.voter[0]: promise for promise in promises}
            ballots.leading.record = record
            ballots.leading.accepted = dict.fromkeys(accepted)
        return ballots

    def keep(self, memory: Memory, ballots: Ballots, effects: list[Any]) -> Memory:
        """The founder as a value again, with what it has written."""
        leading = ballots.leading
        kept = None
        if leading is not None:
            promises = tuple(leading.promises[id] for id in sorted(leading.promises))
            kept = leading.ballot, promises, leading.record, tuple(sorted(leading.accepted))
        memory = memory._replace(
            stream=ballots.stream,
            promised=ballots.promised,
            accepted=ballots.accepted,
            highest=ballots._highest_round,
            leading=kept,
        )
        return self.written(memory, effects)

    def written(self, memory: Memory, effects: list[Any]) -> Memory:
        for effect in effects:
            if isinstance(effect, Persist) and effect.key == SAVED:
                memory = memory._replace(saved=effect.value)
            elif isinstance(effect, Persist):
                memory = memory._replace(founded=effect.value)
        return memory

    def restart(self, me: int, memory: Memory) -> Memory:
        """What is left after a crash."""
        if not self.durable:
            return Memory(memory.life + 1)
        fresh = Memory(memory.life, saved=memory.saved, founded=memory.founded)
        ballots = self.wake(me, fresh, [])
        if memory.saved is not None:
            ballots.restore(round_trip({SAVED: memory.saved}))
        return self.keep(fresh, ballots, [])

    # -- transitions ---------------------------------------------------------------------------------------

    def inputs(self, state: State) -> Iterator[tuple[int, str, Any]]:
        for me, memory in enumerate(state.founders):
            if memory.founded is not None:
                continue
            if me in self.leaders and state.leads < self.leads:
                yield me, "lead", None
            if memory.leading is not None and memory.leading[2] is None:
                yield me, "repeat", None
            for packet in state.packets:
                yield me, "receive", packet

    def effects_of(self, me: int, memory: Memory, what: str, packet: Any) -> tuple[Memory, list[Any]]:
        effects: list[Any] = []
        ballots = self.wake(me, memory, effects)
        if isinstance(packet, Origin):
            follows = packet.record if ballots.believes(packet.record, packet.by) else None
            own = [] if follows is None or self.ballot_number else [s for s in follows.voters if s[0] == me]
            if follows is not None and (not own or own == [ballots.stream]):
                effects.append(Persist("group", follows))
                effects.append(Origin(ballots.number, follows, ballots.stream))
        elif what == "lead":
            ballots.lead(0, effects)
        elif what == "repeat":
            assert ballots.leading is not None
            ballots.leading.attempts = 3
            ballots.repeat(0, effects)
        else:
            ballots.receive(packet, 0, effects)
        if self.send_first:
            effects.sort(key=lambda effect: isinstance(effect, Persist))
        return self.keep(memory, ballots, effects), effects

    def next(self, state: State) -> Iterator[State]:
        answered = self.answers(state)
        if answered != state:
            yield answered
        for me, what, packet in self.inputs(state):
            memory, effects = self.effects_of(me, state.founders[me], what, packet)
            leads = state.leads + (what == "lead")
            yield self.state_with(state, me, memory, effects, leads, state.crashes)
            if state.crashes < self.crashes:
                for count in range(len(effects) + 1):
                    before = self.written(state.founders[me], effects[:count])
                    back = self.restart(me, before)
                    yield self.state_with(state, me, back, effects[:count], leads, state.crashes + 1)

    def answers(self, state: State) -> State:
        """Founders in a group tell those outside, which knock again and again."""
        number = list_number(FOUNDERS)
        told = [Origin(number, m.founded, m.stream) for m in state.founders if m.founded is not None]
        return state._replace(packets=state.packets.union(told))

    def state_with(
        self, state: State, me: int, memory: Memory, effects: list[Any], leads: int, crashes: int
    ) -> State:
        founders = (*state.founders[:me], memory, *state.founders[me + 1 :])
        sent = [effect for effect in effects if not isinstance(effect, Persist)]
        return State(founders, state.packets.union(sent), leads, crashes)

    # -- what must hold ------------------------------------------------------------------------------------

    def check(self, state: State) -> None:
        groups = {memory.founded for memory in state.founders if memory.founded is not None}
        told = {packet.record for packet in state.packets if isinstance(packet, Origin)}
        if len(groups) > 1 or (self.durable and len(groups | told) > 1):
            raise Split("two groups")
        for group in groups if self.durable and not self.ballot_number else ():
            if sum(self.has_accepted(memory, group) for memory in state.founders) < 2:
                raise Split("no quorum has persisted its acceptance")

    def has_accepted(self, memory: Memory, record: Record) -> bool:
        return memory.saved is not None and memory.saved[4] == record

    def can_finish(self, state: State) -> bool:
        """Does a calm network found one group from here? Founders that are out lead, packets reach all."""
        for attempt in range(8):
            state = self.settle(state)
            leader = next((me for me, m in enumerate(state.founders) if m.founded is None), None)
            if leader is None:
                self.check(state)
                return True
            memory, effects = self.effects_of(leader, state.founders[leader], "lead", None)
            state = self.state_with(state, leader, memory, effects, 0, attempt)
            state = self.settle(state)
        return all(m.founded or self.is_returner(me, m, state) for me, m in enumerate(state.founders))

    def is_returner(self, me: int, memory: Memory, state: State) -> bool:
        """Took an earlier incarnation of this founder part in a group that exists? Then it enters later."""
        groups = [m.founded for m in state.founders if m.founded is not None]
        return any(stream[0] == me and stream != memory.stream for g in groups for stream in g.voters)

    def settle(self, state: State) -> State:
        """Every packet reaches every founder, until nothing changes; only the last ballot is repeated."""
        while True:
            before = state
            state = self.answers(state)
            for packet in sorted(state.packets, key=repr):
                for me, memory in enumerate(state.founders):
                    if memory.founded is None:
                        after, effects = self.effects_of(me, memory, "receive", packet)
                        state = self.state_with(state, me, after, effects, 0, 0)
            if state == before:
                return state

    def explore(self, most: int | None = None, recover_every: int = 0) -> int:
        """Visit every state, breadth first, and check each. Returns their number."""

        def visit(state: State, number: int) -> None:
            self.check(state)
            if recover_every and number % recover_every == 0:
                assert self.can_finish(state), state

        return explore(State(tuple(Memory(0) for _ in FOUNDERS), frozenset(), 0, 0), self.next, visit, most)

    def walk(self, seed: int, steps: int = 250) -> State:
        """Follow one random schedule, and check every state on the way. Returns the last state."""
        random = Random(seed)
        state = State(tuple(Memory(0) for _ in FOUNDERS), frozenset(), 0, 0)
        while steps:
            steps -= 1
            if random.random() < 0.1:
                state = self.answers(state)
            me = random.choice(FOUNDERS)
            memory, what, packet = state.founders[me], "receive", None
            if memory.founded is not None:
                continue
            if me in self.leaders and state.leads < self.leads and random.random() < 0.1:
                what = "lead"
            elif memory.leading is not None and memory.leading[2] is None and random.random() < 0.3:
                what = "repeat"
            elif state.packets:
                packet = random.choice(sorted(state.packets, key=repr))
            else:
                continue
            after, effects = self.effects_of(me, memory, what, packet)
            leads, crashes = state.leads + (what == "lead"), state.crashes
            if crashes < self.crashes and effects and random.random() < 0.1:
                effects = effects[: random.randint(0, len(effects))]
                after = self.restart(me, self.written(memory, effects))
                crashes += 1
            state = self.state_with(state, me, after, effects, leads, crashes)
            self.check(state)
        return state

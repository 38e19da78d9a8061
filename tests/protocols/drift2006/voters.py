"""Explores every schedule of a small view change: voters, their packets, floods that arrive late, crashes.

The voters are the real `Votes`. The last source, which the others miss, is crashed, or alive and only slow. A
packet that was sent can reach any voter at any later time, any number of times, or never: that is loss,
duplication and reordering at once. A transition is an input of one voter; a crash can fall behind any of its
effects. Equal states are visited once; an input that changes nothing leads nowhere. Time does not pass: any
voter may begin a ballot at any moment, which covers every order of timers.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

from precede.core.effects import Effect, Persist
from precede.core.node import round_trip
from precede.protocols.drift2006.packets import Accepted, Promise, ViewRecord
from precede.protocols.drift2006.state import View
from precede.protocols.drift2006.votes import Votes, _Ballot
from tests.protocols.drift2006.exploring import explore


class Told(NamedTuple):
    """A decided view, as one node tells it to others."""

    record: ViewRecord


class Vote(NamedTuple):
    """That a voter has once stored its acceptance of a view. It is no packet: the checks count votes."""

    ballot: Any
    value: ViewRecord
    voter: int


class Memory(NamedTuple):
    """One voter: its vote, the ballot it leads, the floods of the missed source that it holds, its store.

    `floor` is how many of these floods it has vouched for; it does not rise while the voter is frozen.
    """

    holds: int
    floor: int = 0
    frozen: bool = False
    promised: Any = None
    accepted: Any = None
    round: int = 0
    leading: Any = None
    installed: ViewRecord | None = None
    saved: tuple[tuple[Any, Any], ...] = ()


class State(NamedTuple):
    voters: tuple[Memory, ...]
    packets: frozenset[Any]
    votes: frozenset[Vote]
    delivered: int
    leads: int
    crashes: int


class Broken(Exception):
    """An invariant does not hold; the message names it."""


class Explorer:
    """All states within bounds: how many ballots are led, by whom, and how often a voter crashes.

    The missed source is the last of the voters; `alive` says whether it can answer. It has sent `sent` floods,
    of which `holds` says how many each other voter has at first. The others may arrive at any time or never.
    """

    def __init__(
        self,
        holds: tuple[int, ...] = (0, 0),
        sent: int = 1,
        alive: bool = False,
        leads: int = 2,
        crashes: int = 0,
        leaders: tuple[int, ...] = (0, 1),
        votes: type[Votes] = Votes,
    ) -> None:
        self.count = len(holds) + 1
        self.ids = tuple((me, 0) for me in range(self.count))
        self.missed = self.ids[-1]
        self.sent = sent
        self.holds = (*holds, sent)
        self.up = range(self.count if alive else self.count - 1)
        self.leads = leads
        self.crashes = crashes
        self.leaders = leaders
        self.votes = votes

    # -- one voter -----------------------------------------------------------------------------------------

    def wake(self, me: int, memory: Memory) -> tuple[Votes, View]:
        """The voter as an object, with parts around it that do nothing but note what it sends."""
        view = View(crash_tolerant=True)
        view.set_voters(self.ids, me, 0)
        view.frozen = memory.frozen

        def install(record: ViewRecord, now: int, effects: list[Any]) -> None:
            effects += [Persist("view", record), Told(record)]

        floods = SimpleNamespace(
            gaps={},
            received=lambda id: memory.holds if id == self.missed else 0,
            stream=lambda id: id,
            heard_of=lambda stream, end, now, effects: None,
        )
        state = SimpleNamespace(
            view=view,
            durable=True,
            own_stream=self.ids[me],
            generator=Random(0),
            seen=SimpleNamespace(columns=self.ids, index=dict.fromkeys(self.ids)),
        )

        def send_control(body: Any, now: int, effects: list[Any]) -> None:
            effects.append(body)
            votes.receive(body, now, effects)

        dummies = SimpleNamespace(send_control=send_control)
        votes = self.votes(state, floods, dummies, 1, 1, install)  # type: ignore[arg-type]
        votes._promised, votes._accepted, votes._round = memory.promised, memory.accepted, memory.round
        if memory.leading is not None:
            ballot, promises, value, accepted = memory.leading
            votes._leading = _Ballot(ballot, (self.missed,))
            votes._leading.promises = {promise.voter: promise for promise in promises}
            votes._leading.value = value
            votes._leading.accepted = dict.fromkeys(accepted)
        return votes, view

    def keep(self, memory: Memory, votes: Votes, view: View, effects: list[Any]) -> Memory:
        """The voter as a value again, with what it has written."""
        leading, kept = votes._leading, None
        if leading is not None:
            promises = tuple(leading.promises[id] for id in sorted(leading.promises))
            kept = leading.ballot, promises, leading.value, tuple(sorted(leading.accepted))
        memory = memory._replace(
            frozen=view.frozen,
            promised=votes._promised,
            accepted=votes._accepted,
            round=votes._round,
            leading=kept,
        )
        return self.written(memory, effects)

    def written(self, memory: Memory, effects: list[Any]) -> Memory:
        """The memory with what these effects store; a stored view is in force."""
        saved = dict(memory.saved)
        for effect in effects:
            if isinstance(effect, Persist):
                saved[effect.key] = effect.value
        memory = memory._replace(saved=tuple(sorted(saved.items())))
        if "view" in saved:
            memory = memory._replace(installed=saved["view"], leading=None)
        return memory

    def restart(self, me: int, memory: Memory) -> Memory:
        """What is left after a crash: the store, and with it the floods."""
        fresh = Memory(memory.holds, saved=memory.saved, installed=memory.installed)
        votes, view = self.wake(me, fresh)
        votes.restore(round_trip(dict(memory.saved)))
        return self.vouch(self.keep(fresh, votes, view, []))

    def vouch(self, memory: Memory) -> Memory:
        """Raise the floor to what the voter holds, unless it is frozen."""
        return memory if memory.frozen else memory._replace(floor=max(memory.floor, memory.holds))

    # -- transitions ---------------------------------------------------------------------------------------

    def effects_of(self, me: int, memory: Memory, what: Any) -> tuple[Memory, list[Any]]:
        """Apply one input: "lead", "repeat" or a packet."""
        effects: list[Effect] = []
        votes, view = self.wake(me, memory)
        if isinstance(what, Told):
            effects += [Persist("view", what.record)]
        elif what == "lead":
            votes._lead((self.missed,), 0, effects)
        elif what == "repeat":
            assert votes._leading is not None
            votes._leading.attempts = 3
            votes._repeat(0, effects)
        else:
            votes.receive(what, 0, effects)
        kept = [effect for effect in effects if isinstance(effect, Persist) or not _is_timer(effect)]
        return self.keep(memory, votes, view, kept), kept

    def next(self, state: State) -> Iterator[State]:
        """Every state that one input, one late flood or one crash leads to."""
        for me in self.up:
            memory = state.voters[me]
            if memory.holds < self.sent:
                yield self.state_with(state, me, memory._replace(holds=memory.holds + 1), [], 0, 0)
            if memory.installed is not None:
                continue
            inputs: list[Any] = list(state.packets)
            if me in self.leaders and state.leads < self.leads and memory.leading is None:
                inputs.append("lead")
            if memory.leading is not None and memory.leading[2] is None:
                inputs.append("repeat")
            for what in inputs:
                after, effects = self.effects_of(me, memory, what)
                led = int(what == "lead")
                yield self.state_with(state, me, after, effects, led, 0)
                if state.crashes < self.crashes:
                    for count in range(len(effects) + 1):
                        back = self.restart(me, self.written(memory, effects[:count]))
                        yield self.state_with(state, me, back, effects[:count], led, 1)

    def state_with(
        self, state: State, me: int, memory: Memory, effects: list[Any], leads: int, crashes: int
    ) -> State:
        """The state after an input of one voter; a majority of floors lets a flood be delivered somewhere."""
        voters = (*state.voters[:me], self.vouch(memory), *state.voters[me + 1 :])
        floors = sorted((voter.floor for voter in voters), reverse=True)
        sent = [effect for effect in effects if not isinstance(effect, Persist)]
        saved = [effect.value for effect in effects if isinstance(effect, Persist) and effect.key == "vote"]
        return State(
            voters,
            state.packets.union(sent),
            state.votes.union(Vote(ballot, value, me) for _, _, ballot, value in saved if value is not None),
            max(state.delivered, floors[self.count // 2]),
            state.leads + leads,
            state.crashes + crashes,
        )

    def first(self) -> State:
        """Every voter has vouched for what it holds; the missed source did before it fell silent."""
        voters = tuple(Memory(holds, floor=holds) for holds in self.holds)
        state = State(voters, frozenset(), frozenset(), 0, 0, 0)
        return self.state_with(state, 0, voters[0], [], 0, 0)

    # -- what must hold ------------------------------------------------------------------------------------

    def check(self, state: State) -> None:
        """Agreement, one view chosen, a quorum behind it, nothing delivered is cut, no promise is lost.

        And: who accepts a view holds every flood that it keeps, so that a majority can pass it on.
        """
        views = {memory.installed for memory in state.voters if memory.installed is not None}
        views |= {packet.record for packet in state.packets if isinstance(packet, Told)}
        if len(views) > 1:
            raise Broken("agreement: two views with one number")
        chosen = {
            vote.value
            for vote in state.votes
            if 2 * sum((vote.ballot, vote.value) == other[:2] for other in state.votes) > self.count
        }
        if len(chosen) > 1:
            raise Broken("choice: majorities have accepted two views")
        for record in views:
            behind = sum(self.saved_vote(memory)[3] == record for memory in state.voters)
            if 2 * behind <= self.count:
                raise Broken("quorum: no majority has stored that it accepts the view")
            end = {(source, serial): end for source, serial, end in record.ends}.get(self.missed)
            if end is not None and end < state.delivered:
                raise Broken(f"flush: flood {state.delivered} was delivered, the view ends the stream at {end}")
        for memory in state.voters:
            value = self.saved_vote(memory)[3]
            if value is not None and any(end > memory.holds for source, _, end in value.ends):
                raise Broken("held: a voter accepted a view of which it lacks floods")
        for packet in state.packets:
            if isinstance(packet, Promise | Accepted):
                promised = self.saved_vote(state.voters[packet.voter[0]])[1]
                if promised is None or promised < packet.ballot:
                    raise Broken("promise: a vote was sent that its store has forgotten")

    def saved_vote(self, memory: Memory) -> tuple[Any, ...]:
        """The stored vote: view, promised ballot, accepted ballot and view."""
        vote: tuple[Any, ...] = dict(memory.saved).get("vote", (0, None, None, None))
        return vote

    def explore(self, most: int | None = None) -> int:
        """Visit every state, breadth first, and check each. Returns their number."""
        return explore(self.first(), self.next, lambda state, number: self.check(state), most)

    def walk(self, seed: int, steps: int = 200) -> State:
        """Follow one random schedule, and check every state on the way."""
        random = Random(seed)
        state = self.first()
        for _ in range(steps):
            following = [after for after in self.next(state) if after != state]
            if not following:
                break
            state = random.choice(following)
            self.check(state)
        return state


def _is_timer(effect: Any) -> bool:
    return hasattr(effect, "key") and hasattr(effect, "at")

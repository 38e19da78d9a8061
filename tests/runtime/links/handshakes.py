"""Explores every schedule of handshakes between two or three members, with restarts and an impostor.

Each member is the real `SealedAdmission` over real `Sessions`, `Handshake` and `Cipher`. A frame that was sent
can reach its addressee at any later time, any number of times, or never: that is loss, duplication, reordering
and the replay of old frames at once, also across restarts. A beacon of any boot, past or present, may be heard
at any time, for any member can forge beacons. A redirected frame reaches any member, from the address of a
relay that forwards nothing. A restart draws a new boot and forgets everything else. The impostor has the group
key and all that is public of a member, but not its secret key.

Reductions. Equal states are visited once, and an input that changes nothing leads nowhere. Keys and indices are
named by member, boot and number of the draw (`visible_keys`), so no renaming is needed to compare states.
Instants are compared relative to the member's own clock; clocks of members are independent, and of a member's
timers only the earliest can fire. Left out of states: counters for the user, and budgets of addresses (all
addresses are trusted).

Invariants, by the word that a `Broken` begins with:

    agreement    two sessions that name each other's indices belong to each other and have the same keys
    identity     a confirmed session was answered by its peer itself, in the boot that the session names
    freshness    data is accepted once, by its addressee, in a session between the present boots; boots of a
                 member are reported as ready in ascending order
    half-open    per peer: one attempt, `MOST_SESSIONS` sessions, nothing in the index table beside them
    healing      once frames arrive and beacons are heard, data passes in both directions between all members
                 within `HEALED_S` and `MOST_HEALING_FRAMES` handshake frames for each pair
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from random import Random
from typing import Any, Final, NamedTuple

from precede.runtime.links.link_events import Arrived
from precede.runtime.links.session_table import FIRST_RETRY_S, LAST_RETRY_S, MOST_SESSIONS
from precede.runtime.links.sessions import DATA, GIVE_UP_S, MESSAGE_2, REKEY_S
from tests.runtime.links.handshake_members import NOBODY, RELAY, Member, Members

BEACON_S: Final = 1.0
HEALED_S: Final = GIVE_UP_S + 3 * BEACON_S
"""An attempt whose answer its peer has dropped ends after `GIVE_UP_S`; the next beacon begins another."""
_REPEATS: Final = 2 + int(GIVE_UP_S / LAST_RETRY_S)
"""After `FIRST_RETRY_S` and twice that, message 1 is repeated every `LAST_RETRY_S` until it is given up."""
MOST_HEALING_FRAMES: Final = 2 * (1 + _REPEATS + 2)
"""Each side may send one message 1 and its repetitions in vain. Then it runs one handshake of two messages."""
assert 4 * FIRST_RETRY_S == LAST_RETRY_S


class Broken(Exception):
    """An invariant does not hold; the message begins with its name."""


Step = tuple[Any, ...]


class Frame(NamedTuple):
    """A frame in the air: who really sent it, in which boot, and to whom."""

    origin: int
    boot: int
    to: int
    content: bytes


class Bounds(NamedTuple):
    """How many events of each kind may still happen. In a sleep a clock leaps by `GIVE_UP_S` or `REKEY_S`."""

    beacons: int = 2
    ticks: int = 1
    restarts: int = 0
    says: int = 0
    sleeps: int = 0
    redirects: int = 0


class State(NamedTuple):
    """`memories` refers to members' memories by number; `ready` has the boots that each reported of each."""

    memories: tuple[int, ...]
    boots: tuple[int, ...]
    air: frozenset[Frame]
    accepted: frozenset[bytes]
    ready: tuple[tuple[tuple[int, ...], ...], ...]
    bounds: Bounds


class Explorer:
    """All states within bounds of `count` members; with `impostor` one more, which claims to be member 0."""

    def __init__(
        self, count: int = 2, bounds: Bounds | None = None, impostor: bool = False, heal_every: int = 0
    ) -> None:
        self.bounds = Bounds() if bounds is None else bounds
        self.heal_every = heal_every
        self.most_healing_frames = 0
        self._members = members = Members(count, impostor)
        self.honest = members.honest
        self.everybody = members.everybody
        self.numbers = members.numbers
        self._facts = members.facts

    # -- the world -----------------------------------------------------------------------------------------

    def first(self) -> State:
        memories = tuple(self._members.intern(place, self._members.make(place, 1)) for place in self.everybody)
        self._members.first = memories
        count = len(self.everybody)
        nobody = tuple(((),) * count for _ in self.everybody)
        return State(memories, (1,) * count, frozenset(), frozenset(), nobody, self.bounds)

    def following(self, state: State) -> Iterator[tuple[Step, State]]:
        """The steps that are possible now, each with the state that it leads to."""
        for before, place, event in self._inputs(state):
            after = self._act(before, place, event)
            if after != before:
                yield (place, *event), after
        if state.bounds.restarts:
            for place in self.honest:
                yield (place, "restart"), self._restarted(state, place)

    def _inputs(self, state: State) -> Iterator[tuple[State, int, tuple[Any, ...]]]:
        bounds = state.bounds
        for frame in sorted(state.air):
            for to in self._hearers(frame):
                yield state, to, ("frame", f"address {frame.origin}", frame.content)
        if bounds.beacons:
            less = state._replace(bounds=bounds._replace(beacons=bounds.beacons - 1))
            for place, peer in permutations(self.everybody, 2):
                if self.numbers[place] != self.numbers[peer]:
                    for boot in range(1, state.boots[peer] + 1):
                        yield less, place, ("beacon", peer, boot)
        if bounds.ticks:
            less = state._replace(bounds=bounds._replace(ticks=bounds.ticks - 1))
            for place in self.honest:
                if self._facts[state.memories[place]].has_timer:
                    yield less, place, ("tick",)
        if bounds.sleeps:
            less = state._replace(bounds=bounds._replace(sleeps=bounds.sleeps - 1))
            for place in self.honest:
                for seconds in (GIVE_UP_S + 1, REKEY_S + 1):
                    yield less, place, ("sleep", seconds)
        if bounds.says:
            less = state._replace(bounds=bounds._replace(says=bounds.says - 1))
            for place, peer in permutations(self.honest, 2):
                yield less, place, ("say", peer, self._payload(state, place, peer))
        if bounds.redirects:
            less = state._replace(bounds=bounds._replace(redirects=bounds.redirects - 1))
            for frame in sorted(state.air):
                for to in self.honest:
                    yield less, to, ("frame", RELAY, frame.content)

    def _hearers(self, frame: Frame) -> tuple[int, ...]:
        """Return the members that hear a frame: its addressee, and the impostor if it is sent to its victim."""
        impostor = tuple(self.everybody[len(self.honest) :])
        return (0, *impostor) if frame.to == 0 else (frame.to,) if frame.to != NOBODY else ()

    def _payload(self, state: State, place: int, peer: int) -> bytes:
        """Data that names its sender and addressee, the boots between which it is sent, and itself."""
        current = self._facts[state.memories[place]].current.get(self.numbers[peer], 0)
        return b"%d %d %d %d %d" % (place, state.boots[place], peer, current, state.bounds.says)

    def _act(self, state: State, place: int, event: tuple[Any, ...]) -> State:
        answer = self._members.answer(place, state.memories[place], event)
        sent = {
            Frame(place, state.boots[place], self._members.addresses[where], content)
            for where, content in answer.frames
        }
        memories = _replaced(state.memories, place, answer.memory)
        state = state._replace(memories=memories, air=state.air | sent)
        for number, boot in answer.ready:
            state = self._note_ready(state, place, self.numbers.index(number), boot)
        if answer.arrived is not None and place in self.honest:
            state = self._accept(state, place, answer.arrived)
        return state

    def _note_ready(self, state: State, place: int, peer: int, boot: int) -> State:
        reported = state.ready[place]
        if place in self.honest and reported[peer] and boot <= reported[peer][-1]:
            raise Broken(f"freshness: member {place} reports boot {boot} of {peer} after {reported[peer]}")
        ready = _replaced(reported, peer, (*reported[peer], boot))
        return state._replace(ready=_replaced(state.ready, place, ready))

    def _accept(self, state: State, place: int, arrived: Arrived) -> State:
        origin, boot, to, to_boot, _ = map(int, arrived.data.split())
        if arrived.sender != self.numbers[origin] or to != place or to_boot != state.boots[place]:
            raise Broken(f"freshness: member {place} in boot {state.boots[place]} accepts {arrived}")
        if boot != state.ready[place][origin][-1]:
            raise Broken(f"freshness: member {place} accepts {arrived} after {state.ready[place][origin]}")
        if arrived.data in state.accepted:
            raise Broken(f"freshness: member {place} accepts {arrived} twice")
        return state._replace(accepted=state.accepted | {arrived.data})

    def _restarted(self, state: State, place: int) -> State:
        boot = state.boots[place] + 1
        return state._replace(
            memories=_replaced(
                state.memories, place, self._members.intern(place, self._members.make(place, boot))
            ),
            boots=_replaced(state.boots, place, boot),
            ready=_replaced(state.ready, place, ((),) * len(self.everybody)),
            bounds=state.bounds._replace(restarts=state.bounds.restarts - 1),
        )

    # -- what must hold ------------------------------------------------------------------------------------

    def check(self, state: State) -> None:
        for place in self.honest:
            facts = self._facts[state.memories[place]]
            if facts.leaked or facts.most_sessions > MOST_SESSIONS:
                raise Broken(f"half-open: member {place} has {facts}")
            for session in facts.sessions:
                peer = self.numbers.index(session.peer)
                if session.confirmed and not any(
                    frame.origin == peer
                    and frame.boot == session.boot
                    and frame.content[0] in (MESSAGE_2, DATA)
                    and frame.content[1:5] == session.mine
                    for frame in state.air
                ):
                    raise Broken(f"identity: member {place} has a session that {peer} never had: {session}")
                for other in self._facts[state.memories[peer]].sessions:
                    if (other.mine, other.theirs) == (session.theirs, session.mine):
                        self._check_pair(state, place, session, peer, other)

    def _check_pair(self, state: State, place: int, session: Any, peer: int, other: Any) -> None:
        peers = (session.peer, other.peer) == (self.numbers[peer], self.numbers[place])
        boots = (session.boot, other.boot) == (state.boots[peer], state.boots[place])
        keys = (session.sending, session.receiving) == (other.receiving, other.sending)
        if not (peers and boots and keys):
            raise Broken(f"agreement: {place} has {session}, {peer} has {other}")

    def check_healed(self, state: State) -> int:
        """Let a calm network run: frames arrive, and each second beacons are heard and sessions pinged.

        Returns the handshake frames that it took, of the pair with most of them.
        """
        members = {
            place: self._members.copy(self._members.memories[state.memories[place]]) for place in self.honest
        }
        counts = dict.fromkeys(permutations(self.honest, 2), 0)
        for step in range(int(HEALED_S / 0.05)):
            frames: list[tuple[int, int, bytes]] = []
            for place, member in members.items():
                member.clock += 0.05
                if step % int(BEACON_S / 0.05) == 0:
                    for peer in members:
                        if peer != place:
                            self._members.give(member, ("beacon", peer, state.boots[peer]))
                            member.admission.ping(self.numbers[peer])
                self._members.randomness.current = member.draws
                member.admission.tick(member.clock)
                frames += self._take(place, counts)
            while frames:
                origin, to, content = frames.pop(0)
                self._members.give(members[to], ("frame", f"address {origin}", content))
                frames += self._take(to, counts)
            if self._all_talk(members):
                break
        else:
            raise Broken(f"healing: not all members have sessions: boots {state.boots}")
        most = max(counts[a, b] + counts[b, a] for a, b in counts)
        if most > MOST_HEALING_FRAMES:
            raise Broken(f"healing: took {most} handshake frames between two members")
        return most

    def _take(self, place: int, counts: dict[tuple[int, int], int]) -> list[tuple[int, int, bytes]]:
        sent = [(place, self._members.addresses[where], content) for where, content in self._members.sent]
        self._members.sent.clear()
        self._members.ready.clear()
        for origin, to, content in sent:
            if to in self.honest and content[0] != DATA:
                counts[origin, to] += 1
        return [each for each in sent if each[1] in self.honest]

    def _all_talk(self, members: dict[int, Member]) -> bool:
        """Does data pass in both directions between all members?"""
        copies = {place: self._members.copy(member) for place, member in members.items()}
        for place, peer in permutations(copies, 2):
            self._members.give(copies[place], ("say", peer, b"0 0 0 0 0"))
            if not self._members.sent:
                return False
            ((_, content),) = self._members.sent
            self._members.sent.clear()
            arrived = self._members.give(copies[peer], ("frame", f"address {place}", content))
            self._members.sent.clear()
            self._members.ready.clear()
            if arrived is None or arrived.sender != self.numbers[place]:
                return False
        return True

    # -- the search ----------------------------------------------------------------------------------------

    def explore(self, most: int | None = None) -> int:
        """Visit every state, breadth first, at most so many. Returns how many; raises `Broken`."""
        with self._members.randomness.installed():
            first = self.first()
            self._came_from: dict[State, tuple[Step, State] | None] = {first: None}
            seen, level = self._came_from, [first]
            while level:
                later = []
                for state in level:
                    for step, after in self._steps(state):
                        if after not in seen:
                            seen[after] = (step, state)
                            later.append(after)
                            self._judge(after, len(seen))
                    if most is not None and len(seen) >= most:
                        return len(seen)
                level = later
            return len(seen)

    def _steps(self, state: State) -> Iterator[tuple[Step, State]]:
        try:
            yield from self.following(state)
        except Broken as error:
            raise Broken(f"{error}\nafter {self._story(state)}") from error

    def _judge(self, state: State, number: int) -> None:
        try:
            self.check(state)
            if self.heal_every and number % self.heal_every == 0:
                self.most_healing_frames = max(self.most_healing_frames, self.check_healed(state))
        except Broken as error:
            raise Broken(f"{error}\nafter {self._story(state)}") from error

    def _story(self, state: State) -> str:
        """The steps that lead to a state, one on each line."""
        steps: list[str] = []
        before = self._came_from[state]
        while before is not None:
            steps.append(
                " ".join(item.hex()[:18] if isinstance(item, bytes) else str(item) for item in before[0])
            )
            before = self._came_from[before[1]]
        return "\n    ".join(("", *reversed(steps)))

    def walk(self, seed: int, steps: int) -> int:
        """Follow one random schedule and heal it. Returns the handshake frames that this took."""
        with self._members.randomness.installed():
            random, state = Random(seed), self.first()
            for _ in range(steps):
                choices = [after for _, after in self.following(state)]
                if not choices:
                    break
                state = random.choice(choices)
                self.check(state)
            return self.check_healed(state)


def _replaced(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])

"""Members of a small world as values: their memories are interned, and each input is computed once."""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

from precede.core.identity import NodeId
from precede.runtime.links.admission import SealedAdmission
from precede.runtime.links.agreement import Agreement
from precede.runtime.links.introductions import Directory, Identity
from precede.runtime.links.link_events import Arrived, LinkEvents
from precede.runtime.names import node_id
from tests.runtime.links.handshake_memory import Facts, facts_of, key_of, next_due
from tests.runtime.links.visible_keys import Draws, Mask, Randomness

GROUP = "picnic"
KEY = bytes(range(32))
NAMES = ("ana", "ben", "cat")
RELAY: Final = "address of a relay"
NOBODY: Final = -1


class Answer(NamedTuple):
    """What an input of a member led to."""

    memory: int
    frames: tuple[tuple[str, bytes], ...]
    ready: tuple[tuple[NodeId, int], ...]
    arrived: Arrived | None


class Member:
    """One member in one boot: its admission, its clock, its draws."""

    def __init__(self, admission: SealedAdmission, draws: Draws) -> None:
        self.admission = admission
        self.draws = draws
        self.clock = 1000.0


class Members:
    """The memories of all members. `sent` has the frames of the last input, `facts` those of each memory."""

    def __init__(self, count: int, impostor: bool) -> None:
        self.honest = range(count)
        self.everybody = range(count + impostor)
        self.sent: list[tuple[Any, bytes]] = []
        self.facts: list[Facts] = []
        self.randomness = Randomness()
        self.ready: list[tuple[NodeId, int]] = []
        self._events = LinkEvents(
            send=lambda frame, where: self.sent.append((where, frame)),
            on_ready=lambda peer, boot, where: self.ready.append((peer, boot)),
            on_moved=lambda peer, where: None,
            on_alive=lambda peer: None,
            on_stranger=lambda where: None,
            on_mismatch=lambda where: None,
        )
        names = sorted(NAMES[:count], key=node_id)
        self._names = (*names, *names[: len(self.everybody) - count])
        self.numbers = tuple(map(node_id, self._names))
        self.addresses = {f"address {place}": place for place in self.everybody} | {RELAY: NOBODY}
        self._identities = [Identity(bytes([place + 1]) * 32) for place in self.everybody]
        self._introductions = [
            self._identities[place].introduce(GROUP, self._names[place]) for place in self.honest
        ]
        for identity in self._identities[count:]:
            identity.link = Mask(self._identities[0].link.public_key(), identity.link)  # type: ignore[assignment]
        self.memories: list[Member] = []
        self.first: tuple[int, ...] = ()
        self._places: dict[Any, int] = {}
        self._answers: dict[tuple[int, Any], Answer] = {}

    def make(self, place: int, boot: int) -> Member:
        """A member that has just started. The impostor has its victim's name and introduction."""
        honest = place if place in self.honest else 0
        own = self._introductions[honest]
        roster = {each.name: each.signing for each in self._introductions}
        directory = Directory(GROUP, own, node_id, roster)
        for introduction in self._introductions:
            directory.accept(introduction)
        name, draws = self._names[place], Draws(place, boot)
        agreement = Agreement(name, {}, lambda: 0, None, str, lambda code, text, peer: None)
        self.randomness.current = draws
        admission = SealedAdmission(
            self.numbers[place], self._identities[place], directory, GROUP, (KEY,), boot, agreement
        )
        admission.connect(self._events)
        for address in self.addresses:
            admission.trust(address)
        return Member(admission, draws)

    def copy(self, member: Member) -> Member:
        """A member that can go on by itself; it shares what never changes."""
        admission = member.admission
        sessions = admission._sessions
        shared = (
            *(admission.directory, admission.agreement, admission._identity, admission._events),
            *(sessions._seal_for_all, sessions._keys),
        )
        return copy.deepcopy(member, {id(each): each for each in shared})

    def intern(self, place: int, member: Member) -> int:
        """The number of a member's memory."""
        key = (place, key_of(member.admission, member.clock, member.draws.count))
        number = self._places.setdefault(key, len(self.memories))
        if number == len(self.memories):
            self.memories.append(member)
            self.facts.append(facts_of(member.admission))
        return number

    def answer(self, place: int, memory: int, event: tuple[Any, ...]) -> Answer:
        """A member's memory after an input, and what it did; computed once."""
        answer = self._answers.get((memory, event))
        if answer is None:
            member = self.copy(self.memories[memory])
            arrived = self.give(member, event)
            frames, ready = tuple(self.sent), tuple(self.ready)
            self.sent.clear()
            self.ready.clear()
            answer = Answer(self.intern(place, member), frames, ready, arrived)
            self._answers[memory, event] = answer
        return answer

    def give(self, member: Member, event: tuple[Any, ...]) -> Arrived | None:
        """Give a member an input; return the data that it accepts."""
        admission, self.randomness.current = member.admission, member.draws
        match event:
            case ("beacon", peer, boot):
                admission.beacon_heard(self.beacon(peer, boot), f"address {peer}", member.clock)
            case ("frame", where, content):
                return admission.frame(content, where, member.clock)
            case ("tick",):
                member.clock = max(member.clock, next_due(admission, member.clock))
                admission.tick(member.clock)
            case ("sleep", seconds):
                member.clock += seconds
            case ("say", peer, data):
                sealed = admission.seal_to(self.numbers[peer], data)
                if sealed is not None:
                    self.sent.append((sealed[1], sealed[0]))
        return None

    def beacon(self, place: int, boot: int) -> bytes:
        """The beacon of a member in one boot."""
        made = self.memories[self.first[place]].admission
        head, tail = made.beacon()[:8], made.beacon()[16:]
        return head + boot.to_bytes(8, "big") + tail

"""A small group in one process, and a malicious member with valid keys that sends it any packet.

Honest members run real nodes behind the real codec, inspection and signatures. A packet takes a millisecond.
The malicious member ("mal") sees every packet that honest members send, and sends altered copies, invented
packets of every kind, and messages of its own, signed with its own key.
"""

from __future__ import annotations

import gc
import heapq
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import count
from random import Random
from typing import Any

import msgspec

from precede.core.effects import (
    RADIO,
    WIRED,
    Accept,
    Arrive,
    CancelTimer,
    Deliver,
    Discard,
    Key,
    Medium,
    Send,
    SetTimer,
)
from precede.core.errors import Refused
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.core.messages import MOST_MESSAGES, Packet
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.routing.copies import HelloPacket
from precede.runtime.codec import Codec
from precede.runtime.evidence.history import Contradiction
from precede.runtime.links.authorship import Authors, public_of
from precede.runtime.links.inspection import Inspection
from precede.runtime.reception import Reception
from tests.hostile.packets import any_packet
from tests.hostile.stopwatch import Call, Stopwatch

BEGIN: Instant = 1_700_000_000_000_000
DELAY = MILLISECOND
GROUP = "hostile"
HONEST, MAL = (0, 1, 2), 3
SEEDS = {node: blake2b(b"%d" % node, digest_size=32).digest() for node in (*HONEST, MAL)}
ROSTER = {node: public_of(seed) for node, seed in SEEDS.items()}
CELLULAR = ("was", "ck", "prs_mobile")
WAITS_FOR_ALL = ("drift", "tof", "vcube")
"""One silent source or relay stops the others in these protocols: there mal is neither at first."""


class Combination(msgspec.Struct, frozen=True):
    """A protocol, and the dissemination that an ordering is joined to ("" for other protocols)."""

    protocol: str
    dissemination: str = ""

    def __str__(self) -> str:
        return f"{self.protocol}-{self.dissemination}" if self.dissemination else self.protocol


def combinations() -> list[Combination]:
    """All combinations of the registry: every ordering over every dissemination, and the other protocols."""
    made = []
    for name in registry.names():
        if registry.find(name).ordering is None:
            made.append(Combination(name))
        else:
            made += [Combination(name, joined) for joined in registry.disseminations()]
    return made


def quick_combinations() -> list[Combination]:
    """Every protocol, and every dissemination. The routings' packets do not depend on the ordering above."""
    packets = {name: registry.find_dissemination(name).packets for name in registry.disseminations()}
    routings = [name for name in packets if HelloPacket in packets[name]]
    above = ("unordered", "causal_barrier")
    return [each for each in combinations() if each.dissemination not in routings or each.protocol in above]


class Member:
    """An honest member: a node, its timers, and what it delivered."""

    def __init__(
        self, combination: Combination, id: NodeId, role: str, group: Group, options: dict[str, Any]
    ) -> None:
        entry = registry.find(combination.protocol)
        options = dict(options)
        if entry.ordering is not None:
            options["dissemination"] = combination.dissemination
        if combination.protocol == "delta_causal":
            options["lifetime"] = "1h"
        self.id = id
        self.role = role
        members = HONEST if combination.protocol in WAITS_FOR_ALL else (*HONEST, MAL)
        self.node = registry.make_entry(entry, role, Context(id, members, options, Random(id), 0))
        self.codec = Codec(*registry.wire_types(entry, self.node, combination.dissemination or "direct"))
        self.authors = Authors(GROUP, id, SEEDS[id], ROSTER)
        self.inspection = Inspection(id, 0, self.authors)
        self.dropped: Counter[str] = Counter()
        self.reception = Reception(self.codec, self.dropped)
        self.contradictions: list[Contradiction] = []
        self.authors.on_contradiction = lambda public, found: self.contradictions.append(found)
        self.accepted = 0
        self.delivered: list[MessageId] = []
        self.timers: dict[Key, Instant] = {}
        self._group = group

    def run(self, effects: Any) -> None:
        """Carry effects out."""
        self.inspection.accepting(effects)
        for effect in effects:
            match effect:
                case Send():
                    whole = effect.packet
                    for packet in whole.divided(MOST_MESSAGES) if whole.messages > MOST_MESSAGES else (whole,):
                        self.inspection.outgoing(packet)
                        self._group.send(self, effect, self.codec.encode(packet))
                case Deliver():
                    self.inspection.delivered(effect.message.id)
                    self.delivered.append(effect.message.id)
                case Accept():
                    self.accepted = max(self.accepted, effect.message.id.number)
                    self._group.sent_messages.setdefault(effect.message.id, None)
                case Arrive():
                    for message in effect.messages:
                        self.inspection.arrived(message)
                case Discard():
                    self.inspection.discarded(effect.message.id)
                case SetTimer():
                    self.timers[effect.key] = effect.at
                    self._group.schedule(effect.at, ("timer", self, effect.key, effect.at))
                case CancelTimer():
                    self.timers.pop(effect.key, None)

    def receive(self, data: bytes, sender: NodeId, over: Medium, now: Instant) -> bool:
        """Receive bytes; True if they were a packet that passed all checks."""
        stopwatch = self._group.stopwatch
        stopwatch.start()
        packet = self.reception.decode(data, now, self.accepted, self.inspection)
        if packet is not None and self.reception.queued(0, len(data)):
            self.run(self.reception.receive(self.node, packet, sender, over, len(data), now))
        stopwatch.stop(f"refuse {len(data)} bytes" if packet is None else f"receive {type(packet).__name__}")
        return packet is not None


class Group:
    """Three honest members and the wires between them; `mal` is a fourth that runs no node.

    In radio cells member 0 is a station, members 1 and 2 are hosts in its cell, and mal is a second station.
    """

    def __init__(self, combination: Combination, **options: Any) -> None:
        self.combination = combination
        self.stopwatch = Stopwatch(str(combination))
        self.now = BEGIN
        self.sent_messages: dict[MessageId, None] = {}
        self.heard: list[bytes] = []
        self._queue: list[tuple[Instant, int, Any]] = []
        self._serial = count()
        cellular = combination.protocol in CELLULAR
        self.cellular = cellular
        self.members = {id: Member(combination, id, _role(cellular, id), self, options) for id in HONEST}
        self.entry = registry.find(combination.protocol)
        for member in self.members.values():
            member.run(member.node.start(self.now, {}))
        for a, b, over in self._links():
            for one, other in ((a, b), (b, a)):
                if one in self.members:
                    member = self.members[one]
                    member.run(member.node.link_up(other, self.now, over))

    def _links(self) -> Iterator[tuple[NodeId, NodeId, Medium]]:
        if self.cellular:
            yield from ((0, 1, RADIO), (0, 2, RADIO), (0, MAL, WIRED))
        else:
            yield from ((a, b, RADIO) for a in (*HONEST, MAL) for b in (*HONEST, MAL) if a < b)

    def schedule(self, at: Instant, what: Any) -> None:
        heapq.heappush(self._queue, (at, next(self._serial), what))

    def send(self, sender: Member, effect: Send, data: bytes) -> None:
        """A packet leaves an honest member."""
        assert effect.packet.to_all or effect.to != NEIGHBOURS, effect.packet.kind  # else sockets drop it
        reachable = [
            (b if a == sender.id else a)
            for a, b, over in self._links()
            if sender.id in (a, b) and (over == effect.over or not self.cellular)
        ]
        for peer in reachable if effect.to == NEIGHBOURS else [effect.to] if effect.to in reachable else []:
            if peer == MAL:
                if len(self.heard) < 4096:
                    sender.codec.decode(data)  # what an honest member sends, the others can decode
                    self.heard.append(data)
            else:
                self.schedule(self.now + DELAY, ("packet", self.members[peer], data, sender.id, effect.over))
        if effect.key is not None:
            self.schedule(self.now, ("sent", sender, effect.key))

    def run_until(self, end: Instant) -> None:
        """Let time pass."""
        queue = self._queue
        while queue and queue[0][0] <= end:
            at, _, what = heapq.heappop(queue)
            self.now = max(self.now, at)
            match what:
                case ("packet", member, data, sender, over):
                    member.receive(data, sender, over, self.now)
                case ("sent", member, key):
                    member.run(member.node.sent(key, self.now, True))
                case ("timer", member, key, due) if member.timers.get(key) == due:
                    del member.timers[key]
                    self.stopwatch.start()
                    member.run(member.node.timer(key, self.now))
                    self.stopwatch.stop(f"timer {key}")
        self.now = max(self.now, end)

    def speakers(self) -> list[Member]:
        return [member for member in self.members.values() if not (self.cellular and member.role == "station")]

    def broadcast(self, member: Member) -> None:
        """A member broadcasts, if its protocol allows it now."""
        to = None
        if self.entry.order == "multicast":
            to = [other.id for other in self.speakers() if other is not member]
        try:
            member.run(member.node.broadcast(b"from %d" % member.id, self.now, to))
        except Refused:
            return

    def attack(self, member: Member, data: bytes, over: Medium) -> bool:
        """Mal's bytes arrive at a member."""
        return member.receive(data, MAL, over, self.now)

    def lost(self) -> dict[NodeId, list[MessageId]]:
        """Honest messages that an honest member did not deliver."""
        return self._where(lambda times: times == 0)

    def doubled(self) -> dict[NodeId, list[MessageId]]:
        """Messages, mal's too, that an honest member delivered more than once."""
        return {
            member.id: [id for id, times in Counter(member.delivered).items() if times > 1]
            for member in self.speakers()
            if len(set(member.delivered)) < len(member.delivered)
        }

    def forged(self) -> dict[NodeId, list[MessageId]]:
        """Messages in an honest member's name that it did not write."""
        found = {
            member.id: [id for id in member.delivered if id.source != MAL and id not in self.sent_messages]
            for member in self.speakers()
        }
        return {id: ids for id, ids in found.items() if ids}

    def framed(self) -> dict[NodeId, list[Contradiction]]:
        """Evidence of any kind against honest members, at honest members."""
        found = {
            member.id: [each for each in member.contradictions if each[1].header.source != MAL]
            for member in self.members.values()
        }
        return {id: each for id, each in found.items() if each}

    def _where(self, wrong: Any) -> dict[NodeId, list[MessageId]]:
        found = {}
        for member in self.speakers():
            times = Counter(member.delivered)
            own = member.id if self.entry.order == "multicast" else None
            ids = [id for id in self.sent_messages if id.source != own and wrong(times[id])]
            if ids:
                found[member.id] = ids
        return found


def _role(cellular: bool, id: NodeId) -> str:
    if not cellular:
        return "node"
    return "station" if id == 0 else "host"


class Mal:
    """Makes the packets of the malicious member.

    `equivocates`: it signs different messages with one id, and sends a message to some of its addressees only.
    """

    def __init__(self, group: Group, random: Random, equivocates: bool) -> None:
        self.random = random
        self.equivocates = equivocates
        self._written: dict[MessageId, Any] = {}
        self._group = group
        member = next(iter(group.members.values()))
        self._member = member
        self.kinds, _ = registry.wire_types(
            group.entry, member.node, group.combination.dissemination or "direct"
        )
        self._codec = member.codec
        self._authors = Authors(GROUP, MAL, SEEDS[MAL], ROSTER)

    def packet(self) -> bytes:
        """Bytes of one hostile packet."""
        random = self.random
        chance = random.random()
        if chance < 0.35 and self._group.heard:
            packet: Any = self._codec.decode(random.choice(self._group.heard))
            for _ in range(random.choice((0, 1, 1, 2, 3))):
                packet = altered(packet, random)
        else:
            packet = any_packet(random.choice(self.kinds), random)
        if random.random() < 0.7:
            packet = as_mal(packet, random)
        try:
            if random.random() < 0.8 and (self.equivocates or self._is_consistent(packet)):
                self._authors.sign(packet)
            data = self._codec.encode(packet)
        except (TypeError, AttributeError, OverflowError, ValueError):
            return random.randbytes(40)  # so badly typed that not even its author can sign or encode it
        return _bent(data, random) if random.random() < 0.1 else data

    def subtle_packet(self) -> bytes:
        """Bytes of a message of mal's, whose order data differ a little from those of an honest one."""
        random = self.random
        for _ in range(100):
            if not self._group.heard:
                break
            packet: Any = self._codec.decode(random.choice(self._group.heard))
            if not list(packet.written()):
                continue
            packet = as_mal(packet, random, nudged=True)
            try:
                if self._is_consistent(packet):
                    self._authors.sign(packet)
                    return self._codec.encode(packet)
            except (TypeError, AttributeError, OverflowError, ValueError):
                continue
        return b""

    def _is_consistent(self, packet: Packet) -> bool:
        """Has mal signed nothing else with the same ids, and is every message for all who may be addressed?"""
        everybody = self._group.entry.order not in ("multicast", "none")
        for item in packet.written():
            id = item.message.id
            envelope_to = item.order[1] if self._group.combination.dissemination else None
            if id.source == MAL and id.number:
                content = (item.message.payload, item.destinations, item.deadline, item.order)
                if self._written.setdefault(id, content) != content or (everybody and envelope_to is not None):
                    return False
        return True


INTEGERS: tuple[Any, ...] = (
    *(0, 1, 2, 3, 4, 5, 9, 64, 1000, -1, 1 << 15, 1 << 20, 1 << 24, (1 << 31) - 1, 1 << 39, 1 << 40, 1 << 48),
    *((1 << 62) - 1, 1 << 62, (1 << 63) - 1, (1 << 64) - 1, -(1 << 40), -(1 << 62), -(1 << 63)),
    *(0.0, 1.5, -1e308, float("inf"), float("nan"), 1e18),
)


def altered(value: Any, random: Random) -> Any:
    """The same packet with one field, at any depth, changed."""
    if isinstance(value, msgspec.Struct):
        fields = value.__struct_fields__
        if not fields:
            return value
        field = random.choice(fields)
        return msgspec.structs.replace(value, **{field: altered(getattr(value, field), random)})
    if isinstance(value, tuple):
        how = random.randrange(4)
        if not value:
            return value
        place = random.randrange(len(value))
        if how == 0:
            return value * random.choice((0, 2, 300 if len(value) < 4 else 2 if len(value) < 300 else 0))
        if how == 1:
            return (*value[:place], *value[place + 1 :])
        return (*value[:place], altered(value[place], random), *value[place + 1 :])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + random.choice((-1, 1, 1000)) if random.random() < 0.4 else random.choice(INTEGERS)
    if isinstance(value, bytes):
        return random.choice((b"", value[:-1], value + b"\x00", random.randbytes(len(value)), bytes(5000)))
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        return {**value, key: altered(value[key], random), random.choice((0, 1, 9, 1 << 62)): value[key]}
    if isinstance(value, frozenset):
        return frozenset(list(value)[: random.randrange(1 + len(value))])
    return random.choice((value, None, 0, b"", ()))


def as_mal(value: Any, random: Random, nudged: bool = False) -> Any:
    """The same packet with its messages in mal's name, so that mal can sign them.

    `nudged`: in mal's first life, and with slightly other numbers in what the ordering wrote.
    """
    if isinstance(value, MessageId):
        return MessageId(
            MAL,
            0 if nudged else random.choice((0, 0, 0, 1, 7)),
            value.number if random.random() < 0.5 else random.randrange(1, 40),
        )
    if isinstance(value, msgspec.Struct):
        changed = {
            field: nudge(getattr(value, field), random)
            if nudged and field == "stamp"
            else as_mal(getattr(value, field), random, nudged)
            for field in value.__struct_fields__
        }
        for field in ("source", "origin"):
            if field in changed and random.random() < 0.8:
                changed[field] = MAL
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(as_mal(item, random, nudged) for item in value)
    return value


def nudge(value: Any, random: Random) -> Any:
    """The order data of a message with other ids in it, and numbers that differ by little."""
    if isinstance(value, MessageId):
        return MessageId(
            random.choice((*HONEST, MAL)), 0, max(1, value.number + random.choice((-1, 0, 0, 1, 2, 3)))
        )
    if isinstance(value, msgspec.Struct):
        fields = {field: nudge(getattr(value, field), random) for field in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, dict):
        return {key: nudge(number, random) for key, number in value.items() if random.random() < 0.8}
    if isinstance(value, tuple):
        return tuple(nudge(item, random) for item in value if random.random() < 0.9 or len(value) < 4)
    if isinstance(value, int) and not isinstance(value, bool) and value < 1000:
        return max(0, value + random.choice((-1, 0, 0, 0, 1, 2)))
    return value


def _bent(data: bytes, random: Random) -> bytes:
    bent = bytearray(data)
    for _ in range(random.randint(1, 3)):
        bent[random.randrange(len(bent))] = random.randrange(256)
    return bytes(bent)


class Outcome(msgspec.Struct):
    """What an attack of so many packets did."""

    combination: str
    packets: int
    passed: int
    raised: int
    slowest: Call
    memory_mib: float
    messages: int
    lost: int
    doubled: int
    forged: int
    framed: int
    dropped: dict[str, int]


def attack(
    combination: Combination,
    packets: int,
    seed: int,
    equivocates: bool = False,
    calm: Instant = 60 * SECOND,
    subtle: bool = False,
) -> Outcome:
    """Honest members broadcast while mal sends packets; then mal stops, and the network has time to heal.

    A packet of a mal that does not equivocate goes to every member, and counts once for each. A subtle mal
    sends only messages that pass every check, to each member in another order.
    """
    random = Random(seed)
    gc.collect()  # the group before: no call of this one has to pay for it
    group = Group(combination)
    group.run_until(BEGIN + 5 * SECOND)
    mal, passed, begin = Mal(group, random, equivocates), 0, _memory()
    make = mal.subtle_packet if subtle else mal.packet
    members = list(group.members.values())
    speakers: Sequence[Member] = group.speakers()
    packets //= 1 if equivocates else len(members)
    every = max(packets // 60, 1)
    for step in range(packets):
        if step % every == 0:
            group.broadcast(random.choice(speakers))
        data, over = make(), random.choice((RADIO, WIRED))
        for member in random.sample(members, 1 if equivocates else len(members)):
            if subtle:
                group.schedule(
                    group.now + random.randrange(90 * MILLISECOND), ("packet", member, data, MAL, over)
                )
            else:
                passed += group.attack(member, data, over)
        if step % 8 == 0:
            group.run_until(group.now + random.choice((0, MILLISECOND, 40 * MILLISECOND)))
    for member in members:
        group.run_until(group.now + SECOND)
        if member in speakers:
            group.broadcast(member)
    group.run_until(group.now + calm)
    dropped = sum((member.dropped for member in members), Counter[str]())
    return Outcome(
        combination=str(combination),
        packets=packets if equivocates else packets * len(members),
        passed=passed,
        raised=dropped["raised"],
        slowest=group.stopwatch.slowest,
        memory_mib=round(_memory() - begin, 1),
        messages=len(group.sent_messages),
        lost=sum(map(len, group.lost().values())),
        doubled=sum(map(len, group.doubled().values())),
        forged=sum(map(len, group.forged().values())),
        framed=sum(map(len, group.framed().values())),
        dropped=dict(sorted(dropped.items())),
    )


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

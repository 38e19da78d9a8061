"""A live node under attack: millions of altered and random datagrams, and a flood from outside.

`python -m benchmarks.hostile --datagrams 2000000` sends so many hostile datagrams to a node that exchanges
messages with another meanwhile, most of them from a member gone bad, who has the group key: none may be
delivered, nothing may be raised, memory must stay where it was; and as many to the codecs of all protocols.
`--members 5000000` sends so many packets of a malicious member, half of them of one that equivocates, to the
nodes of all protocols (docs/security.md says what it may do), and names the calls that took most CPU time. A
stranger floods all members as fast as the loopback takes it while they offer a quarter of what they can do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import time
from multiprocessing.sharedctypes import Synchronized
from random import Random
from typing import Any

from benchmarks.members import KEY, ROSTER, SEEDS, Members
from precede.core.identity import MessageId
from precede.core.messages import Message, Packet
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.gossip.packets import DigestPacket, WantPacket, data_packet
from precede.protocols.layered.parsed_envelopes import batch_of
from precede.runtime.codec import Codec, Garbled
from precede.runtime.links.group_seal import GroupSeal, derive_keys
from precede.runtime.links.keyring import new_key
from precede.runtime.names import node_id
from tests.hostile.members import Combination, Outcome, attack, combinations
from tests.hostile.packets import any_packet
from tests.runtime.insider import Insider

_GOSSIP = Codec(registry.find_dissemination("gossip").packets)

BURST = 64
SLOW_CALL_S = 0.05
ANA, BEN, MAL = map(node_id, ("ana", "ben", "mal"))


class Attacker:
    """Makes hostile datagrams: from outside, replayed ones, and those of a malicious member."""

    def __init__(self, victim: Any, insider: Insider, random: Random) -> None:
        self._victim = victim
        self._random = random
        self._admission = insider.admission
        self._other_group = GroupSeal([derive_keys(new_key())])
        self._outside = [self._noise, self._bent, self._bent, self._again, self._foreign]
        self._inside = [
            self._sealed_noise,
            self._sealed_bent,
            self._sealed_bent,
            self._sealed_typed,
            self._pieces,
            self._channel,
        ]

    def stranger(self) -> bytes:
        """A datagram of a sender without a key."""
        return self._random.choice(self._outside)()

    def insider(self) -> bytes:
        """A datagram of a malicious member."""
        return self._random.choice(self._inside)()

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 1, 30, 41, 60, 200, 1400)))

    def _genuine(self) -> bytes:
        return self._random.choice(self._victim.frames or [bytes(60)])

    def _bent(self) -> bytes:
        return bend(self._genuine(), self._random)

    def _again(self) -> bytes:
        return self._genuine()

    def _foreign(self) -> bytes:
        """A frame of a group with another key."""
        return self._other_group.seal(self._random.randbytes(40))

    def _for_all(self, piece: bytes) -> bytes:
        """A fragment of a packet to all, in the name of this member."""
        return self._admission.seal_to_all(b"\x01" + MAL.to_bytes(8, "big") + piece)

    def _in_session(self, data: bytes) -> bytes:
        sealed = self._admission.seal_to(ANA, data)
        return sealed[0] if sealed is not None else self._noise()

    def _piece(self, packet: bytes) -> bytes:
        number = self._random.getrandbits(32).to_bytes(4, "big")
        return self._for_all(number + b"\x00\x00\x00\x01\x00" + packet[:1300])

    def _sealed_noise(self) -> bytes:
        noise = self._random.randbytes(self._random.choice((0, 1, 9, 20, 300)))
        return self._in_session(noise) if self._random.random() < 0.5 else self._admission.seal_to_all(noise)

    def _packet(self) -> Packet:
        """A well-formed packet with false content."""
        random = self._random
        source = random.choice((ANA, BEN, MAL, 5, -1, 1 << 50))
        id = MessageId(source, random.choice((0, 1, 1 << 20)), random.choice((0, 1, 7, 1 << 45, -3)))
        deadline = random.choice((None, 5, time.time_ns() // 1000 + 1_000_000, 1 << 60))
        message = Message(id, b"a lie", random.choice((b"", random.randbytes(64), b"x")))
        barrier = tuple(
            (random.randrange(9), random.getrandbits(40), 1 << 50) for _ in range(random.randrange(4))
        )
        if random.random() < 0.02:
            return DigestPacket(7, True, ((abs(source), 0, (1, random.randrange(1, 1 << 40))),), 0, None)
        if random.random() < 0.3:
            return WantPacket(((ANA, abs(source), 0, (1, 1 << 40)),) * random.randrange(3))
        envelope = Envelope(message, barrier, deadline, random.choice((None, (BEN,), (ANA, BEN))), 9, 1, 0)
        return data_packet(batch_of([envelope]), 1, None)

    def _encoded(self) -> bytes:
        return _GOSSIP.encode(self._packet())

    def _sealed_bent(self) -> bytes:
        return self._piece(bend(self._encoded(), self._random))

    def _sealed_typed(self) -> bytes:
        return self._piece(self._encoded())

    def _pieces(self) -> bytes:
        """Fragments of packets: incomplete, doubled, out of order, or with inconsistent counts."""
        random = self._random
        header = random.randrange(40).to_bytes(4, "big") + random.randrange(9).to_bytes(2, "big")
        return self._for_all(header + random.choice((0, 2, 3, 4000)).to_bytes(2, "big") + bytes(900))

    def _channel(self) -> bytes:
        random = self._random
        return self._in_session(random.randbytes(random.choice((3, 16, 24))) + self._encoded())


def bend(data: bytes, random: Random) -> bytes:
    """Alters a datagram in one to four places."""
    bent = bytearray(data)
    for _ in range(random.randint(1, 4)):
        how = random.randrange(4)
        if how == 0 and bent:
            bent[random.randrange(len(bent))] = random.randrange(256)
        elif how == 1:
            del bent[random.randint(0, len(bent)) :]
        elif how == 2:
            bent += random.randbytes(random.randrange(20))
        elif bent:
            bent[random.randrange(len(bent))] ^= 1 << random.randrange(8)
    return bytes(bent)


async def fire(datagrams: int, seed: int, rest: float = 8.0, limit: float = 1e9) -> dict[str, Any]:
    """Sends all of them to a live node that exchanges messages with another member meanwhile."""
    raised: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: raised.append(repr(context.get("exception"))))
    random = Random(seed)
    async with Members(("ana", "ben"), dissemination="gossip") as members:  # the attacker's packets
        victim = members.transports[0]
        insider = Insider("mal", "bench", KEY, victim.address, SEEDS["mal"], ROSTER)
        await insider.meet("ana")
        attacker = Attacker(victim, insider, random)
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for one in sockets:
            one.connect(victim.address)
            one.setblocking(False)
        talking = asyncio.create_task(members.offer(60, 1e9))
        await strike(attacker, sockets, victim, max(2000, min(40_000, datagrams // 50)), limit)
        await asyncio.sleep(rest)
        started, begin, delivered = rss(), time.perf_counter(), members.delivered
        done, peak = await strike(attacker, sockets, victim, datagrams, limit)
        seconds = time.perf_counter() - begin
        during = members.delivered - delivered
        await asyncio.sleep(rest)
        ended = rss()
        talking.cancel()
        await insider.stop()
        for one in sockets:
            one.close()
        return {
            "datagrams": done,
            "datagrams_per_s": round(done / seconds),
            "raised": len(raised),
            "first_raised": raised[0] if raised else "",
            "memory_begin_mib": round(started / 2**20, 1),
            "memory_peak_mib": round(peak / 2**20, 1),
            "memory_end_mib": round(ended / 2**20, 1),
            "ratio_memory": round(ended / started, 3),
            "ratio_memory_peak": round(peak / started, 3),
            "members_offered_per_s": 60,
            "members_delivered_per_s": round(during / seconds, 1),
            "dropped": dict(sorted(members.dropped().items())),
        }


async def strike(
    attacker: Attacker, sockets: list[socket.socket], victim: Any, datagrams: int, limit: float
) -> tuple[int, int]:
    """Sends bursts, each handled before the next, so none is lost; returns the count and the peak memory."""
    done, peak, begin = 0, rss(), time.perf_counter()
    while done < datagrams and time.perf_counter() - begin < limit:
        wanted = victim.heard + BURST
        for place in range(BURST):
            try:
                if place % 5 < 2:
                    sockets[0].send(attacker.stranger())
                else:
                    sockets[1].send(attacker.insider())
            except (BlockingIOError, ConnectionRefusedError):
                wanted -= 1
        for _ in range(40 * BURST):
            if victim.heard >= wanted:
                break
            await asyncio.sleep(0)
        done += BURST
        if done % (1 << 14) == 0:
            peak = max(peak, rss())
    return done, peak


def codecs(datagrams: int, seed: int) -> dict[str, Any]:
    """Decodes altered packets of every kind of every protocol with the protocol's codec."""
    random, counts, failures = Random(seed), {"packets": 0}, 0
    kinds = [
        (Codec((packet,)), packet)
        for name in registry.names()
        for packet in (*registry.find(name).packets, *_layers(name))
    ]
    for number in range(datagrams):
        codec, packet = kinds[number % len(kinds)]
        data = codec.encode(any_packet(packet, random))
        if random.random() < 0.9:
            data = bend(data, random)
        try:
            codec.decode(data)
            counts["packets"] += 1
        except Garbled as error:
            counts[error.reason] = counts.get(error.reason, 0) + 1
        except Exception:
            failures += 1
    return {"codec_datagrams": datagrams, "codec_kinds": len(kinds), "codec_raised": failures, "codec": counts}


def _layers(name: str) -> tuple[type[Packet], ...]:
    if registry.find(name).ordering is None:
        return ()
    return registry.find_dissemination("epidemic").packets + registry.find_dissemination("direct").packets


def liars(packets: int, seed: int) -> dict[str, Any]:
    """A malicious member attacks every combination of protocol and dissemination."""
    made = combinations()
    share = max(packets // (3 * len(made)), 1)
    outcomes = [
        (measured(combination, share, seed, equivocates, subtle), equivocates)
        for equivocates, subtle in ((False, False), (True, False), (False, True))
        for combination in made
    ]
    slowest = sorted((outcome.slowest for outcome, _ in outcomes), reverse=True)[:5]
    return {
        "member_packets": sum(outcome.packets for outcome, _ in outcomes),
        "member_packets_accepted": sum(outcome.passed for outcome, _ in outcomes),
        "member_raised": sum(outcome.raised for outcome, _ in outcomes),
        "member_combinations": len(made),
        "member_slowest_call_s": round(slowest[0].cpu_s, 4),
        "member_slowest_calls": list(map(str, slowest)),
        "member_memory_mib": round(sum(outcome.memory_mib for outcome, _ in outcomes), 1),
        "member_forged": sum(outcome.forged for outcome, _ in outcomes),
        "member_lost": sorted({outcome.combination for outcome, lies in outcomes if outcome.lost and not lies}),
        "member_lost_by_equivocation": sorted({one.combination for one, lies in outcomes if one.lost and lies}),
        "member_doubled": sorted({outcome.combination for outcome, _ in outcomes if outcome.doubled}),
    }


def measured(combination: Combination, packets: int, seed: int, equivocates: bool, subtle: bool) -> Outcome:
    """Attack once; a slow call is measured again, up to three times: the shortest time counts.

    On a busy virtual machine the clock of a thread sometimes counts time in which it did not run.
    """
    outcome = attack(combination, packets, seed, equivocates, subtle=subtle)
    for _ in range(3):
        if outcome.slowest.cpu_s > SLOW_CALL_S:
            again = attack(combination, packets, seed, equivocates, subtle=subtle)
            outcome.slowest = min(outcome.slowest, again.slowest)
    return outcome


def rss() -> int:
    """Bytes of memory that this process holds now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stranger(addresses: list[tuple[str, int]], stop: Any, sent: Synchronized[int]) -> None:
    """Sends, as fast as the loopback allows, frames that look like a member's until they are decrypted."""
    sockets = []
    for address in addresses:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.connect(address)
        sockets.append(one)
    frame = b"\x05" + os.urandom(8) + (9).to_bytes(4, "big") + os.urandom(240)
    count = 0
    while not stop.is_set():
        for _ in range(100):
            for one in sockets:
                one.send(frame)
        count += 100 * len(sockets)
    sent.value = count


async def flood(seconds: float) -> dict[str, Any]:
    """Measures a quarter of the capacity, undisturbed and under a flood."""
    async with Members() as members:
        await members.saturate(seconds / 2)
        capacity = await members.saturate(seconds)
        calm = await members.offer(capacity / 4, seconds)
        await members.settle()
        before = sum(transport.heard for transport in members.transports)
        stop, sent = multiprocessing.Event(), multiprocessing.Value("q", 0)
        addresses = [transport.address for transport in members.transports]
        process = multiprocessing.Process(target=stranger, args=(addresses, stop, sent))
        process.start()
        await asyncio.sleep(0.5)
        begin = time.perf_counter()
        under = await members.offer(capacity / 4, seconds)
        stop.set()
        took = time.perf_counter() - begin + 0.5
        process.join()
        heard = members.dropped().get("stranger", 0)
        assert heard <= sum(transport.heard for transport in members.transports) - before
        return {
            "capacity_per_s": round(capacity),
            "calm_per_s": round(calm),
            "flooded_per_s": round(under),
            "ratio_flooded_to_calm": round(under / calm, 3),
            "stranger_sent_per_s": round(sent.value / took),
            "stranger_looked_at_per_s": round(heard / took),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--datagrams", type=int, default=60_000, help="how many against the live node")
    parser.add_argument(
        "--codec", type=int, default=None, help="how many against the codecs; as many if not said"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each stage of the flood; 0: none")
    parser.add_argument("--limit", type=float, default=1e9, help="stop firing after so many seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--members", type=int, default=0, help="how many of a malicious member, nothing else")
    given = parser.parse_args()
    result: dict[str, Any] = {}
    if given.members:
        result |= liars(given.members, given.seed)
        given.seconds = given.datagrams = 0
    if given.seconds:
        result |= asyncio.run(flood(given.seconds))
    if given.datagrams:
        result |= asyncio.run(fire(given.datagrams, given.seed, limit=given.limit))
    bent = given.datagrams if given.codec is None else given.codec
    if bent:
        result |= codecs(bent, given.seed)
    print(json.dumps(result) if given.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()

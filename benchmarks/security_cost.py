"""The cost of admission and authorship: microseconds and bytes per message, and share of throughput.

Three members exchange messages of 200 bytes over loopback as fast as they can: without encryption, with sealed
frames, and with sealed frames and signed messages, taking turns. Rates are deliveries per second of CPU, so
that other work on the machine counts less; each mode's best of several rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.members import PAYLOAD, ROSTER, SEEDS, Members
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import MessagesPacket, packed
from precede.runtime.evidence.headers import SIGNATURE_BYTES
from precede.runtime.links.admission import SealedAdmission
from precede.runtime.links.agreement import Agreement
from precede.runtime.links.authorship import Authors
from precede.runtime.links.group_seal import GroupSeal, derive_keys
from precede.runtime.links.introductions import Directory, Identity
from precede.runtime.links.keyring import new_key
from precede.runtime.links.link_events import LinkEvents
from precede.runtime.links.sessions import DATA_OVERHEAD
from precede.runtime.names import node_id

MODES = {"open": (False, False), "sealed": (True, False), "signed": (True, True)}
ANA, BEN = node_id("ana"), node_id("ben")


def per_call(calls: list[Callable[[], object]]) -> float:
    """Microseconds of CPU per call, over calls of the same function with different arguments."""
    begin = time.process_time()
    for call in calls:
        call()
    return round((time.process_time() - begin) / len(calls) * 1e6, 2)


def alone(count: int) -> dict[str, float]:
    """Measures each operation by itself, on messages of 200 bytes with three predecessors."""
    roster = {node_id(name): public for name, public in ROSTER.items()}
    ana = Authors("bench", ANA, SEEDS["ana"], roster)
    ben = Authors("bench", BEN, SEEDS["ben"], roster)
    packets = [one_message(number) for number in range(1, count + 1)]
    result = {"sign_us": per_call([lambda p=p: ana.sign(p) for p in packets])}  # type: ignore[misc]
    result["check_us"] = per_call([lambda p=p: ben.check(list(p.written())) for p in packets])  # type: ignore[misc]
    result["check_again_us"] = per_call(
        [lambda p=p: ben.check(list(p.written())) for p in packets[-1000:]]  # type: ignore[misc]
    )
    here, there, result["handshake_both_us"] = pair()
    frames: list[bytes] = []
    data = [msgspec.msgpack.encode(packet) for packet in packets]

    def seal(packet: bytes) -> None:
        sealed = here.seal_to(BEN, packet)
        assert sealed is not None
        frames.append(sealed[0])

    result["seal_us"] = per_call([lambda d=d: seal(d) for d in data])  # type: ignore[misc]
    result["open_us"] = per_call([lambda f=f: there.frame(f, "a", 0.0) for f in frames])  # type: ignore[misc]
    strangers = [GroupSeal([derive_keys(new_key())]).seal(d) for d in data[:500]]
    result["stranger_us"] = per_call([lambda f=f: there.frame(f, "x", 0.0) for f in strangers])  # type: ignore[misc]
    plain = len(msgspec.msgpack.encode(one_message(1)))
    result["message_bytes"] = plain
    result["signature_bytes"] = len(data[0]) - plain
    result["seal_bytes"] = DATA_OVERHEAD
    assert result["signature_bytes"] >= SIGNATURE_BYTES
    return result


def pair() -> tuple[SealedAdmission, SealedAdmission, float]:
    """Two members with a session, and the microseconds of CPU that both took to agree on it."""
    key, members = new_key(), dict[str, SealedAdmission]()
    own = {name: Identity.shared("bench", name) for name in ("ana", "ben")}
    in_flight: list[tuple[str, bytes]] = []
    for name, other in (("ana", "ben"), ("ben", "ana")):
        directory = Directory("bench", own[name].introduce("bench", name), node_id)
        directory.accept(own[other].introduce("bench", other))
        terms = Agreement(name, {}, lambda: 0, None, str, lambda code, text, peer: None)
        member = SealedAdmission(node_id(name), own[name], directory, "bench", (key,), 1, terms)
        members[name] = member
        member.connect(
            LinkEvents(
                lambda frame, where: in_flight.append((str(where), frame)),
                lambda peer, boot, where: None,
                lambda peer, where: None,
                lambda peer: None,
                lambda where: None,
                lambda where: None,
            )
        )
        member.trust(other)
    begin = time.process_time()
    for name, other in (("ana", "ben"), ("ben", "ana")):
        members[name].beacon_heard(members[other].beacon(), other, 0.0)
    while in_flight:
        to, frame = in_flight.pop(0)
        members[to].frame(frame, "ben" if to == "ana" else "ana", 0.0)
    return members["ana"], members["ben"], round((time.process_time() - begin) * 1e6, 1)


def one_message(number: int) -> MessagesPacket:
    barrier = tuple((BEN + place, number, 1_700_000_000_000_000) for place in range(3))
    message = Message(MessageId(ANA, 0, number), PAYLOAD)
    return packed([Envelope(message, barrier, 1_700_000_000_000_000, None, 96, 3, number)])


async def rate(mode: str, seconds: float) -> float:
    """Deliveries per second of this process's CPU."""
    sealed, signed = MODES[mode]
    async with Members(sealed=sealed, signed=signed) as members:
        await members.saturate(0.5)
        begin, first = time.process_time(), members.delivered
        await members.saturate(seconds)
        return (members.delivered - first) / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    result: dict[str, Any] = dict(alone(4000))
    best = dict.fromkeys(MODES, 0.0)
    for _ in range(given.rounds):
        for mode in MODES:
            best[mode] = max(best[mode], asyncio.run(rate(mode, given.seconds)))
    for mode, value in best.items():
        result[f"deliveries_per_cpu_s_{mode}"] = round(value)
    result["ratio_sealed_to_open"] = round(best["sealed"] / best["open"], 3)
    result["ratio_signed_to_sealed"] = round(best["signed"] / best["sealed"], 3)
    result["ratio_signed_to_open"] = round(best["signed"] / best["open"], 3)
    result["share_of_encryption"] = round(1 - best["sealed"] / best["open"], 3)
    result["share_of_signatures"] = round((best["sealed"] - best["signed"]) / best["open"], 3)
    print(json.dumps(result) if given.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()

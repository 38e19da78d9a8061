"""The gateway of guests carries what they signed, and payloads of a group with guests show their author."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import precede
from precede.core.identity import MessageId
from precede.runtime.evidence.signatures import SigningKey
from precede.runtime.flow.sending import MOST_PAYLOAD
from precede.runtime.guests.signed_payloads import MOST_SIGNED_BYTES
from tests.patience import patient

SEEDS = {name: bytes([place + 1]) * 32 for place, name in enumerate(("ana", "dora", "eva"))}
ROSTER = {name: SigningKey(seed).public for name, seed in SEEDS.items()}


def payloads_of(name: str, group: str = "picnic") -> precede.SignedPayloads:
    return precede.SignedPayloads(group, name, SEEDS[name], ROSTER)


def member(who: str, peers: list[tuple[str, int]]) -> precede.Group:
    """A member of the guest group."""
    name, transport = precede.GuestGateway.group_of("picnic"), precede.UdpTransport(("127.0.0.1", 0), peers)
    keys = {"key": bytes(32), "identity": SEEDS[who], "roster": ROSTER}
    return precede.join(name, who, transport=transport, beacon=0.05, **keys)  # type: ignore[arg-type]


def test_only_payloads_that_a_member_signed_for_this_group_are_opened_and_each_once() -> None:
    ana, dora = payloads_of("ana"), payloads_of("dora")
    first, second = dora.sign(b"bread"), dora.sign(b"wine")
    assert ana.open(first) == ana.read(first) == ("dora", b"bread")
    assert ana.open(first) is None
    assert ana.open(second) == ("dora", b"wine")
    assert ana.open(first) is None
    for hostile in (
        *(b"", b"bread", b"precede guest 1", b"precede guest 1\x91", b"precede guest 1" + b"\x91" * 5000),
        dora.sign(b"bread").replace(b"bread", b"stone"),
        dora.sign(b"x").replace(b"\xa4dora", b"\xa3eva"),
        payloads_of("dora", "another group").sign(b"bread"),
        b"precede guest 1" + msgspec.msgpack.encode(("dora", -1, b"bread", bytes(64))),
        b"precede guest 1" + msgspec.msgpack.encode(("nobody", 1, b"bread", bytes(64))),
    ):
        assert ana.read(hostile) is ana.open(hostile) is None
    with pytest.raises(precede.BadInput, match="has not the key"):
        precede.SignedPayloads("picnic", "ana", SEEDS["eva"], ROSTER)


def test_a_signed_payload_is_no_larger_than_a_gateway_can_carry() -> None:
    ana, dora = payloads_of("ana"), payloads_of("dora")
    with pytest.raises(precede.Refused, match="too large for guests"):
        dora.sign(bytes(MOST_SIGNED_BYTES))
    payload = dora.sign(bytes(MOST_SIGNED_BYTES - 200))
    assert ana.read(payload) is not None
    larger = b"precede guest 1" + msgspec.msgpack.encode(("dora", 1, bytes(MOST_SIGNED_BYTES), bytes(64)))
    assert ana.read(larger) is None


def test_no_message_stops_a_gateway(caplog: pytest.LogCaptureFixture) -> None:
    """One payload of the largest size, of a member or a guest, once stopped the gateway at every start."""

    async def run() -> None:
        sent: list[bytes] = []

        async def send(payload: bytes) -> None:
            if len(payload) > 1000:
                raise precede.Refused("too large for this network")
            sent.append(payload)

        async with member("ana", []) as guests, member("dora", [guests.address]) as dora:
            gateway = precede.GuestGateway(guests, payloads_of("ana"), send)
            for size in (MOST_PAYLOAD, 10):
                await gateway.forward(precede.Delivered("ana", 1, bytes(size), MessageId(1, 0, 1)))
            listening = asyncio.create_task(gateway.listen())
            large, small = payloads_of("dora").sign(bytes(2000)), payloads_of("dora").sign(b"bread")
            for payload in (large, large, small):
                await dora.broadcast(msgspec.msgpack.encode(("say", payload)))
            async with asyncio.timeout(patient(30)):
                while not sent:
                    await asyncio.sleep(0.02)
            assert sent == [small]
            assert not listening.done()
            listening.cancel()

    asyncio.run(run())
    warnings = [text for text in caplog.messages if "the gateway of guests" in text]
    assert warnings == ["the gateway of guests leaves a message of dora out: too large for this network"]


def test_a_gateway_sends_on_what_a_guest_says_in_its_own_name_alone() -> None:
    async def run() -> None:
        sent: list[bytes] = []

        async def send(payload: bytes) -> None:
            sent.append(payload)

        async with member("ana", []) as guests, member("dora", [guests.address]) as dora:
            gateway = precede.GuestGateway(guests, payloads_of("ana"), send)
            listening = asyncio.create_task(gateway.listen())
            own, of_eva = payloads_of("dora").sign(b"mine"), payloads_of("eva").sign(b"not mine")
            for note in (("say", of_eva), ("ordered", own), ("say", b"unsigned"), 7, ("say", own)):
                await dora.broadcast(msgspec.msgpack.encode(note))
            async with asyncio.timeout(patient(30)):
                while not sent:
                    await asyncio.sleep(0.02)
            assert sent == [own]
            listening.cancel()

    asyncio.run(run())

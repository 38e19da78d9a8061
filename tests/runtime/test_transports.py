"""TCP connects again, members find each other on a LAN, and sizes claimed in packets are not trusted."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import precede
from precede.core.effects import RADIO, Send
from precede.core.errors import Refused
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context
from precede.node_plans import MOST_CARRIED
from precede.protocols.layered.epidemic.node import DISSEMINATION
from precede.protocols.registry import make
from precede.protocols.vcube2018.forwarding import packet_of
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.runtime.codec import LARGEST, Codec, Garbled
from precede.runtime.flow.sending import Sending
from precede.runtime.links.authorship import public_of
from precede.runtime.links.keyring import new_key
from precede.runtime.transports.tcp import TcpTransport
from precede.runtime.transports.transport import Where
from precede.runtime.transports.udp import UdpTransport, _emptied
from precede.runtime.transports.udp_endpoint import UdpEndpoint
from tests.patience import patient

KEY = new_key()


async def until(condition: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(patient(seconds)):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_broken_connection_is_opened_again() -> None:
    async def run() -> None:
        heard: list[bytes] = []
        links: list[bool] = []
        one, two = TcpTransport(("127.0.0.1", 0)), TcpTransport(("127.0.0.1", 0))
        two.on_link = lambda where, up: links.append(up)
        await one.start(lambda frame, where: None)
        await two.start(lambda frame, where: heard.append(frame))
        one.add_peer(two.address)
        two.add_peer(one.address)
        await until(lambda: links == [True])
        one.broadcast(b"first")
        await until(lambda: heard == [b"first"])
        for connection in list(two._connections.values()):
            connection.close()
        await until(lambda: links == [True, False, True])
        one.broadcast(bytes(20_000))
        await until(lambda: len(heard) == 2)
        assert heard[1] == bytes(20_000)
        await one.stop()
        await two.stop()

    asyncio.run(run())


def test_a_connection_that_announces_too_large_a_frame_is_closed() -> None:
    async def run() -> None:
        heard: list[tuple[bytes, Where]] = []
        one = TcpTransport(("127.0.0.1", 0))
        await one.start(lambda frame, where: heard.append((frame, where)))
        reader, writer = await asyncio.open_connection(*one.address)
        writer.write(struct.pack(">I", 1 << 30) + b"x" * 100)
        assert await asyncio.wait_for(reader.read(), patient(5)) == b""
        writer.close()
        await one.stop()
        assert heard == []

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["lan", "tcp"])
def test_members_meet_and_talk(kind: str, tmp_path: Path) -> None:
    def transport() -> UdpTransport | TcpTransport:
        if kind == "tcp":
            return TcpTransport(("127.0.0.1", 0))
        return UdpTransport(("127.0.0.1", 0), multicast=("239.83.7.1", 47_113))

    async def run() -> None:
        mouths = [transport(), transport()]
        ana, ben = (
            precede.join("picnic", name, key=KEY, transport=mouth, beacon=0.05)
            for name, mouth in zip(("ana", "ben"), mouths, strict=True)
        )
        async with ana, ben:
            for one, other in (mouths, mouths[::-1]):
                if isinstance(one, TcpTransport):
                    one.add_peer(other.address)
            await until(lambda: ana.neighbours() and ben.neighbours())
            await ana.broadcast(b"hello")
            async with asyncio.timeout(patient(10)):
                async for message in ben:
                    assert message.payload == b"hello"
                    return

    asyncio.run(run())


def test_members_with_total_order_deliver_the_same_sequence(tmp_path: Path) -> None:
    async def run() -> None:
        names = ("ana", "ben", "cem")
        mouths = [UdpTransport(("127.0.0.1", 0)) for _ in names]
        groups = [
            precede.join(
                "vote",
                name,
                key=KEY,
                order="total",
                members=names,
                transport=mouth,
                beacon=0.05,
                store=tmp_path / f"{name}.db",
                options={"quiet": "300ms"},
            )
            for name, mouth in zip(names, mouths, strict=True)
        ]
        async with groups[0], groups[1], groups[2]:
            for one in mouths:
                for other in mouths:
                    if one is not other:
                        one.add_peer(other.address)
            await until(lambda: all(group.status()["sizes"]["sources"] == 3 for group in groups))
            for group in groups:
                for number in range(3):
                    await group.broadcast(f"{group.name} {number}".encode())

            async def first_nine(group: precede.Group) -> list[bytes]:
                taken: list[bytes] = []
                async for message in group:
                    taken.append(message.payload)
                    if len(taken) == 9:
                        break
                return taken

            async with asyncio.timeout(patient(30)):
                heard = await asyncio.gather(*(first_nine(group) for group in groups))
        assert heard[0] == heard[1] == heard[2]

    asyncio.run(run())


@pytest.mark.timeout(30)  # it takes one; looking through a full cache for who leaves it took a minute
def test_the_summary_of_a_member_with_a_full_cache_fits_into_a_packet() -> None:
    options = {"dissemination": "epidemic", "cache": str(MOST_CARRIED)}
    node = make("causal_barrier", "node", Context(1 << 30, (1, 1 << 30), options, Random(1)))
    node.start(0, {})
    for at in range(2 * MOST_CARRIED + 1000):
        node.broadcast(b"x", at)
    (summary,) = [effect.packet for effect in node.link_up(1, at, RADIO) if isinstance(effect, Send)]
    assert len(Codec(DISSEMINATION.packets).encode(summary)) < LARGEST


def test_an_implausible_size_makes_a_packet_garbled() -> None:
    codec = Codec((VCubePacket,))
    good = packet_of(StampedMessage(Message(MessageId(1, 0, 1), b"x"), (), 1, 1))
    assert codec.decode(codec.encode(good)) == good
    for absurd in (-1, 1 << 40):
        bad = msgspec.structs.replace(good, size_bytes=absurd)
        with pytest.raises(Garbled, match="absurd"):
            codec.decode(codec.encode(bad))


def test_a_bad_lan_address_is_blamed_by_its_own_name() -> None:
    for lan in (("10.0.0.7", 4700), ("239.83.7.1", 0), ("nowhere", 4700)):
        with pytest.raises(precede.BadInput, match=r"lan: expected a multicast address and a port"):
            precede.join("picnic", "ana", key=KEY, lan=lan)


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_the_port_is_free_when_close_returns(kind: str) -> None:
    async def run() -> None:
        made = TcpTransport if kind == "tcp" else UdpTransport
        address = ("127.0.0.1", 0)
        for _ in range(20):
            async with precede.join("picnic", "ana", key=KEY, transport=made(address)) as group:
                address = group.address
                again = socket.socket(
                    socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
                )
                with again, pytest.raises(OSError, match="in use"):
                    again.bind(address)
            with socket.socket(socket.AF_INET, again.type) as again:
                again.bind(address)

    asyncio.run(run())


@pytest.mark.parametrize(
    "address", [("127.0.0.1", 65_536), ("127.0.0.1", -1), ("127.0.0.1", "80"), "127.0.0.1:80"]
)
def test_an_address_that_cannot_be_reached_is_refused_before_anything_is_sent(address: Any) -> None:
    udp, tcp = UdpTransport(("127.0.0.1", 0)), TcpTransport(("127.0.0.1", 0))
    for use in (
        lambda: UdpTransport(address),
        lambda: UdpTransport(("127.0.0.1", 0), [address]),
        lambda: UdpTransport(("127.0.0.1", 0), multicast=address),
        lambda: udp.add_peer(address),
        lambda: TcpTransport(address),
        lambda: TcpTransport(("127.0.0.1", 0), [address]),
        lambda: tcp.add_peer(address),
        lambda: precede.WebSocketTransport(address),
    ):
        with pytest.raises(precede.BadInput, match="expected an address such as"):
            use()


def test_members_that_the_roster_lacks_are_refused() -> None:
    identity = bytes(range(32))
    with pytest.raises(
        precede.BadInput, match="members: the roster lacks zed, whose messages would be refused"
    ):
        precede.join(
            "picnic",
            "ana",
            key=bytes(32),
            identity=identity,
            roster={"ana": public_of(identity)},
            members=["zed"],
        )


def test_frames_that_the_system_had_no_room_for_leave_in_order() -> None:
    endpoint = object.__new__(UdpEndpoint)
    taken: list[bytes] = []

    def take(frame: bytes, where: object) -> bool:
        if frame == b"b" and b"no room" not in taken:
            taken.append(b"no room")
            return False
        taken.append(frame)
        return True

    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            endpoint._socket, endpoint._take = own, take  # type: ignore[method-assign]
            endpoint._unsent = deque([(b"a", ("", 1)), (b"b", ("", 1)), (b"c", ("", 1))])
            endpoint._send_rest()
            assert taken == [b"a", b"no room"]
            endpoint._send_rest()
            assert taken == [b"a", b"no room", b"b", b"c"]

    asyncio.run(main())


def test_addresses_of_neighbours_are_known_until_their_links_end() -> None:
    transport = UdpTransport(("127.0.0.1", 0))
    transport.known(("127.0.0.1", 9), True)
    transport.known("not an address of this transport", True)
    assert list(transport._near) == [("127.0.0.1", 9)]
    transport.known(("127.0.0.1", 9), False)
    assert list(transport._near) == []


def test_a_payload_leaves_room_for_the_rest_of_the_smallest_packet() -> None:
    links: Any = [SimpleNamespace(largest_packet=1_000), SimpleNamespace(largest_packet=500)]
    sending = Sending(None, None, links, ())  # type: ignore[arg-type]
    assert sending.checked(bytes(440), 10) == bytes(440)
    with pytest.raises(Refused, match="at most 440"):
        sending.checked(bytes(441), 10)


def test_a_socket_that_is_taken_over_is_emptied() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            for _ in range(3):
                other.sendto(b"old", own.getsockname())
        assert _emptied(own) is own
        with pytest.raises(BlockingIOError):
            own.recv(10)

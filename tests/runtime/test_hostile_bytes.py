"""Hostile bytes: they raise only `Garbled`, which is counted, and they never use unbounded memory."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.core.errors import Refused
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.layered.direct_packet import DirectPacket
from precede.protocols.layered.envelope import Envelope
from precede.runtime.codec import LARGEST, Codec, Garbled
from precede.runtime.links.fragments import Fragments

CODEC = Codec((DirectPacket, AckPacket), dict[int, int])
PACKET = DirectPacket(Envelope(Message(MessageId(5, 0, 9), b"hello"), {5: 9, 7: 2}, 10, None, 8, 2))


def decoded(data: bytes) -> str:
    try:
        CODEC.decode(data)
    except Garbled as error:
        return error.reason
    return "packet"


def test_a_packet_is_decoded_as_it_was_encoded() -> None:
    assert CODEC.decode(CODEC.encode(PACKET)) == PACKET
    acks = AckPacket((MessageId(1, 0, 2), MessageId(3, 1, 4)))
    assert CODEC.decode(CODEC.encode(acks)) == acks


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated"),
        (b"\x09\x00\x90", "version"),
        (b"\x01\x09\x90", "kind"),
        (b"\x01\x00\x01", "types"),
        (b"\x01\x00\x90", "types"),
        (b"\x01\x00", "encoding"),
        (b"\x01\x00\xc1", "encoding"),
        (CODEC.encode(PACKET) + b"\x00", "encoding"),
        (b"\x01\x00" + b"\x91" * 5000, "types"),
        (b"\x01" * (LARGEST + 1), "oversize"),
        (CODEC.encode(PACKET)[:-1], "encoding"),
    ],
)
def test_each_kind_of_garbage_has_its_reason(data: bytes, reason: str) -> None:
    assert decoded(data) == reason


@given(st.binary(max_size=200))
def test_any_bytes_are_a_packet_or_garbled(data: bytes) -> None:
    decoded(b"\x01\x00" + data)
    decoded(b"\x01\x01" + data)
    decoded(data)


def test_mutations_of_a_packet_never_raise_anything_else() -> None:
    random, good = Random(5), bytearray(CODEC.encode(PACKET))
    for _ in range(20_000):
        bad = bytearray(good)
        for _ in range(random.randint(1, 4)):
            bad[random.randrange(len(bad))] = random.randrange(256)
        decoded(bytes(bad))


@given(st.binary(max_size=5000), st.integers(30, 400), st.randoms(use_true_random=False))
def test_pieces_in_any_order_and_duplicated_make_the_packet_once(
    data: bytes, largest: int, random: Random
) -> None:
    sender, receiver = Fragments(), Fragments()
    pieces = sender.cut(data, largest)
    assert all(len(piece) <= largest for piece in pieces)
    shuffled = random.sample(pieces, len(pieces))
    joined = [whole for piece in shuffled if (whole := receiver.join(piece, 7)) is not None]
    assert joined == [data]


def test_incomplete_packets_do_not_fill_the_memory() -> None:
    receiver = Fragments()
    for number in range(5000):
        sender = Fragments()
        sender._number = number
        receiver.join(sender.cut(bytes(3000), 1000)[0], number % 3)
    assert len(receiver._open) <= 3 * 33
    assert receiver.dropped["unfinished"] > 4000
    with pytest.raises(Refused, match="does not fit"):
        receiver.cut(bytes(1 << 20), 40)

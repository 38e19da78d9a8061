"""What the joined pieces of a frame are: a packet, several packets in one, or data of the links themselves.

The packets that go to one receiver in one turn share frames: one header, one seal and one system call for all
that fit. A packet that does not fit into a frame is alone and is cut into pieces.
"""

from collections.abc import Iterator, Sequence
from typing import Final

PACKET: Final = b"\0"
INTRODUCTIONS: Final = b"\1"
INTRODUCE_YOURSELF: Final = b"\2"
TERMS: Final = b"\3"
BUNDLE: Final = b"\4"
"""The first byte. `INTRODUCE_YOURSELF` is an introduction that asks for one in return."""

MOST_BUNDLE_BYTES: Final = 1 << 14
MOST_BUNDLED: Final = 128
"""How long a bundle is, and how many packets it has at most: a receiver handles all of them at once."""
_LENGTH_BYTES: Final = 2


def bundled(packets: Sequence[bytes], most: int) -> Iterator[bytes]:
    """Yield the packets in order, each alone or with others in a bundle of at most `most` bytes."""
    most = min(most, MOST_BUNDLE_BYTES)
    together: list[bytes] = []
    size = len(BUNDLE)
    for packet in packets:
        own = _LENGTH_BYTES + len(packet)
        if together and (size + own > most or len(together) == MOST_BUNDLED):
            yield _bundle(together)
            together, size = [], len(BUNDLE)
        together.append(packet)
        size += own
    if together:
        yield _bundle(together)


def _bundle(packets: Sequence[bytes]) -> bytes:
    if len(packets) == 1:
        return PACKET + packets[0]
    return BUNDLE + b"".join(len(packet).to_bytes(_LENGTH_BYTES, "big") + packet for packet in packets)


def packets_in(whole: bytes) -> list[bytes] | None:
    """Return the packets in joined pieces; None if the pieces are of another kind, damaged, or too many."""
    if whole[:1] == PACKET:
        return [whole[1:]]
    if whole[:1] != BUNDLE or len(whole) > MOST_BUNDLE_BYTES:
        return None
    packets: list[bytes] = []
    begin = len(BUNDLE)
    while begin < len(whole):
        end = begin + _LENGTH_BYTES + int.from_bytes(whole[begin : begin + _LENGTH_BYTES], "big")
        if end > len(whole) or len(packets) == MOST_BUNDLED:
            return None
        packets.append(whole[begin + _LENGTH_BYTES : end])
        begin = end
    return packets

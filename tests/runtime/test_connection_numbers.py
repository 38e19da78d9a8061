"""Connection numbers of WAS on the wire: those of every incarnation fit the declared range."""

from __future__ import annotations

import pytest

from precede.protocols.was2021.entry import ENTRY
from precede.protocols.was2021.options import INCARNATION_STEP
from precede.protocols.was2021.packets import ConnectPacket
from precede.runtime.codec import Codec


@pytest.mark.parametrize("incarnation", [0, 255, 256, 32_767])
def test_the_connect_packet_of_any_incarnation_is_decoded(incarnation: int) -> None:
    first = incarnation * INCARNATION_STEP
    packet = ConnectPacket("join", 7, 1, first + 1, first, None)
    codec = Codec(ENTRY.packets)
    assert codec.decode(codec.encode(packet)) == packet

"""The vectors of state transfer are what the code writes and reads."""

import json

from precede.runtime.transfer.packets import decode, encode, is_transfer
from tests.vectors.transfer import PAGE, make


def test_the_page_is_current_and_every_packet_decodes() -> None:
    written = json.loads(PAGE.read_text(encoding="utf-8"))
    assert written == make()
    for each in written["packets"]:
        wire = bytes.fromhex(each["wire"])
        packet = decode(wire)
        assert is_transfer(wire)
        assert packet is not None
        assert type(packet).__name__ == each["kind"]
        assert encode(packet) == wire

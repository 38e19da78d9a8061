"""DRIFT's packets: what they may hold, how they are counted, and stores of earlier versions."""

from __future__ import annotations

import msgspec
import pytest

from precede.protocols.drift2006.packets import CHOSEN_BYTES, HEADER_BYTES, Flood, Piggyback, sizes_of
from precede.protocols.drift2006.saved import SavedState


def test_sizes_are_header_piggyback_control_and_payload() -> None:
    extra = Piggyback(group=1, view=0, layout=0, size_bytes=3 * CHOSEN_BYTES, entries=3)
    control = HEADER_BYTES + 3 * CHOSEN_BYTES + 16
    assert sizes_of(extra, control=16, entries=2) == (control, control, 5, 0)
    assert sizes_of(extra, control=16, entries=2, payload=100, messages=1) == (control + 100, control, 5, 1)


@pytest.mark.parametrize(
    ("number", "timestamp"), [((1 << 24) - 1, (1 << 39) - 1), (1 << 24, 0), (-1, 0), (0, 1 << 39), (0, -1)]
)
def test_a_flood_beyond_its_ranges_is_not_read(number: int, timestamp: int) -> None:
    """Number and timestamp share a column of the clock table: 24 and 39 bits."""
    data = msgspec.msgpack.encode(Flood(0, 0, number, timestamp))
    if 0 <= number < 1 << 24 and 0 <= timestamp < 1 << 39:
        assert msgspec.msgpack.decode(data, type=Flood).number == number
        return
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(data, type=Flood)


def test_a_store_whose_positions_lack_the_number_of_the_last_message_is_read() -> None:
    """Versions before that number was saved wrote two numbers for each stream."""
    saved = {("done", 1, 0): (7, 90), ("done", 2, 0): (4, 80, 3)}
    assert SavedState.read(saved).done == {(1, 0): (7, 90, 0), (2, 0): (4, 80, 3)}

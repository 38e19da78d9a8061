"""The record of a process's transfers can be read, whenever the process was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.core.identity import MessageId
from precede.core.transfers import DOWN, RECEIVED, SENT, UP, LinkRecord
from precede.protocols.layered.epidemic.packets import HavePacket, SummaryPacket
from precede.runtime.emulation.transfers import Transfers, read_transfers

ID = MessageId(1, 0, 7)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    transfers = Transfers(tmp_path)
    transfers.link(10, 1, 2, True)
    transfers.sent(11, 1, 2, SummaryPacket(frozenset({ID})))
    transfers.flush()
    transfers.sent(12, 1, 2, HavePacket((ID,)))
    transfers.received(13, 1, 2, HavePacket((ID,)))
    transfers.link(14, 1, 2, False)
    transfers.flush()
    transfers.flush()
    return tmp_path


def test_all_entries_are_read_in_order(written: Path) -> None:
    assert list(read_transfers(written)) == [
        LinkRecord(UP, 10, 1, 2),
        LinkRecord(SENT, 11, 1, 2, "summary"),
        LinkRecord(SENT, 12, 1, 2, "have", (ID,)),
        LinkRecord(RECEIVED, 13, 1, 2),
        LinkRecord(DOWN, 14, 1, 2),
    ]


def test_a_block_that_was_cut_off_is_skipped(written: Path) -> None:
    (file,) = written.glob("*.told")
    data = file.read_bytes()
    for kept in (len(data) - 1, len(data) - 20):
        file.write_bytes(data[:kept])
        assert [told.at for told in read_transfers(written)] == [10, 11]

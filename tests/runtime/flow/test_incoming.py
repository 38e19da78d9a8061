"""A packet that makes a part of a member raise is dropped and counted, and the member goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import precede
from precede.core.errors import StoreFailed
from precede.runtime.presence.presence import FAREWELL
from precede.runtime.transfer.packets import HistoryAsk, encode

PARTS: list[tuple[str, str, bytes]] = [
    ("_presence", "left", FAREWELL),
    ("_topics", "packet", b"\x82" + bytes(40)),
    ("_transfer", "packet", encode(HistoryAsk(0, ()))),
    ("_driver", "packet", b"\1\0\x90"),
]


@pytest.mark.parametrize(("part", "method", "data"), PARTS, ids=[each[0] for each in PARTS])
def test_a_packet_that_raises_is_counted_and_logged_once(
    part: str, method: str, data: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with precede.join("picnic", "ana", key=bytes(32)) as ana:

            def broken(*_: Any) -> None:
                raise KeyError("senseless")

            with monkeypatch.context() as patch:
                patch.setattr(getattr(ana, part), method, broken)
                for _ in range(3):
                    ana._on_packet(data, 1, 0, False)
            assert ana.status()["dropped"]["raised"] == 3
            await ana.broadcast(b"alive")
            assert (await anext(aiter(ana))).payload == b"alive"

    asyncio.run(main())
    assert sum("was dropped" in record.message for record in caplog.records) == 1


def test_a_store_that_fails_is_no_bad_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with precede.join("picnic", "ana", key=bytes(32)) as ana:

            def full(*_: Any) -> None:
                raise StoreFailed("no space left")

            monkeypatch.setattr(ana._transfer, "packet", full)
            with pytest.raises(StoreFailed):
                ana._on_packet(encode(HistoryAsk(0, ())), 1, 0, False)
            assert "raised" not in ana.status()["dropped"]

    asyncio.run(main())

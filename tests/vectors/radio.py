"""A simulated radio that all members share, and a loop whose clock jumps to the next event.

One transmission reaches everybody. Frames take air time at the radio's rate, one after the other: a sender
waits until the channel is free. Each receiver loses some frames. Every byte on air is counted.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections import Counter
from collections.abc import Coroutine
from random import Random
from typing import Any, Final, TypeVar
from unittest.mock import patch

from precede.runtime.links.admission import _BEACON as _BEACON_STRUCT
from precede.runtime.links.group_seal import OVERHEAD as GROUP_OVERHEAD
from precede.runtime.links.sessions import DATA_OVERHEAD
from precede.runtime.observe.traffic import kind_of
from precede.runtime.transports.transport import OnFrame, Transport, Where

_BEACON: Final = ("to_all", GROUP_OVERHEAD + 1 + _BEACON_STRUCT.size)
_PING: Final = ("to_one", DATA_OVERHEAD)
"""Kind and size of the frames that an idle member sends; no other frame of a member has them."""

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing: the time that it should wait passes at once."""

    now = 1_000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if not events and timeout:
            self.now += timeout
        return events


def run_at_once(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine while clocks jump: minutes take as long as the work in them."""
    selector = _JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    with (
        patch.object(time, "monotonic", lambda: selector.now),
        patch.object(time, "time_ns", lambda: int((1.7e9 + selector.now) * 1e9)),
    ):
        try:
            return loop.run_until_complete(main)
        finally:
            loop.close()


class Air:
    """The channel: `rate` bytes a second, frames of at most `largest` bytes, a share `loss` of them lost."""

    def __init__(self, rate: float, largest: int, loss: float = 0.0, seed: int = 1) -> None:
        self.rate = rate
        self.largest = largest
        self.loss = loss
        self.random = Random(seed)
        self.radios: list[Radio] = []
        self.free_at = 0.0
        self.bytes: Counter[str] = Counter()
        self.upkeep = 0
        self.lost = 0

    @property
    def total(self) -> int:
        return self.bytes.total()

    @property
    def spent(self) -> int:
        """The bytes that are neither beacons nor pings."""
        return self.total - self.upkeep

    def transmit(self, sender: Radio, frame: bytes, to: Where | None) -> None:
        """Put a frame on air as soon as the channel is free; those who hear it get it when it has ended."""
        assert len(frame) <= self.largest, len(frame)
        self.bytes[kind_of(frame)] += len(frame)
        if (kind_of(frame), len(frame)) in (_BEACON, _PING):
            self.upkeep += len(frame)
        loop = asyncio.get_running_loop()
        self.free_at = max(self.free_at, loop.time()) + len(frame) / self.rate
        loop.call_at(self.free_at, self._arrive, sender, frame, to)

    def _arrive(self, sender: Radio, frame: bytes, to: Where | None) -> None:
        for radio in self.radios:
            if radio is not sender and (to is None or radio.place == to):
                if self.random.random() < self.loss:
                    self.lost += 1
                elif radio.hear is not None:
                    radio.hear(frame, sender.place)


class Radio(Transport):
    """One member's radio on the air."""

    def __init__(self, air: Air) -> None:
        self.air = air
        self.largest = air.largest
        self.place = len(air.radios)
        self.hear: OnFrame | None = None
        air.radios.append(self)

    async def start(self, on_frame: OnFrame) -> None:
        self.hear = on_frame

    def send(self, frame: bytes, where: Where) -> None:
        self.air.transmit(self, frame, where)

    def broadcast(self, frame: bytes) -> None:
        self.air.transmit(self, frame, None)

    async def stop(self) -> None:
        self.hear = None

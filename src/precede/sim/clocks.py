"""A node's own clock: world time plus an offset, running fast or slow by parts per million; never backwards."""

from __future__ import annotations

from msgspec import Struct

from precede.core.instants import Duration, Instant

_MILLION = 1_000_000


class Clock(Struct, frozen=True, gc=False):
    """`read` is what the node calls now; `world_time` is when it will read a given value at the earliest."""

    offset: Duration = 0
    drift_ppm: int = 0

    def read(self, at: Instant) -> Instant:
        return at + self.offset + at * self.drift_ppm // _MILLION

    def world_time(self, reading: Instant) -> Instant:
        at = (reading - self.offset) * _MILLION // (_MILLION + self.drift_ppm)
        while self.read(at) < reading:
            at += 1
        return at

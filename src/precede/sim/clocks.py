"""The clock of a node: world time plus an offset, a drift in parts per million, and at most one jump."""

from typing import final

from precede.core.instants import Duration, Instant

_MILLION = 1_000_000


@final
class Clock:
    """A clock that never goes backwards. At `jumps_at` it is set forward by `jump`."""

    def __init__(
        self, offset: Duration = 0, drift_ppm: int = 0, jumps_at: Instant = 0, jump: Duration = 0
    ) -> None:
        self.offset = offset
        self.drift_ppm = drift_ppm
        self.jumps_at = jumps_at
        self.jump = jump

    def read(self, at: Instant) -> Instant:
        reading = at + self.offset + at * self.drift_ppm // _MILLION
        return reading + self.jump if at >= self.jumps_at else reading

    def world_time(self, reading: Instant) -> Instant:
        """Return the first instant of the world at which the clock reads this value or more."""
        at = self._smooth_time(reading)
        if self.jump and at >= self.jumps_at:
            return max(self.jumps_at, self._smooth_time(reading - self.jump))
        return at

    def _smooth_time(self, reading: Instant) -> Instant:
        """Return that instant for a clock that never jumps."""
        at = (reading - self.offset) * _MILLION // (_MILLION + self.drift_ppm)
        while at + self.offset + at * self.drift_ppm // _MILLION < reading:
            at += 1
        return at

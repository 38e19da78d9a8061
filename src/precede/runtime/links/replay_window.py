"""Remembers which counters of a stream of frames were seen. Counters older than a window count as seen."""

from typing import Final

WINDOW: Final = 1024


class ReplayWindow:
    """Counters seen so far. Frames may overtake each other by less than `WINDOW`."""

    __slots__ = ("_bits", "_highest")

    def __init__(self) -> None:
        self._highest = -1
        self._bits = 0

    def seen(self, counter: int) -> bool:
        behind = self._highest - counter
        return behind >= 0 and (behind >= WINDOW or bool(self._bits >> behind & 1))

    def mark(self, counter: int) -> bool:
        """Note an authentic counter. Returns True if it is the highest so far."""
        ahead = counter - self._highest
        if ahead <= 0:
            self._bits |= 1 << -ahead
            return False
        self._bits = (self._bits << ahead | 1) & ((1 << WINDOW) - 1) if ahead < WINDOW else 1
        self._highest = counter
        return True

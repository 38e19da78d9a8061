"""A clock that never runs backwards, and the timers of a node."""

import asyncio
from collections.abc import Callable

from precede.core.effects import Key
from precede.core.instants import SECOND, Instant


class SteadyClock:
    """Reads the machine's clock and never returns less than before, not even after a restart.

    If the machine's clock was set back, this clock runs at half speed until the machine's clock has caught up.
    It does not stand still: then no timer would fire.
    """

    def __init__(self, read: Callable[[], Instant], latest: Instant = 0) -> None:
        self.latest = latest
        self._read = read
        self._last_reading: Instant = 0
        self._slowed_at: tuple[Instant, Instant] | None = None

    def now(self) -> Instant:
        reading = self._read()
        if reading >= self.latest:
            self.latest = reading
            self._slowed_at = None
        elif self._slowed_at is None or reading < self._last_reading:
            self._slowed_at = (reading, self.latest)
        else:
            reading_then, latest_then = self._slowed_at
            self.latest = max(self.latest, latest_then + (reading - reading_then) // 2)
        self._last_reading = reading
        return self.latest


class Timers:
    """The timers that a node has set, on the event loop. `fire(key)` is called when one is due."""

    def __init__(self, clock: SteadyClock, speed: float, fire: Callable[[Key], None]) -> None:
        self._clock = clock
        self._speed = speed
        self._fire = fire
        self._handles: dict[Key, asyncio.TimerHandle] = {}

    def set(self, key: Key, at: Instant) -> None:
        """Set a timer for the instant `at`, in place of an earlier one with the same key."""
        self.cancel(key)
        delay = max(0, at - self._clock.now()) / SECOND / self._speed
        self._handles[key] = asyncio.get_running_loop().call_later(delay, self._due, key, at)

    def cancel(self, key: Key) -> None:
        handle = self._handles.pop(key, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def _due(self, key: Key, at: Instant) -> None:
        """Fire the timer, or set it again if the node's clock has not reached the instant yet."""
        if self._clock.now() < at:
            self.set(key, at)
            return
        self._handles.pop(key, None)
        self._fire(key)

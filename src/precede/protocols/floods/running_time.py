"""How long a node has run, by a clock that may be set: boards without a battery start in 1970."""

from typing import final

from precede.core.instants import Duration, Instant


@final
class RunningTime:
    """Adds up the steps of a node's clock.

    A node that sends digests has an input at least once in the longest interval between them. A longer step
    means that the clock was set forward or that the machine was suspended; it counts as one such interval.
    With `longest` 0 there are no digests, and every step counts whole.
    """

    def __init__(self, longest: Duration) -> None:
        self._longest = longest
        self._last: Instant = 0
        self._total: Duration = 0

    def at(self, now: Instant) -> Duration:
        """Return the time that the node has run. Only differences of two results have a meaning."""
        step = now - self._last
        self._last = now
        if 0 < self._longest < step:
            step = self._longest
        self._total += step
        return self._total

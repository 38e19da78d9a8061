"""When a WAS host acknowledges: regularly, soon after it misses a message, and as a heartbeat (section 4.1).

The paper reports a missing message with the next regular acknowledgement; we report it within `gap_ack`,
because the paper's delays cannot be reached otherwise. The heartbeat keeps a host without traffic from being
declared down (E16).
"""

from random import Random

from precede.core.effects import Effect, SetTimer
from precede.core.instants import Duration, Instant
from precede.core.randomness import jittered
from precede.protocols.was2021.options import WasOptions


class Acknowledgements:
    """Decides when a host sends its next acknowledgement, with one timer.

    `timer_at` is when the timer fires (None: it is not set), `regular_at` when an acknowledgement is due at the
    latest, `owed` whether something was received since the last acknowledgement, `hole_after` the earliest
    instant at which a hole that stays open is reported again.
    """

    def __init__(self, options: WasOptions, generator: Random) -> None:
        self.options = options
        self.random = generator
        self.heartbeat: Duration = options.down_after // 4
        self.timer_at: Instant | None = None
        self.regular_at: Instant = 0
        self.owed = False
        self.hole_after: Instant = 0

    def begin(self, now: Instant, effects: list[Effect]) -> None:
        """Start a connection. Its first acknowledgement goes out after about `ack_interval` at the latest."""
        self.owed = False
        self.regular_at = now + self.heartbeat
        self.hole_after = now
        self.owe(now, effects)

    def owe(self, now: Instant, effects: list[Effect]) -> None:
        """Note a reception, and set the timer so that it is acknowledged within about `ack_interval`."""
        if self.owed:
            return
        self.owed = True
        self.regular_at = min(self.regular_at, now + jittered(self.options.ack_interval, self.random))
        self.set_timer(self.regular_at, effects)

    def report_hole(self, is_new: bool, now: Instant, effects: list[Effect]) -> None:
        """Acknowledge within `gap_ack` if the hole is new, or if the last acknowledgement is `hole_ack` ago."""
        if is_new or now >= self.hole_after:
            self.hurry(now, effects)

    def hurry(self, now: Instant, effects: list[Effect]) -> None:
        """Set the timer so that the next acknowledgement goes out within `gap_ack`."""
        self.set_timer(now + round(self.options.gap_ack * self.random.random()), effects)

    def set_timer(self, at: Instant, effects: list[Effect]) -> None:
        if self.timer_at is None or at < self.timer_at:
            self.timer_at = at
            effects.append(SetTimer("ack", at))

    def sent(self, now: Instant, effects: list[Effect]) -> None:
        """Record that an acknowledgement was sent, and set the timer for the next heartbeat."""
        self.owed = False
        self.hole_after = now + self.options.hole_ack
        self.regular_at = now + self.heartbeat
        self.set_timer(self.regular_at, effects)

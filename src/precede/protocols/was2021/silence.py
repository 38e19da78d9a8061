"""How long each host of a WAS station has been silent: the basis of down decisions (was2021, section 4.5)."""

from precede.core.effects import CancelTimer, Effect, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant


class Silence:
    """When each host was last heard, least recently heard first; one timer serves the first of them."""

    def __init__(self, down_after: Duration) -> None:
        self.down_after = down_after
        self.heard: dict[NodeId, Instant] = {}
        self.timer_at: Instant | None = None

    def hear(self, host: NodeId, now: Instant, effects: list[Effect]) -> None:
        self.heard.pop(host, None)
        self.heard[host] = now
        self.arm(effects)

    def arm(self, effects: list[Effect]) -> None:
        """Set the timer, unless it is set, for the host that has been silent longest."""
        if self.timer_at is None and self.heard:
            self.timer_at = next(iter(self.heard.values())) + self.down_after
            effects.append(SetTimer("watch", self.timer_at))

    def silent_since(self, limit: Instant) -> NodeId | None:
        """Return the host silent for longest, if it was last heard at `limit` or before; else None."""
        if not self.heard:
            return None
        host, at = next(iter(self.heard.items()))
        return host if at <= limit else None

    def forget(self, host: NodeId, effects: list[Effect]) -> None:
        """Forget a host that is no longer registered here; cancel the timer if no host is left."""
        self.heard.pop(host, None)
        if not self.heard and self.timer_at is not None:
            self.timer_at = None
            effects.append(CancelTimer("watch"))

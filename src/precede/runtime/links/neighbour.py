"""One neighbour, as `neighbours.py` keeps it."""

from typing import Final

from precede.runtime.links.channel import Channel
from precede.runtime.transports.transport import Where

QUIET_BEACONS: Final = 4
UNPROVEN_BEACONS: Final = 8
PING_AFTER: Final = 5


class Neighbour:
    """A node whose link is up: its address, its boot (drawn at each start), the channel to it, and silence.

    Of two neighbours one asks for a proof first (`asks_first`); its ping and the pong prove both.
    `silent` counts the intervals since anything was heard, `unproven` those since the last authentic frame.
    """

    __slots__ = ("_ping_after", "boot", "channel", "silent", "unproven", "where")

    def __init__(self, where: Where, boot: int, channel: Channel, asks_first: bool = True) -> None:
        self.where = where
        self.boot = boot
        self.silent = 0
        self.unproven = 0
        self.channel = channel
        self._ping_after = PING_AFTER if asks_first else PING_AFTER + 1

    def count_interval(self) -> None:
        self.silent += 1
        self.unproven += 1

    @property
    def is_gone(self) -> bool:
        return self.silent > QUIET_BEACONS or self.unproven > UNPROVEN_BEACONS

    @property
    def must_prove(self) -> bool:
        return self.unproven >= self._ping_after

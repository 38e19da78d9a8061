"""One neighbour, as `neighbours.py` keeps it."""

from __future__ import annotations

from precede.runtime.links.channel import Channel
from precede.runtime.transports.transport import Where


class Neighbour:
    """A node whose link is up: its address, its boot (drawn at each start), the channel to it, and silence.

    `silent` counts the intervals since anything was heard, `unproven` those since the last authentic frame.
    """

    __slots__ = ("boot", "channel", "silent", "unproven", "where")

    def __init__(self, where: Where, boot: int, channel: Channel) -> None:
        self.where = where
        self.boot = boot
        self.silent = 0
        self.unproven = 0
        self.channel = channel

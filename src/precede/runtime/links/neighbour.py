"""One neighbour, as `neighbours.py` keeps it."""

from __future__ import annotations

from precede.runtime.links.channel import Channel
from precede.runtime.transports.transport import Where


class Neighbour:
    """A node whose link is up: address, boot, the channel to it, and intervals since it was heard.

    `silent` counts from anything heard, `unproven` from the last authentic frame of its session.
    """

    __slots__ = ("boot", "channel", "silent", "unproven", "where")

    def __init__(self, where: Where, boot: int, channel: Channel) -> None:
        self.where = where
        self.boot = boot
        self.silent = 0
        self.unproven = 0
        self.channel = channel

"""The packet of the tree protocol."""

from __future__ import annotations

from typing import ClassVar

from precede.core.messages import Message, Packet


class TreePacket(Packet, frozen=True, gc=False):
    """A message on its way down the tree of its source."""

    kind: ClassVar[str] = "tree"
    size_bytes: int
    control_bytes: int
    control_entries: int
    messages: int
    message: Message

"""Messages that wait at a VCube node, indexed by one message they wait for (vcube2018, Algorithm 2).

Messages that wait for the same message form a linked list. It is faster than a Python list, which would be one
more object, far from the others in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from mypy_extensions import mypyc_attr

from precede.core.instants import Instant
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import Prepared


@final
@mypyc_attr(acyclic=True)
class Pending:
    """A message that waits to be delivered, received at `since`."""

    __slots__ = ("message", "next", "since", "stamped")

    def __init__(self, stamped: StampedMessage, message: Prepared, since: Instant) -> None:
        self.stamped = stamped
        self.message = message
        self.since = since
        self.next: Pending | None = None


@final
@mypyc_attr(acyclic=True)
class Held:
    """A message not forwarded yet to the child of cluster t + 1. `order` ranks it by order of reception."""

    __slots__ = ("message", "next", "order", "stamped", "t")

    def __init__(self, t: int, order: int, stamped: StampedMessage, message: Prepared) -> None:
        self.t = t
        self.order = order
        self.stamped = stamped
        self.message = message
        self.next: Held | None = None


@final
@mypyc_attr(acyclic=True)
class Awaited:
    """Two linked lists of messages that wait for one message: to be forwarded, and to be delivered."""

    __slots__ = ("_last_held", "_last_lacking", "held", "lacking")

    def __init__(self) -> None:
        self.held: Held | None = None
        self.lacking: Pending | None = None
        self._last_held: Held | None = None
        self._last_lacking: Pending | None = None

    def hold(self, held: Held) -> None:
        held.next = None
        if self.held is None or self._last_held is None:
            self.held = held
        else:
            self._last_held.next = held
        self._last_held = held

    def lack(self, pending: Pending) -> None:
        pending.next = None
        if self.lacking is None or self._last_lacking is None:
            self.lacking = pending
        else:
            self._last_lacking.next = pending
        self._last_lacking = pending

    def all_held(self) -> list[Held]:
        """Return the messages that are forwarded after this awaited one, the first appended first."""
        elements: list[Held] = []
        held = self.held
        while held is not None:
            elements.append(held)
            held = held.next
        return elements

    def all_lacking(self) -> list[Pending]:
        """Return the messages that wait to be delivered, in the order in which they were appended."""
        elements: list[Pending] = []
        pending = self.lacking
        while pending is not None:
            elements.append(pending)
            pending = pending.next
        return elements

    def keep(self, held: Sequence[Held], lacking: Sequence[Pending]) -> None:
        self.held = None
        self.lacking = None
        for element in held:
            self.hold(element)
        for pending in lacking:
            self.lack(pending)

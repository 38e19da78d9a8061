"""What waits at a VCube node, filed under the one message it waits for (vcube2018, Algorithm 2).

Those who wait for the same message are chained, each to the next: a list for each would be one more object that
lies far from the others in memory.
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
    """A message that waits to be delivered."""

    __slots__ = ("message", "next", "since", "stamped")

    def __init__(self, stamped: StampedMessage, message: Prepared, since: Instant) -> None:
        self.stamped = stamped
        self.message = message
        self.since = since
        self.next: Pending | None = None


@final
@mypyc_attr(acyclic=True)
class Held:
    """A message held from the child of cluster t + 1."""

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
    """Who waits for one message: to be forwarded (`held`), to be delivered (`lacking`). The first of each."""

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
        found: list[Held] = []
        held = self.held
        while held is not None:
            found.append(held)
            held = held.next
        return found

    def all_lacking(self) -> list[Pending]:
        found: list[Pending] = []
        pending = self.lacking
        while pending is not None:
            found.append(pending)
            pending = pending.next
        return found

    def keep(self, held: Sequence[Held], lacking: Sequence[Pending]) -> None:
        """Only these wait on."""
        self.held = None
        self.lacking = None
        for one in held:
            self.hold(one)
        for pending in lacking:
            self.lack(pending)

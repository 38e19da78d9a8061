"""Messages that wait at a VCube node, indexed by one message they wait for (vcube2018, Algorithm 2).

They are in Python lists. A list of objects that name their successor is freed by nested calls, one inside the
other; CPython postpones the innermost and writes that into a header that `acyclic` classes do not have.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import mypyc_attr

from precede.core.instants import Instant
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import Prepared


@final
@mypyc_attr(acyclic=True)
class Pending:
    """A message that waits to be delivered, received at `since`."""

    __slots__ = ("message", "since", "stamped")

    def __init__(self, stamped: StampedMessage, message: Prepared, since: Instant) -> None:
        self.stamped = stamped
        self.message = message
        self.since = since


@final
@mypyc_attr(acyclic=True)
class Held:
    """A message not forwarded yet to the child of cluster t + 1. `order` ranks it by order of reception."""

    __slots__ = ("message", "order", "stamped", "t")

    def __init__(self, t: int, order: int, stamped: StampedMessage, message: Prepared) -> None:
        self.t = t
        self.order = order
        self.stamped = stamped
        self.message = message


@final
@mypyc_attr(acyclic=True)
class Awaited:
    """The messages that wait for one message: `held` to be forwarded, `lacking` to be delivered; None if none.

    Both are in the order in which they came.
    """

    __slots__ = ("held", "lacking")

    def __init__(self) -> None:
        self.held: list[Held] | None = None
        self.lacking: list[Pending] | None = None

    def hold(self, held: Held) -> None:
        if self.held is None:
            self.held = [held]
        else:
            self.held.append(held)

    def lack(self, pending: Pending) -> None:
        if self.lacking is None:
            self.lacking = [pending]
        else:
            self.lacking.append(pending)

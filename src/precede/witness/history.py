"""One independent order as the checks see it: each process's rows in its own order, as whole numbers.

A process is one incarnation of one node. Its rows stand at `start[p] .. start[p + 1]` of `events`, by step; an
event is `2 * message` for a broadcast, `2 * message + 1` for a delivery, negative for a row that takes part in
no order (a ghost, a repetition; `unmask` gives it back). Messages are numbered by source, then in the order in
which the source broadcast them, so a message's rank is arithmetic. The sequences are lists, or numpy arrays
when the log is large: the checks are written for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from precede.witness.verdict import Row

Ints: TypeAlias = Any
"""A list of ints or a numpy array of them: what a check written for both may index."""

GHOST: Final = -1
GHOSTS_KEPT: Final = 100
"""How many deliveries without a broadcast are kept by name; all of them are counted."""

NEVER: Final = (1 << 63) - 1
"""A deadline that is none."""

ABSENT, ANYONE = -1, -2
"""The source of a ghost: a process without rows, or (opaque ids) nobody can say."""

DUPLICATE, EARLY, UNADDRESSED, LATE, EXPIRED = 1, 2, 4, 8, 16
"""Marks of a row that breaks a rule."""


class Gap(Struct, frozen=True):
    """Rows of a process are missing: after `last` came `next` (`last` is None at the beginning)."""

    process: int
    last: int | None
    next: int


class Ghost(Struct, frozen=True):
    """A delivery of a message that no row broadcast."""

    process: int
    step: int
    message: str


class History(Struct):
    """One independent order. See the head of this file; fields that an order does not need may be None."""

    group: tuple[tuple[str, str], ...]
    nodes: Sequence[str]
    node_of: Ints
    incarnation: Ints
    start: Ints
    events: Ints
    steps: Ints
    source: Ints
    base: Ints
    position: Ints
    number: Ints
    labels: Sequence[str] | None
    deliveries: int
    gaps: list[Gap]
    ghosts: list[Ghost] = []
    ghost_count: int = 0
    deadline: Ints | None = None
    clock: Ints | None = None
    clock_missing: bool = False
    addressed: Ints | None = None
    address_start: Ints | None = None
    addresses: Ints | None = None

    @property
    def processes(self) -> int:
        return len(self.start) - 1

    @property
    def messages(self) -> int:
        return len(self.source)

    def unreliable(self, truncated: bool) -> set[int]:
        """Sources whose broadcasts may be missing from the log: what they sent is no ghost."""
        if truncated:
            return {ABSENT, ANYONE, *range(len(self.node_of))}
        incomplete = {gap.process for gap in self.gaps}
        # rows missing where a life begins may as well be the last ones of the life before
        begins = [gap.process for gap in self.gaps if gap.last is None and gap.process > 0]
        incomplete |= {p - 1 for p in begins if self.node_of[p - 1] == self.node_of[p]}
        return incomplete | {ANYONE} if incomplete else incomplete

    def may_hide(self, node: int, life: int) -> bool:
        """May all rows of a life without any be missing? Then the node's next life begins with a gap."""
        begins = {gap.process for gap in self.gaps if gap.last is None}
        if not begins:
            return False
        lives = enumerate(zip(self.node_of, self.incarnation, strict=True))
        later = next((p for p, (whose, which) in lives if whose == node and which > life), None)
        return later in begins

    def message_name(self, message: int) -> str:
        """`a:3`, `a'1:3` for a later incarnation, or the log's own id."""
        if self.labels is not None:
            return self.labels[int(self.number[message])]
        source = int(self.source[message])
        return name_message(
            self.nodes[int(self.node_of[source])], int(self.incarnation[source]), int(self.number[message])
        )

    def process_name(self, process: int) -> str:
        life = int(self.incarnation[process])
        name = self.nodes[int(self.node_of[process])]
        return f"{name} (incarnation {life})" if life else name

    def process_of(self, event: int) -> int:
        """Whose row it is."""
        low, high = 0, self.processes
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.start[middle] <= event else (low, middle)
        return low

    def row(self, event: int) -> Row:
        """A row as evidence."""
        process = self.process_of(event)
        code = unmask(int(self.events[event]))
        return Row(
            node=self.nodes[int(self.node_of[process])],
            incarnation=int(self.incarnation[process]),
            step=int(self.steps[event]),
            event="delivered" if code & 1 else "broadcast",
            message=self.message_name(code >> 1),
        )


def mask(code: int) -> int:
    """An event that takes part in no order any more."""
    return -code - 2


def unmask(code: int) -> int:
    """The event behind a masked one."""
    return code if code >= 0 else -code - 2


def name_message(source: str, incarnation: int, number: int) -> str:
    return f"{source}'{incarnation}:{number}" if incarnation else f"{source}:{number}"

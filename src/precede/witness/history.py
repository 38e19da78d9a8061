"""A history: the rows of one independent order as integers, the form that all checks work on.

A process is one incarnation of one node. The rows of process p are `events[start[p]:start[p + 1]]`, by step. An
event is `2 * message` for a broadcast and `2 * message + 1` for a delivery. A negative event is masked: the row
takes part in no order (a delivery without a broadcast, or a repetition; `unmask` restores the code). Messages
are numbered by source, and within a source in the order of broadcasting: message m of source s has the rank
`m - base[s] + 1` among the broadcasts of s. The sequences are lists, or numpy arrays when the log is large; the
checks are written for both.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from precede.witness.verdict import Row

Ints: TypeAlias = Any
"""A list or a numpy array of integers."""

GHOST: Final = -1
"""The event code of a delivery whose message has no broadcast row (a ghost)."""

GHOSTS_KEPT: Final = 100
"""How many deliveries without a broadcast are kept one by one; the count has all of them."""

NEVER: Final = (1 << 63) - 1
"""The deadline of a message without one."""

BOTTOM, NOWHERE = -1, -2
"""The place of a delivery that is not above a message: the bottom, or above a message that is not known."""

ABSENT, ANYONE = -1, -2
"""The source of a ghost (a delivery without a broadcast): a process without rows, or an unknown process."""

DUPLICATE, EARLY, UNADDRESSED, LATE, EXPIRED, MISPLACED = 1, 2, 4, 8, 16, 32
"""Bits that mark a row which breaks a rule."""


class Gap(Struct, frozen=True):
    """A hole in the steps of a process, between `last` (None: before its first row) and `next`."""

    process: int
    last: int | None
    next: int


class Ghost(Struct, frozen=True):
    """A delivery of a message without a broadcast row."""

    process: int
    step: int
    message: str


class Ungathered(Struct):
    """Deliveries of messages of one node that has no row in the log: the first of them, and their count."""

    first: list[Ghost]
    count: int = 0


class History(Struct):
    """The rows of one independent order; the module's docstring explains the codes.

    Per process: `node_of` (index into `nodes`), `incarnation`, `start`, `base`. Per row: `events`, `steps`,
    `clock`, `above` (the message above which this one is shown, or BOTTOM or NOWHERE). Per message: `source` (a
    process), `number`, `position` (its broadcast row, -1 without one), `deadline`, `addressed` (1 if it has
    destinations), `address_start` and `addresses` (node indices, sorted). `labels` are the log's own ids, None
    when messages are named by source and number. `group` has the values of
    the columns that split the log. Fields that the order does not need may be None.
    """

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
    ungathered: dict[str, Ungathered] = {}
    deadline: Ints | None = None
    clock: Ints | None = None
    clock_missing: bool = False
    addressed: Ints | None = None
    address_start: Ints | None = None
    addresses: Ints | None = None
    above: Ints | None = None

    @property
    def processes(self) -> int:
        return len(self.start) - 1

    @property
    def messages(self) -> int:
        return len(self.source)

    def unreliable(self, truncated: bool) -> set[int]:
        """Return the sources whose broadcasts may be missing, so that their messages are no ghosts."""
        if truncated:
            return {ABSENT, ANYONE, *range(len(self.node_of))}
        incomplete = {gap.process for gap in self.gaps}
        # rows missing before an incarnation's first may be the last ones of the incarnation before it
        begins = [gap.process for gap in self.gaps if gap.last is None and gap.process > 0]
        incomplete |= {p - 1 for p in begins if self.node_of[p - 1] == self.node_of[p]}
        return incomplete | {ANYONE} if incomplete else incomplete

    def may_be_missing(self, node: int, incarnation: int) -> bool:
        """Can an incarnation without rows have existed? Yes, if the node's next one begins with a gap."""
        begins = {gap.process for gap in self.gaps if gap.last is None}
        if not begins:
            return False
        processes = enumerate(zip(self.node_of, self.incarnation, strict=True))
        later = next((p for p, (other, number) in processes if other == node and number > incarnation), None)
        return later in begins

    def add_ungathered(self, node: str, ghost: Ghost) -> None:
        """Count a delivery of a message whose source, this node, has no rows; keep the first ones."""
        missing = self.ungathered.setdefault(node, Ungathered([]))
        missing.count += 1
        if len(missing.first) < GHOSTS_KEPT:
            missing.first.append(ghost)

    def message_name(self, message: int) -> str:
        """Return the name of a message: `a:3`, `a'1:3` for a later incarnation, or the log's own id."""
        if self.labels is not None:
            return self.labels[int(self.number[message])]
        source = int(self.source[message])
        return name_message(
            self.nodes[int(self.node_of[source])], int(self.incarnation[source]), int(self.number[message])
        )

    def process_name(self, process: int) -> str:
        return name_process(self.nodes[int(self.node_of[process])], int(self.incarnation[process]))

    def process_of(self, event: int) -> int:
        """Return the process to which a row belongs, by binary search."""
        low, high = 0, self.processes
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.start[middle] <= event else (low, middle)
        return low

    def row(self, event: int) -> Row:
        """Return a row of the log in the form in which verdicts show evidence."""
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
    """Return the masked code of an event: the checks of the orders ignore it."""
    return -code - 2


def unmask(code: int) -> int:
    """Return the original code of an event, masked or not."""
    return code if code >= 0 else -code - 2


def name_process(node: str, incarnation: int) -> str:
    """Return the name of a process for a message to the user: `a`, or `a (incarnation 2)`."""
    return f"{node} (incarnation {incarnation})" if incarnation else node


def name_message(source: str, incarnation: int, number: int) -> str:
    """Return the name of a message: `a:3`, or `a'1:3` for a later incarnation of its source."""
    return f"{source}'{incarnation}:{number}" if incarnation else f"{source}:{number}"

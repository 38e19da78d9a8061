"""How many first copies came too late: at least and at most, over all orders that the log allows.

Two instants of one clock order two events if they differ by more than the margin; with a margin of 0 only equal
instants are open. An event with an interval is before another if its interval ends before the other begins.

*At least* counts the copies that are late in every order. Such an order exists in which no other copy is late,
so the number is exact (docs/guides/audit.md has the proof; `witness_orders` builds the order and the witness
counts it). *At most* counts the copies that are late in some order. With a margin of 0 and no missing row one
order has them all, unless two messages would each have to precede the other; otherwise it is an upper bound.

Both are one sweep over the events of a node. Learning a message adds its past to what the node depends on; a
question asks whether that contains a message. For *at least*, a copy is learned at its latest and asked about
at its earliest instant; for *at most*, the other way round.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from precede.audit.copies import Copies, Flags, Ints
from precede.core.errors import BadInput

Order: TypeAlias = Literal["fifo", "causal"]
Answer: TypeAlias = Literal["holds", "violated", "unknown"]
Pasts: TypeAlias = NDArray[np.int32]
"""A row per message: how many messages of each source are in its past, always a prefix of them."""

ORDERS: Final[tuple[Order, ...]] = get_args(Order)
MOST_PAST_BYTES: Final = 1 << 32
"""The most memory for the pasts of messages of one order."""


class Bounds(Struct, frozen=True):
    """The copies of one order that came too late, at least and at most, and what follows from that."""

    order: Order
    margin_us: int
    copies: int
    at_least: int
    at_most: int

    @property
    def verdict(self) -> Answer:
        """`violated` if a copy is late in every order, `holds` if none is late in any, else `unknown`."""
        if self.at_least:
            return "violated"
        return "unknown" if self.at_most or not self.copies else "holds"


def bound(copies: Copies, order: Order, margin_us: int) -> Bounds:
    """Count the late copies of one order with one margin."""
    least, most = (int(late(copies, order, margin_us, certain).sum()) for certain in (True, False))
    return Bounds(order, margin_us, len(copies.node), least, most)


def bound_all(copies: Copies, margins_us: Sequence[int], orders: Sequence[Order] = ORDERS) -> list[Bounds]:
    """Count the late copies for every order and margin."""
    return [bound(copies, order, margin) for order in orders for margin in margins_us]


def late(copies: Copies, order: Order, margin_us: int, certain: bool) -> Flags:
    """Return which copies are late: in every order if `certain`, else in at least one.

    A copy is late if its node had before it a copy of a message that depends on it.
    """
    past = pasts(copies, order, margin_us, certain)
    source, rank, message = copies.source, copies.rank, copies.message
    learned, asked_at = _instants(copies.earliest, copies.latest, margin_us, certain)
    nodes, copy, is_question = _sweep(copies.node, learned, asked_at, certain)
    marks = np.zeros(len(message), np.bool_)
    width = int(source.max()) + 1 if len(source) else 0
    known, node = np.zeros(width, np.int32), -1
    for at, i, question in zip(nodes.tolist(), copy.tolist(), is_question.tolist(), strict=True):
        if at != node:
            node, known = at, np.zeros(width, np.int32)
        m = message[i]
        if question:
            marks[i] = known[source[m]] > rank[m]
        elif past is None:
            known[source[m]] = max(known[source[m]], rank[m])
        else:
            np.maximum(known, past[m], out=known)
    if past is not None:
        _clear_own_marks(copies, past, marks, learned, asked_at, certain)
    return marks


def _clear_own_marks(
    copies: Copies, past: Pasts, marks: Flags, learned: Ints, asked_at: Ints, certain: bool
) -> None:
    """Clear the mark of a message that only its own past, as part of a ring, made late."""
    source, rank = copies.source, copies.rank
    ringed = past[np.arange(len(past)), source] > rank
    for i in np.flatnonzero(marks & ringed[copies.message]).tolist():
        m = copies.message[i]
        others = np.flatnonzero((copies.node == copies.node[i]) & (copies.message != m))
        before = learned[others] < asked_at[i] if certain else learned[others] <= asked_at[i]
        depends = past[copies.message[others], source[m]] > rank[m]
        marks[i] = bool(np.any(before & depends))


def pasts(copies: Copies, order: Order, margin_us: int, certain: bool) -> Pasts | None:
    """Return the past of every message, or None for FIFO order, where it is the rank of the message.

    A message depends on the earlier ones of its source, and on those of which its source had a copy when it
    created it. Messages are visited by their instants of creation until nothing changes: if clocks agree this
    is one visit and one to confirm it. A message in its own past is part of a ring: its clocks contradict each
    other.
    """
    if order == "fifo":
        return None
    source, rank = copies.source, copies.rank
    width = int(source.max()) + 1 if len(source) else 0
    if 4 * width * len(source) > MOST_PAST_BYTES:
        raise BadInput(
            f"{len(source):,} messages of {width:,} nodes in one order need more than"
            f" {MOST_PAST_BYTES >> 30} GiB: split the log into groups"
        )
    past = np.zeros((len(source), width), np.int32)
    past[np.arange(len(source)), source] = rank
    learned, _ = _instants(copies.earliest, copies.latest, margin_us, certain)
    asked_at = copies.created if certain else copies.created + margin_us
    at_source = np.flatnonzero(np.isin(copies.node, source))
    at_source = at_source[np.lexsort((learned[at_source], copies.node[at_source]))]
    begin = np.searchsorted(copies.node[at_source], np.arange(width)).tolist()
    end = np.searchsorted(copies.node[at_source], np.arange(width), "right").tolist()
    instants, learned_messages = learned[at_source].tolist(), copies.message[at_source].tolist()
    visits = [(m, int(source[m]), int(asked_at[m])) for m in np.lexsort((rank, copies.created)).tolist()]
    changed = True
    while changed:
        changed, cursor = False, list(begin)
        known = np.zeros((width, width), np.int32)
        for m, p, instant in visits:
            own, place = known[p], cursor[p]
            while place < end[p] and (
                instants[place] < instant or (not certain and instants[place] == instant)
            ):
                other = learned_messages[place]
                np.maximum(own, past[other], out=own)
                own[source[other]] = max(own[source[other]], rank[other] + 1)
                place += 1
            cursor[p] = place
            if np.any(own > past[m]):
                np.maximum(past[m], own, out=past[m])
                changed = True
    return past


def in_rings(copies: Copies, margin_us: int, certain: bool) -> int:
    """Return how many messages are in their own causal past: the log contradicts itself about them."""
    past = pasts(copies, "causal", margin_us, certain)
    assert past is not None
    return int((past[np.arange(len(past)), copies.source] > copies.rank).sum())


def _instants(earliest: Ints, latest: Ints, margin_us: int, certain: bool) -> tuple[Ints, Ints]:
    """Return when each copy is learned, and when it is asked about."""
    return (latest + margin_us, earliest) if certain else (earliest, latest + margin_us)


def _sweep(node: Ints, learned: Ints, asked_at: Ints, certain: bool) -> tuple[Ints, Ints, Flags]:
    """Return the events of all nodes in the order of a sweep: node, copy, and whether it is a question.

    At one instant questions come first if only certain orders count, else last.
    """
    count = len(node)
    is_question = np.repeat(np.array([False, True]), count)
    nodes, instants = np.tile(node, 2), np.concatenate([learned, asked_at])
    order = np.lexsort((is_question != certain, instants, nodes))
    return nodes[order], np.tile(np.arange(count), 2)[order], is_question[order]

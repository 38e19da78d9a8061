"""Two orders that the log allows, as rows for the witness: one with the fewest late copies, one with the most.

The witness needs one order of the events of each node. Where the log leaves it open, `order_rows` chooses:

* the *kindest* order puts a message before those that depend on it, and a creation before the copies that might
  have
  come after it;
* the *harshest* order does the opposite.
 The witness shares no code with `bounds`, so its count of the kindest order is a second count of *at least*,
and its count of the harshest order shows that *at most* is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from precede.audit.bounds import Order, Pasts, late, pasts
from precede.audit.copies import Copies
from precede.witness.verdict import Verdict
from precede.witness.verify import verify


class Event(NamedTuple):
    """A creation or a copy at a node: its message, and the interval in which it happened."""

    message: int
    earliest: int
    latest: int
    is_creation: bool


class _Node(NamedTuple):
    """The events of a node, and what decides their order.

    `past` is that of the order which is judged, `causal_past` that of causal order. Messages in `hopeless` are
    late in any order.
    """

    events: list[Event]
    copies: Copies
    past: Pasts
    causal_past: Pasts
    hopeless: frozenset[int]
    kindest: bool

    def depends(self, past: Pasts, later: Event, earlier: Event) -> bool:
        """Return whether the message of one event has that of the other in its past."""
        m = earlier.message
        return bool(past[later.message, self.copies.source[m]] > self.copies.rank[m])

    def must_wait(self, event: Event, other: Event) -> bool:
        """Return whether an event is put after another one that is not placed yet."""
        if other.earliest > event.latest:
            return False
        if event.is_creation and other.is_creation:
            return bool(self.copies.rank[other.message] < self.copies.rank[event.message])
        if event.is_creation:
            return not self.kindest
        if other.is_creation:
            return self.kindest and not self.depends(self.causal_past, other, event)
        if self.kindest:
            return other.message not in self.hopeless and self.depends(self.past, event, other)
        return self.depends(self.past, other, event)


def order_rows(copies: Copies, order: Order, *, kindest: bool, margin_us: int = 0) -> list[dict[str, Any]]:
    """Return the rows of the kindest or the harshest order: node, step, kind and message."""
    causal_past = pasts(copies, "causal", margin_us, certain=kindest)
    assert causal_past is not None
    past = causal_past
    if order == "fifo":
        past = np.zeros_like(causal_past)
        past[np.arange(len(past)), copies.source] = copies.rank
    marks = late(copies, order, margin_us, certain=True)
    rows = []
    for node, events in _events_by_node(copies, margin_us):
        own = (copies.node == node) & marks
        hopeless = frozenset(copies.message[own].tolist())
        for step, event in enumerate(_place(_Node(events, copies, past, causal_past, hopeless, kindest))):
            kind = "broadcast" if event.is_creation else "delivered"
            label = copies.labels[event.message]
            rows.append({"node": copies.names[node], "step": step, "kind": kind, "message": label})
    return rows


def judge(copies: Copies, order: Order, *, kindest: bool, margin_us: int = 0) -> Verdict:
    """Let the witness judge the kindest or the harshest order that the log allows."""
    return verify(order_rows(copies, order, kindest=kindest, margin_us=margin_us), order)


def judge_every_order(copies: Copies, order: Order) -> Verdict:
    """Return the verdict that holds for every order that the log allows.

    It is `violated` if the kindest order is, `holds` if the harshest does, else `unknown`.
    """
    kindest = judge(copies, order, kindest=True)
    if not kindest.holds or judge(copies, order, kindest=False).holds:
        return kindest
    reason = f"the log leaves the order of some events open, and {order} order depends on it"
    return replace(kindest, verdict="unknown", reasons=(reason,))


def _events_by_node(copies: Copies, margin_us: int) -> Iterator[tuple[int, list[Event]]]:
    events: dict[int, list[Event]] = {node: [] for node in range(len(copies.names))}
    columns = (copies.node, copies.message, copies.earliest, copies.latest + margin_us)
    for node, message, earliest, latest in zip(*(column.tolist() for column in columns), strict=True):
        events[node].append(Event(message, earliest, latest, False))
    for message, (source, created) in enumerate(
        zip(copies.source.tolist(), copies.created.tolist(), strict=True)
    ):
        events[source].append(Event(message, created, created + margin_us, True))
    for node, unordered in events.items():
        yield node, sorted(unordered, key=lambda event: (event.earliest, not event.is_creation, event.message))


def _place(node: _Node) -> Iterator[Event]:
    """Yield the events one by one. An event may come next if no other one certainly precedes it."""
    waiting = list(node.events)
    while waiting:
        bound = min(event.latest for event in waiting)
        open_events = [event for event in waiting if event.earliest <= bound]
        free = (
            event
            for event in open_events
            if not any(node.must_wait(event, other) for other in waiting if other is not event)
        )
        # nothing is free if messages would have to precede each other: then the clock decides
        chosen = next(free, open_events[0])
        waiting.remove(chosen)
        yield chosen

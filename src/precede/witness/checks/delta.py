"""Δ-causal adds to causal order: nothing is delivered after its deadline, by the delivering node's clock."""

from __future__ import annotations

from precede.witness.history import EXPIRED, Ints


def mark_expired(events: Ints, marks: Ints, clock: Ints, deadline: Ints) -> int:
    """Mark every delivery after its message's deadline; how many there are. At the deadline is in time."""
    found = 0
    for e in range(len(events)):
        code = events[e]
        if code >= 0 and code & 1 and clock[e] > deadline[code >> 1]:
            marks[e] |= EXPIRED
            found += 1
    return found

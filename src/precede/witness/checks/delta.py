"""The check that Δ-causal order adds to causal order: no delivery after the deadline, by the local clock."""

from precede.witness.history import EXPIRED, Ints


def mark_expired(events: Ints, marks: Ints, clock: Ints, deadline: Ints) -> int:
    """Mark every delivery after its message's deadline, not at it. Returns the number of marked rows."""
    expired = 0
    for e in range(len(events)):
        code = events[e]
        if code >= 0 and code & 1 and clock[e] > deadline[code >> 1]:
            marks[e] |= EXPIRED
            expired += 1
    return expired

"""Causal order under full happened-before, exact for partial delivery, from rows alone.

Broadcasts of one source are ordered by happened-before, so the past of a message m is downward closed in each
source, and the clock V_m[s], the rank of the last message of s in it, says all of it. A process keeps C[s], the
maximum of V_m[s] over what it delivered (V_m of m's own source is m's rank). A delivery of message k of source
s comes after something that it precedes exactly when C[s] >= k before it is counted in: then some delivered
message has it in its past. Messages that were never delivered need no special case. A late delivery adds
nothing to C: its past is in there already.

This file is the plain form, with sparse clocks; `compiled.py` has the one for large logs.
"""

from __future__ import annotations

from precede.witness.history import LATE, Ints


def mark_late_causal(
    start: Ints, events: Ints, marks: Ints, source: Ints, base: Ints, who: Ints, until: Ints, turns: int
) -> int:
    """Mark every delivery that comes after a message which it precedes; how many there are.

    Turns are those of `take_turns`: in their order a message's past is known before it is delivered.
    """
    found = 0
    deliveries = [0] * len(source)
    for code in events:
        if code >= 0 and code & 1:
            deliveries[code >> 1] += 1
    known: list[dict[int, int]] = [{} for _ in range(len(start) - 1)]
    past: dict[int, dict[int, int]] = {}
    cursor = list(start)
    for turn in range(turns):
        p = who[turn]
        mine = known[p]
        for e in range(cursor[p], until[turn]):
            code = events[e]
            if code < 0:
                continue
            m = code >> 1
            if code & 1 == 0:
                if deliveries[m]:
                    past[m] = mine.copy()
                continue
            s = source[m]
            rank = m - base[s] + 1
            if mine.get(s, 0) >= rank:
                marks[e] |= LATE
                found += 1
            else:
                for t, last in past[m].items():
                    if last > mine.get(t, 0):
                        mine[t] = last
                mine[s] = rank
            deliveries[m] -= 1
            if deliveries[m] == 0:
                del past[m]
        cursor[p] = until[turn]
    return found

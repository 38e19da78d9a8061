"""The check of causal order: happened-before over all rows, exact also if nodes deliver only some messages.

Happened-before orders the broadcasts of one source. So the past of a message m contains, of each source s, a
prefix of its broadcasts, and a vector V_m with the length of each prefix describes the past completely. A
process keeps C[s], the maximum of V_m[s] over the messages it delivered (V_m of m's own source is m's rank). A
delivery of the k-th message of s is late exactly when C[s] >= k before the delivery is taken into account: then
a delivered message has it in its past. Messages that were never delivered need no special case. A late delivery
does not change C, which has its past already.

This module is in plain Python with sparse vectors; `numba_engine.py` has the check for large logs.
"""

from precede.witness.history import LATE, Ints


def mark_late_causal(
    start: Ints, events: Ints, marks: Ints, source: Ints, base: Ints, who: Ints, until: Ints, turns: int
) -> int:
    """Mark every late delivery: its process delivered before it a message that depends on it.

    Returns the number of marked rows. `who`, `until` and `turns` are the schedule of `integrity.take_turns`. In
    its order the past of a message is known before the message is delivered.
    """
    late = 0
    deliveries = [0] * len(source)
    for code in events:
        if code >= 0 and code & 1:
            deliveries[code >> 1] += 1
    clocks: list[dict[int, int]] = [{} for _ in range(len(start) - 1)]
    past: dict[int, dict[int, int]] = {}
    cursor = list(start)
    for turn in range(turns):
        p = who[turn]
        clock = clocks[p]
        for e in range(cursor[p], until[turn]):
            code = events[e]
            if code < 0:
                continue
            m = code >> 1
            if code & 1 == 0:
                if deliveries[m]:
                    past[m] = clock.copy()
                continue
            s = source[m]
            rank = m - base[s] + 1
            if clock.get(s, 0) >= rank:
                marks[e] |= LATE
                late += 1
            else:
                for t, last in past[m].items():
                    if last > clock.get(t, 0):
                        clock[t] = last
                clock[s] = rank
            deliveries[m] -= 1
            if deliveries[m] == 0:
                del past[m]
        cursor[p] = until[turn]
    return late

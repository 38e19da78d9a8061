"""The causal past of every message as a few direct predecessors, so that nodes can be judged independently.

A delivery at p is late exactly if p had delivered a message whose past contains it. So the rows of p and the
pasts of all messages decide about p; the rows of other nodes matter only through these pasts. `candidates`
keeps of a source's rows what its messages' pasts can depend on. `direct` keeps of these only what is not in the
past of another one: the closure is the same, and some ten rows are left where there were thousands.
"""

import numpy as np

from precede.witness.history import Ints
from precede.witness.reading.kernels import numba_kernel


@numba_kernel
def candidates(begin: Ints, end: Ints, events: Ints, source: Ints, base: Ints, known: Ints, kept: Ints) -> Ints:
    """Choose the rows of one source, from `begin` to `end`, on which the pasts of its messages can depend.

    These are its broadcasts, and before each of them the deliveries that are newer than all it had delivered
    of their source. `known` has a zero for each process. Writes the rows to `kept`; returns their number.
    """
    count, low = 0, begin
    for e in range(begin, end):
        if events[e] < 0 or events[e] & 1:
            continue
        first = count
        for d in range(e - 1, low - 1, -1):
            code = events[d]
            if code >= 0:
                m = code >> 1
                s = source[m]
                if m - base[s] + 1 > known[s]:
                    known[s] = m - base[s] + 1
                    kept[count] = d
                    count += 1
        kept[first:count] = kept[first:count][::-1].copy()
        kept[count] = e
        count += 1
        low = e + 1
    return count


@numba_kernel
def direct(
    start: Ints, events: Ints, source: Ints, base: Ints, schedule: Ints, pasts: Ints, keep: Ints
) -> Ints:
    """Mark in `keep` the broadcasts and the deliveries that are direct predecessors of a broadcast.

    `schedule` orders all rows (see `integrity.take_turns`). `pasts` becomes, for each message and process, the
    highest rank of the process's messages in the message's past, itself included.
    """
    who, until, turns = schedule
    cursor, low = start.copy(), start.copy()
    clock = np.zeros(pasts.shape[1], pasts.dtype)
    for turn in range(turns):
        p = who[turn]
        for e in range(cursor[p], until[turn]):
            if events[e] & 1:
                continue
            m = events[e] >> 1
            clock[:] = 0
            if m > base[p]:
                clock[:] = pasts[m - 1]
            for d in range(e - 1, low[p] - 1, -1):
                n = events[d] >> 1
                s = source[n]
                if clock[s] < n - base[s] + 1:
                    keep[d] = 1
                    for j in range(len(clock)):
                        clock[j] = max(clock[j], pasts[n, j])
            clock[p] = m - base[p] + 1
            pasts[m] = clock
            keep[e] = 1
            low[p] = e + 1
        cursor[p] = until[turn]

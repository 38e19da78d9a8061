"""The check of total order, pairwise: two nodes that both deliver two messages deliver them in the same order.

If the union of all local orders has no cycle, total order holds. `agree_up_to` decides that in one pass: it
repeatedly removes a message that is the next one at every process that still has to deliver it. The remaining
deliveries are in cycles or behind them. Two messages in different order lie in one knot, which is a strongly
connected component of the union. Knots are checked one by one: if two processes disagree about two messages of
a knot, the knot is a violation; otherwise it is a cycle longer than a pair, which the definition allows and the
verdict reports as a finding.

The functions run on lists in plain Python, and on numpy arrays when `numba_engine.py` compiles them with numba.
"""

from collections import deque

from precede.witness.history import Ints


def agree_up_to(
    start: Ints, events: Ints, copies: Ints, arrived: Ints, parked: Ints, after: Ints, cursor: Ints, ready: Ints
) -> int:
    """Remove deliveries for as long as all processes agree on the next message.

    Returns the number of removed deliveries. `copies[m]` is the number of processes that deliver message m. The
    caller passes `arrived` filled with 0 and `parked` with -1, per message, and `cursor` as a copy of `start`;
    `cursor` ends at the first remaining row.
    """
    taken = 0
    count = len(start) - 1
    for p in range(count):
        ready[p] = count - 1 - p
    while count > 0:
        count -= 1
        p = ready[count]
        e, end = cursor[p], start[p + 1]
        while e < end and (events[e] < 0 or events[e] & 1 == 0):
            e += 1
        cursor[p] = e
        if e == end:
            continue
        m = events[e] >> 1
        arrived[m] += 1
        after[p] = parked[m]
        parked[m] = p
        if arrived[m] == copies[m]:
            taken += copies[m]
            q = parked[m]
            while q >= 0:
                cursor[q] += 1
                ready[count] = q
                count += 1
                q = after[q]
    return taken


def gather_rest(start: Ints, events: Ints, cursor: Ints, rest: Ints, origin: Ints, owner: Ints) -> int:
    """Collect the remaining deliveries, process by process: message, row and process. Returns their number."""
    count = 0
    for p in range(len(start) - 1):
        for e in range(cursor[p], start[p + 1]):
            code = events[e]
            if code >= 0 and code & 1:
                rest[count] = code >> 1
                origin[count] = e
                owner[count] = p
                count += 1
    return count


def index_places(keys: Ints, count: int, place_start: Ints, places: Ints, fill: Ints) -> None:
    """Index keys by value: the indices of key k are `places[place_start[k]:place_start[k + 1]]`, ascending.

    The caller passes `place_start` filled with 0, with one entry more than there are keys.
    """
    for i in range(count):
        place_start[keys[i] + 1] += 1
    for key in range(len(place_start) - 1):
        place_start[key + 1] += place_start[key]
        fill[key] = place_start[key]
    for i in range(count):
        places[fill[keys[i]]] = i
        fill[keys[i]] += 1


def find_knots(
    rest: Ints,
    owner: Ints,
    count: int,
    place_start: Ints,
    places: Ints,
    seen: Ints,
    low: Ints,
    knot: Ints,
    pointer: Ints,
    stack: Ints,
    calls: Ints,
) -> int:
    """Find the knots: Tarjan's strongly connected components of the relation "delivered directly before".

    `knot[m]` becomes the component of message m. The caller fills `seen` with 0 and `knot` with -1.
    """
    counter, height, violations = 0, 0, 0
    for root in range(len(seen)):
        if seen[root] != 0 or place_start[root] == place_start[root + 1]:
            continue
        calls[0] = root
        depth = 1
        while depth > 0:
            m = calls[depth - 1]
            if seen[m] == 0:
                counter += 1
                seen[m] = counter
                low[m] = counter
                pointer[m] = place_start[m]
                stack[height] = m
                height += 1
            if pointer[m] < place_start[m + 1]:
                i = places[pointer[m]]
                pointer[m] += 1
                if i + 1 < count and owner[i + 1] == owner[i]:
                    n = rest[i + 1]
                    if seen[n] == 0:
                        calls[depth] = n
                        depth += 1
                    elif knot[n] < 0:
                        low[m] = min(low[m], seen[n])
                continue
            depth -= 1
            if depth > 0:
                low[calls[depth - 1]] = min(low[calls[depth - 1]], low[m])
            if low[m] == seen[m]:
                n = -1
                while n != m:
                    height -= 1
                    n = stack[height]
                    knot[n] = violations
                violations += 1
    return violations


def distinct_opinions(
    first: int, end: int, members: Ints, rest: Ints, owner: Ints, heads: Ints, tails: Ints, hashes: Ints
) -> int:
    """Find the distinct orders in which processes deliver one knot. Returns their number.

    `members[first:end]` are its deliveries in `rest`; order k is `members[heads[k]:tails[k]]`.
    """
    different = 0
    head = first
    while head < end:
        tail = head
        check = 0
        while tail < end and owner[members[tail]] == owner[members[head]]:
            check = (check * 31 + rest[members[tail]]) & 0x3FFFFFFF
            tail += 1
        is_known = False
        for k in range(different):
            if hashes[k] != check or tails[k] - heads[k] != tail - head:
                continue
            is_known = True
            for i in range(tail - head):
                if rest[members[heads[k] + i]] != rest[members[head + i]]:
                    is_known = False
                    break
            if is_known:
                break
        if not is_known:
            heads[different] = head
            tails[different] = tail
            hashes[different] = check
            different += 1
        head = tail
    return different


def find_disagreement(
    different: int, heads: Ints, tails: Ints, members: Ints, rest: Ints, place: Ints, stamp: Ints, pair: Ints
) -> bool:
    """Find two messages that two of the distinct orders put in different order; False if there are none.

    `pair` becomes the indices of x and y in one order, then of y and x in the other. The caller passes `stamp`
    filled with -1 before the first knot; a message belongs to one knot only, so it need not be cleared.
    """
    for k in range(different):
        for i in range(heads[k], tails[k]):
            place[rest[members[i]]] = i
            stamp[rest[members[i]]] = heads[k]
        for other in range(k):
            last = -1
            for i in range(heads[other], tails[other]):
                m = rest[members[i]]
                if stamp[m] != heads[k]:
                    continue
                if last >= 0 and place[rest[members[last]]] > place[m]:
                    pair[0] = members[last]
                    pair[1] = members[i]
                    pair[2] = members[place[m]]
                    pair[3] = members[place[rest[members[last]]]]
                    return True
                last = i
    return False


def find_cycle(members: Ints, rest: Ints, owner: Ints) -> list[tuple[int, int]]:
    """Find a shortest cycle through the knot's first message, breadth first; each delivery is visited once.

    Each pair of the result has two indices into `rest`, which are deliveries of one process.
    """
    chains: dict[int, list[int]] = {}
    deliveries_of: dict[int, list[tuple[int, int]]] = {}
    for i in members:
        chain = chains.setdefault(int(owner[i]), [])
        deliveries_of.setdefault(int(rest[i]), []).append((int(owner[i]), len(chain)))
        chain.append(int(i))
    goal = int(rest[members[0]])
    reached: dict[int, tuple[int, int]] = {}
    unexplored = {p: len(chain) for p, chain in chains.items()}
    queue = deque([goal])
    while queue:
        message = queue.popleft()
        for p, place in deliveries_of[message]:
            chain = chains[p]
            for i in chain[place + 1 : unexplored[p]]:
                following = int(rest[i])
                if following not in reached:
                    reached[following] = (chain[place], i)
                    queue.append(following)
            unexplored[p] = min(unexplored[p], place + 1)
        if goal in reached:
            break
    steps = [reached[goal]]
    while int(rest[steps[-1][0]]) != goal:
        steps.append(reached[int(rest[steps[-1][0]])])
    return steps[::-1]

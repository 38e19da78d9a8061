"""Total order, the classical pairwise one: two nodes that both deliver two messages deliver them in one order.

If the union of all local orders has no cycle, total order holds: `agree_up_to` decides that in one pass, taking
away, again and again, a message that stands first wherever it is still to come. What is left is in or behind
cycles. Two messages in different order lie in one knot (a strongly connected part of the union), so knots are
looked at one by one: a knot in which two processes disagree about two messages is a violation; one without is a
cycle longer than a pair, which the definition allows and which is reported as a finding.

Written for lists and, compiled, for numpy arrays.
"""

from __future__ import annotations

from collections import deque

from precede.witness.history import Ints


def agree_up_to(
    start: Ints, events: Ints, wanted: Ints, arrived: Ints, parked: Ints, after: Ints, cursor: Ints, ready: Ints
) -> int:
    """How many deliveries one common order explains. `cursor` (a copy of `start`) ends where the rest begins.

    `wanted` says how many processes deliver a message; `arrived` is 0 and `parked` -1 for every message.
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
        if arrived[m] == wanted[m]:
            taken += wanted[m]
            q = parked[m]
            while q >= 0:
                cursor[q] += 1
                ready[count] = q
                count += 1
                q = after[q]
    return taken


def gather_rest(start: Ints, events: Ints, cursor: Ints, rest: Ints, origin: Ints, owner: Ints) -> int:
    """The deliveries that no common order explained, process by process; how many there are."""
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
    """For every key the indices at which it stands, in their order. `place_start` is 0, with one entry more."""
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
    """Tarjan's strongly connected parts of 'delivered directly before'; how many. `knot` says whose is which.

    `seen` is 0 and `knot` -1 for every message.
    """
    counter, height, found = 0, 0, 0
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
                    knot[n] = found
                found += 1
    return found


def distinct_opinions(
    first: int, end: int, members: Ints, rest: Ints, owner: Ints, heads: Ints, tails: Ints, hashes: Ints
) -> int:
    """The different ways in which processes order one knot; how many, each at `members[heads[k]:tails[k]]`.

    `members[first:end]` are the knot's deliveries, process by process, as indices into `rest`.
    """
    different = 0
    head = first
    while head < end:
        tail = head
        check = 0
        while tail < end and owner[members[tail]] == owner[members[head]]:
            check = (check * 31 + rest[members[tail]]) & 0x3FFFFFFF
            tail += 1
        known = False
        for k in range(different):
            if hashes[k] != check or tails[k] - heads[k] != tail - head:
                continue
            known = True
            for i in range(tail - head):
                if rest[members[heads[k] + i]] != rest[members[head + i]]:
                    known = False
                    break
            if known:
                break
        if not known:
            heads[different] = head
            tails[different] = tail
            hashes[different] = check
            different += 1
        head = tail
    return different


def find_disagreement(
    different: int, heads: Ints, tails: Ints, members: Ints, rest: Ints, place: Ints, stamp: Ints, pair: Ints
) -> bool:
    """Do two opinions put two messages in different order? Then `pair` is where: x, y here, y, x there.

    `stamp` is -1 before the first knot; a message belongs to one knot only, so it need not be cleared.
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
    """A shortest cycle through the knot's first message: each step two indices into `rest`, of one process.

    Breadth first over messages; a process's deliveries after a visited one are visited in one step, each once.
    """
    chains: dict[int, list[int]] = {}
    stands: dict[int, list[tuple[int, int]]] = {}
    for i in members:
        chain = chains.setdefault(int(owner[i]), [])
        stands.setdefault(int(rest[i]), []).append((int(owner[i]), len(chain)))
        chain.append(int(i))
    goal = int(rest[members[0]])
    reached: dict[int, tuple[int, int]] = {}
    unexplored = {p: len(chain) for p, chain in chains.items()}
    queue = deque([goal])
    while queue:
        message = queue.popleft()
        for p, place in stands[message]:
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

"""Explains a violation: the messages it is about, the chain between them, the rows that prove it, a story."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import structs

from precede.core.instants import format_duration
from precede.core.natural_order import natural
from precede.witness.history import (
    EARLY,
    EXPIRED,
    LATE,
    MISPLACED,
    UNADDRESSED,
    Ghost,
    History,
    Ints,
    name_process,
    unmask,
)
from precede.witness.verdict import Offence, Order, Row, Violation

if TYPE_CHECKING:
    from precede.witness.checks.agreement import Lack
    from precede.witness.checks.engine import Engine

_NAMES_SHOWN = 4


def trace_back(
    late: int,
    begin: int,
    events: Ints,
    source: Ints,
    position: Ints,
    parent: Ints,
    through: Ints,
    explored: Ints,
    queue: Ints,
) -> bool:
    """Find a shortest causal chain from the message of row `late` to a message its process delivered before.

    `begin` is the first row of the process. The search is breadth first and backwards: from everything that the
    process delivered before `late` to everything that the sources had broadcast or delivered before they
    broadcast it. Results: `parent[m]` is the next message of the chain (-2 at its end), `through[m]` the row by
    which the parent's source knew m. The caller passes `parent` filled with -1 and `explored` as a copy of
    `start`; each row is visited once. Returns False if there is no chain.
    """
    goal = events[late] >> 1
    count = 0
    for e in range(begin, late):
        code = events[e]
        if code >= 0 and code & 1 and parent[code >> 1] == -1:
            parent[code >> 1] = -2
            through[code >> 1] = e
            queue[count] = code >> 1
            count += 1
    head = 0
    while head < count:
        m = queue[head]
        head += 1
        if m == goal:
            return True
        s = source[m]
        for e in range(explored[s], position[m]):
            code = events[e]
            if code >= 0 and parent[code >> 1] == -1:
                parent[code >> 1] = m
                through[code >> 1] = e
                queue[count] = code >> 1
                count += 1
        explored[s] = max(explored[s], position[m])
    return False


def kind_of(mark: int, order: Order) -> Offence:
    """Return the kind of violation that a row's mark bits stand for: the most serious one of several."""
    if mark & EARLY:
        return "before_broadcast"
    if mark & UNADDRESSED:
        return "not_addressed"
    if mark & LATE and order == "display":
        return "answer_first"
    if mark & LATE:
        return "fifo" if order == "fifo" else "multicast" if order == "multicast" else "causal"
    if mark & MISPLACED:
        return "answer_above"
    return "expired" if mark & EXPIRED else "duplicate"


def name_violation(history: History, event: int, kind: Offence) -> Violation:
    """Describe the violation that a check marked at row `event`, without evidence and story."""
    row = history.row(event)
    return Violation(
        kind=kind,
        node=row.node,
        incarnation=row.incarnation,
        step=row.step,
        message=row.message,
        group=history.group,
    )


def name_ghost(history: History, ghost: Ghost) -> Violation:
    """Describe a delivery without a broadcast as a violation, with its row and its story."""
    process = ghost.process
    node = history.nodes[int(history.node_of[process])]
    incarnation = int(history.incarnation[process])
    return Violation(
        kind="ghost",
        node=node,
        incarnation=incarnation,
        step=ghost.step,
        message=ghost.message,
        group=history.group,
        rows=(Row(node, incarnation, ghost.step, "delivered", ghost.message),),
        story=f"Node {history.process_name(process)} delivered {quoted(ghost.message)} at step {ghost.step}, "
        "but the log has no row that broadcasts it.",
    )


def explain(engine: Engine, history: History, event: int, kind: Offence) -> Violation:
    """Describe the violation that a check marked at row `event`, with the rows that prove it and its story."""
    if kind in ("fifo", "causal", "multicast", "answer_first"):
        return _explain_late(engine, history, event, kind)
    if kind == "answer_above":
        return _explain_misplaced(history, event)
    if kind == "duplicate":
        return _explain_duplicate(engine, history, event)
    message = unmask(int(history.events[event])) >> 1
    origin = int(history.position[message])
    rows = tuple(history.row(e) for e in ((origin, event) if origin >= 0 else (event,)))
    bare = name_violation(history, event, kind)
    process = history.process_name(history.process_of(event))
    if kind == "not_addressed":
        to = _addressees(history, message)
        story = f"Node {process} delivered {quoted(bare.message)}, which was addressed to {to}."
    elif kind == "expired":
        assert history.clock is not None
        assert history.deadline is not None
        clock, deadline = int(history.clock[event]), int(history.deadline[message])
        story = (
            f"Node {process} delivered {quoted(bare.message)} {format_duration(clock - deadline)} after its "
            f"deadline (deadline {deadline} us, the node's clock {clock} us)."
        )
    else:
        rows = tuple(history.row(e) for e in _way_to_broadcast(history, event, message))
        origin_name = history.process_name(int(history.source[message]))
        story = f"Node {process} delivered {quoted(bare.message)} before {origin_name} can have broadcast it."
    return _proven(bare, rows, f"{story}\n{listing(rows, {})}")


def _way_to_broadcast(history: History, event: int, message: int) -> list[int]:
    """Return rows from a delivery to the broadcast of its message, each of which precedes the next.

    A row precedes the later ones of its process, and a broadcast its deliveries. The search goes backwards from
    the broadcast: to the deliveries that its process had made, to their broadcasts, until one of them follows
    the delivery at its own process. It reads each process's rows at most once.
    """
    victim, end = history.process_of(event), int(history.position[message])
    after: dict[int, list[int]] = {end: []}
    explored: dict[int, int] = {}
    queue = [end]
    for broadcast in queue:
        process = history.process_of(broadcast)
        if process == victim and broadcast > event:
            way = [event, broadcast]
            while after[way[-1]]:
                way += after[way[-1]]
            return way
        begin = explored.get(process, int(history.start[process]))
        for e in range(begin, broadcast):
            code = unmask(int(history.events[e]))
            origin = int(history.position[code >> 1]) if code & 1 and code >= 0 else -1
            if origin >= 0 and origin not in after:
                after[origin] = [e, broadcast]
                queue.append(origin)
        explored[process] = max(begin, broadcast)
    raise AssertionError("a delivery before its broadcast without a ring")


def _explain_duplicate(engine: Engine, history: History, event: int) -> Violation:
    code = unmask(int(history.events[event]))
    process = history.process_of(event)
    before = engine.find(history.events, int(history.start[process]), event, code)
    rows = (history.row(before), history.row(event)) if before >= 0 else (history.row(event),)
    bare = name_violation(history, event, "duplicate")
    story = f"Node {history.process_name(process)} delivered {quoted(bare.message)} twice."
    return _proven(bare, rows, f"{story}\n{listing(rows, {})}")


def _explain_late(engine: Engine, history: History, event: int, kind: Offence) -> Violation:
    """Describe a late delivery: its chain m -> ... -> m' and the rows that prove each link of the chain."""
    process = history.process_of(event)
    late = int(history.events[event]) >> 1
    if kind == "fifo":
        chain, links = _fifo_chain(history, event, process, late)
    else:
        chain, links = _causal_chain(engine, history, event, process, late)
    first = engine.find(history.events, int(history.start[process]), event, 2 * chain[-1] + 1)
    verb = "showed" if kind == "answer_first" else "delivered"
    return _tell_chain(history, chain, links, [first, event], kind, (verb, "before", "too late"))


def _explain_misplaced(history: History, event: int) -> Violation:
    """Describe a delivery that put an answer above its question: the chain and the rows that prove it."""
    from precede.witness.checks.display import find_inversion

    chain, links, earlier = find_inversion(history, event)
    words = ("shows", "above", "inserted")
    return _tell_chain(history, chain, links, [earlier, event], "answer_above", words)


def _tell_chain(
    history: History,
    chain: Sequence[int],
    links: Sequence[int],
    deliveries: Sequence[int],
    kind: Offence,
    words: tuple[str, str, str],
) -> Violation:
    """Describe a violation by the chain from the question to the answer, and the two deliveries that break it.

    `words` are the verb, the relation of the answer to the question, and the remark at the last row.
    """
    names = [history.message_name(m) for m in chain]
    events: list[int] = []
    remarks: dict[int, str] = {}
    for m, link in zip(chain, [*links, -1], strict=True):
        if int(history.position[m]) >= 0:
            events.append(int(history.position[m]))
        if link >= 0 and link not in events:
            events.append(link)
    for at, (before, after) in enumerate(pairwise(names)):
        if int(history.position[chain[at + 1]]) >= 0:
            remarks[int(history.position[chain[at + 1]])] = f"so {quoted(before)} -> {quoted(after)}"
    events += deliveries
    remarks[deliveries[-1]] = words[2]
    rows = tuple(history.row(e) for e in events)
    bare = name_violation(history, deliveries[-1], kind)
    shown = [quoted(name) for name in names]
    who = history.process_name(history.process_of(deliveries[-1]))
    story = f"Node {who} {words[0]} {shown[-1]} {words[1]} {shown[0]}, but {' -> '.join(shown)}."
    story += f"\n{listing(rows, dict(enumerate(remarks.get(e, '') for e in events)))}"
    other = names[0] if names[-1] == bare.message else names[-1]
    return _proven(bare, rows, story, other, tuple(names))


def _fifo_chain(history: History, event: int, process: int, late: int) -> tuple[list[int], list[int]]:
    """Return the chain of a late delivery in FIFO order, and for its one link the row that proves it.

    The chain is the late message, then the first message of the same source that was broadcast later and
    delivered before. The row is the broadcast of the late message.
    """
    source = int(history.source[late])
    low, high = 2 * late + 1, 2 * int(history.base[source + 1])
    for e in range(int(history.start[process]), event):
        code = int(history.events[e])
        if code & 1 and low < code < high:
            return [late, code >> 1], [int(history.position[late])]
    raise AssertionError("a late delivery without a reason")


def _causal_chain(
    engine: Engine, history: History, event: int, process: int, late: int
) -> tuple[list[int], list[int]]:
    """Return the messages of a shortest causal chain, and for each link the row by which its source knew it."""
    parent, through = engine.ints(history.messages, -1), engine.ints(history.messages, -1)
    has_chain = engine.trace_back(
        *(event, int(history.start[process]), history.events, history.source, history.position),
        *(parent, through, engine.copy(history.start), engine.ints(history.messages)),
    )
    assert has_chain, "a late delivery without a chain"
    chain, links = [late], []
    while int(parent[chain[-1]]) >= 0:
        links.append(int(through[chain[-1]]))
        chain.append(int(parent[chain[-1]]))
    return chain, links


def explain_disagreement(engine: Engine, history: History, pair: tuple[int, int, int, int]) -> Violation:
    """Describe a violation of total order: some processes deliver x before y, others y before x.

    `pair` has the rows of x and y at one process, then of y and x at another. The story blames the minority.
    """
    x, y = int(history.events[pair[0]]) >> 1, int(history.events[pair[1]]) >> 1
    forward: list[tuple[int, int, int]] = []
    backward: list[tuple[int, int, int]] = []
    for p in range(history.processes):
        begin, end = int(history.start[p]), int(history.start[p + 1])
        of_x = engine.find(history.events, begin, end, 2 * x + 1)
        of_y = engine.find(history.events, begin, end, 2 * y + 1) if of_x >= 0 else -1
        if of_y >= 0:
            (forward if of_x < of_y else backward).append((p, of_x, of_y))
    minority, majority = sorted((forward, backward), key=len)
    first, second = (x, y) if minority is forward else (y, x)
    names = history.message_name(first), history.message_name(second)
    shown = quoted(names[0]), quoted(names[1])
    events = [*sorted(minority[0][1:]), *sorted(majority[0][1:])]
    rows = tuple(history.row(e) for e in events)
    story = (
        f"{_node_list(history, [p for p, *_ in minority])} delivered {shown[0]} before {shown[1]}; "
        f"{_node_list(history, [p for p, *_ in majority], begin=False)} delivered {shown[1]} before {shown[0]}."
    )
    bare = name_violation(history, events[1], "total")
    return _proven(bare, rows, f"{story}\n{listing(rows, {})}", names[0])


def explain_lack(history: History, lack: Lack) -> Violation:
    """Describe a violation of agreement: a member never delivered a message that another one delivered."""
    row = history.row(lack.event)
    node = history.nodes[int(history.node_of[lack.process])]
    last = int(history.start[lack.process + 1]) - 1
    other = history.process_name(history.process_of(lack.event))
    story = f"{other} delivered {quoted(row.message)}; {history.process_name(lack.process)} never did."
    return Violation(
        kind="agreement",
        node=node,
        incarnation=int(history.incarnation[lack.process]),
        step=int(history.steps[last]),
        message=row.message,
        group=history.group,
        rows=(row,),
        story=f"{story}\n{listing((row,), {})}",
    )


def describe_cycle(history: History, cycle: Sequence[tuple[int, int]]) -> str:
    """Describe a cycle of more than two messages in the union of the local orders. It is no violation."""
    parts = []
    for before, after in cycle:
        rows = history.row(before), history.row(after)
        process = history.process_name(history.process_of(before))
        parts.append(f"{quoted(rows[0].message)} before {quoted(rows[1].message)} at {process}")
    return (
        f"a cycle of {len(cycle)} messages: {', '.join(parts)}; no two nodes disagree about two messages, "
        "so it is no violation"
    )


def _proven(
    bare: Violation,
    rows: tuple[Row, ...],
    story: str,
    other: str | None = None,
    chain: tuple[str, ...] = (),
) -> Violation:
    return structs.replace(bare, other=other, chain=chain, rows=rows, story=story)


def quoted(name: str) -> str:
    """Return a message's name for a sentence. An id with spaces or unprintable characters is put in quotes."""
    return (
        name if name.isprintable() and not any(map(str.isspace, name)) else json.dumps(name, ensure_ascii=False)
    )


def listing(rows: Sequence[Row], remarks: dict[int, str]) -> str:
    """Format rows as aligned lines of text, each with its remark, if `remarks` has one for its index."""
    processes = [name_process(row.node, row.incarnation) for row in rows]
    width = max(map(len, processes))
    steps = max(len(str(row.step)) for row in rows)
    lines = []
    for at, row in enumerate(rows):
        did = "broadcasts" if row.event == "broadcast" else "delivers"
        remark = f"   ({remarks[at]})" if remarks.get(at) else ""
        lines.append(
            f"  {processes[at]:<{width}}  step {row.step:>{steps}}  {did} {quoted(row.message)}{remark}"
        )
    return "\n".join(lines)


def _addressees(history: History, message: int) -> str:
    """Return the destinations of a message, in words."""
    assert history.addresses is not None
    assert history.address_start is not None
    begin, end = int(history.address_start[message]), int(history.address_start[message + 1])
    names = sorted((history.nodes[int(code)] for code in history.addresses[begin:end]), key=natural)
    shown = ", ".join(names[:_NAMES_SHOWN]) + (
        f" and {len(names) - _NAMES_SHOWN} others" if len(names) > _NAMES_SHOWN else ""
    )
    return f"{shown} only" if names else "nobody"


def _node_list(history: History, processes: Sequence[int], begin: bool = True) -> str:
    """Name processes in words: `Nodes a, b and 3 others`, or with a small letter unless `begin`."""
    names = [history.process_name(p) for p in processes]
    word = "node" if len(names) == 1 else "nodes"
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} others" if len(names) > _NAMES_SHOWN else ""
    return f"{word.capitalize() if begin else word} {shown}{more}"

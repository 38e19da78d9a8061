"""A second witness, written from docs/concepts/orders.md alone: slow, plain, and without a line of the first.

It takes rows as mappings and follows the page word by word: sets of pairs, transitive closure, nothing clever.
A log that both witnesses judge differently shows a fault in one of them, or a sentence of the page that says
too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

Process = tuple[str, int]
Message = tuple[str, int, int]


@dataclass
class Judgement:
    """What the page says about a log. `rings` is true where no order of all rows exists.

    Whom to blame for a ring is a matter of taste: of such a log only the verdict is defined, not the counts.
    """

    verdict: str
    counts: dict[str, int]
    rings: bool = False


@dataclass
class Reading:
    """The rows of a log, by process."""

    rows: dict[Process, list[Mapping[str, Any]]] = field(default_factory=dict)
    broadcast: dict[Message, tuple[Process, Mapping[str, Any]]] = field(default_factory=dict)
    holed: set[Process] = field(default_factory=set)
    headless: set[Process] = field(default_factory=set)

    def first_deliveries(self, process: Process) -> list[tuple[Message, Mapping[str, Any]]]:
        """Return the deliveries of a process without repetitions, by step."""
        seen: dict[Message, Mapping[str, Any]] = {}
        for row in self.rows[process]:
            if row["kind"] == "delivered":
                seen.setdefault(message_of(row), row)
        return list(seen.items())


def message_of(row: Mapping[str, Any]) -> Message:
    """Return the message that a row is about."""
    return row["message_source"], row.get("message_incarnation") or 0, row["message_number"]


def read(rows: Sequence[Mapping[str, Any]]) -> Reading:
    """Sort rows by process and step, and find the holes in the steps."""
    log = Reading()
    for row in sorted(rows, key=lambda row: row["step"]):
        log.rows.setdefault((row["node"], row.get("incarnation") or 0), []).append(row)
        if row["kind"] == "broadcast":
            log.broadcast[message_of(row)] = ((row["node"], row.get("incarnation") or 0), row)
    for process, own in log.rows.items():
        steps = [row["step"] for row in own]
        earlier = [other for other in log.rows if other[0] == process[0] and other[1] < process[1]]
        may_begin = {0, 1}
        if earlier:
            may_begin.add(log.rows[max(earlier)][-1]["step"] + 1)
        if steps[0] not in may_begin:
            log.headless.add(process)
        if steps[0] not in may_begin or any(b - a != 1 for a, b in pairwise(steps)):
            log.holed.add(process)
    return log


def judge(
    rows: Sequence[Mapping[str, Any]],
    order: str,
    duplicates: str = "forbid",
    members: Sequence[str] = (),
    part: bool = False,
) -> Judgement:
    """Judge a log as the page says. `part`: it is one order of a log that has broadcasts and deadlines."""
    log = read(rows)
    if not log.broadcast and not part:
        for process in [one for one in log.rows if not log.first_deliveries(one)]:
            del log.rows[process]
        return judge_deliveries_alone(log, order, duplicates, members)
    counts = integrity(log, duplicates, members)
    rings = has_ring(log)
    before = happened_before(log)
    if order == "fifo":
        counts["fifo"] = late(log, lambda m, n: m[:2] == n[:2] and comes_first(log, m, n))
    elif order == "total":
        counts["total"] = disagreements(log)
        counts["agreement"] = lacks(log, members)
    else:
        counts["multicast" if order == "multicast" else "causal"] = late(log, lambda m, n: (m, n) in before)
    if order == "delta":
        counts["expired"] = expired(log)
    counts = {kind: count for kind, count in counts.items() if count}
    if counts or rings:
        return Judgement("violated", counts, rings)
    return Judgement("unknown" if is_open(log, order, members, part) else "holds", {})


def judge_deliveries_alone(log: Reading, order: str, duplicates: str, members: Sequence[str]) -> Judgement:
    """Judge a log without broadcast rows: repetitions, FIFO by number, total order and agreement."""
    counts = {"duplicate": 0, "fifo": 0, "total": 0, "agreement": 0}
    for process, own in log.rows.items():
        deliveries = [message_of(row) for row in own if row["kind"] == "delivered"]
        once = [message for message, _ in log.first_deliveries(process)]
        counts["duplicate"] += len(deliveries) - len(once) if duplicates == "forbid" else 0
        if order == "fifo":
            counts["fifo"] += sum(
                any(message[:2] == other[:2] and message[2] < other[2] for other in once[:place])
                for place, message in enumerate(once)
            )
    if order == "total":
        counts["total"] = disagreements(log)
        counts["agreement"] = lacks(log, members)
    counts = {kind: count for kind, count in counts.items() if count}
    if counts:
        return Judgement("violated", counts)
    return Judgement("unknown" if is_open(log, order, members) else "holds", {})


def may_lie_in_a_gap(log: Reading, message: Message) -> bool:
    """Return whether the broadcast of a message can be among the missing rows of its source.

    Rows missing before an incarnation's first row can be the last ones of the incarnation before it, also of
    one that has no row left.
    """
    source = message[:2]
    later = [process for process in log.rows if process[0] == source[0] and process[1] > source[1]]
    return source in log.holed or (bool(later) and min(later) in log.headless)


def integrity(log: Reading, duplicates: str, members: Sequence[str]) -> dict[str, int]:
    """Count the deliveries that break integrity, those in rings apart."""
    counts = dict.fromkeys(("ghost", "before_broadcast", "duplicate", "not_addressed"), 0)
    nodes = {node for node, _ in log.rows}
    for process, own in log.rows.items():
        delivered: set[Message] = set()
        for row in own:
            if row["kind"] != "delivered":
                continue
            message = message_of(row)
            if message not in log.broadcast:
                known = message[0] in nodes
                stranger = bool(members) and message[0] not in members
                if (known and not may_lie_in_a_gap(log, message)) or (not known and stranger):
                    counts["ghost"] += 1
                continue
            if message in delivered:
                counts["duplicate"] += duplicates == "forbid"
                continue
            delivered.add(message)
            source, origin = log.broadcast[message]
            if source == process and row["step"] < origin["step"]:
                counts["before_broadcast"] += 1
            if source != process and not is_addressed(origin, process):
                counts["not_addressed"] += 1
    return counts


def is_addressed(origin: Mapping[str, Any], process: Process) -> bool:
    """Return whether a message, given by its broadcast row, is for the node of a process."""
    return origin.get("destinations") is None or process[0] in origin["destinations"]


def has_ring(log: Reading) -> bool:
    """Return whether no order of all rows keeps local orders and puts each broadcast before its deliveries.

    Deliveries that precede the broadcast at the source itself are counted by `integrity` and left out here.
    """
    done = dict.fromkeys(log.rows, 0)
    out: set[Message] = set()
    moved = True
    while moved:
        moved = False
        for process, own in log.rows.items():
            while done[process] < len(own):
                row = own[done[process]]
                if row["kind"] == "delivered":
                    origin = log.broadcast.get(message_of(row))
                    if origin is not None and origin[0] != process and message_of(row) not in out:
                        break
                elif row["kind"] == "broadcast":
                    out.add(message_of(row))
                done[process] += 1
                moved = True
    return any(done[process] < len(own) for process, own in log.rows.items())


def happened_before(log: Reading) -> set[tuple[Message, Message]]:
    """Return all pairs m -> m', by the three rules of the page."""
    past: dict[Message, set[Message]] = {}
    for message, (source, origin) in log.broadcast.items():
        earlier = [row for row in log.rows[source] if row["step"] < origin["step"] and row["kind"] != "other"]
        past[message] = {message_of(row) for row in earlier if message_of(row) in log.broadcast} - {message}
    grown = True
    while grown:
        grown = False
        for message, known in past.items():
            more = set().union(*(past[other] for other in known)) - known
            if more:
                past[message] = known | more
                grown = True
    return {(first, then) for then, known in past.items() for first in known}


def comes_first(log: Reading, message: Message, other: Message) -> bool:
    """Return whether one source broadcast `message` before `other`."""
    step: int = log.broadcast[message][1]["step"]
    return step < int(log.broadcast[other][1]["step"])


def late(log: Reading, precedes: Any) -> int:
    """Count the deliveries of a message after one that it precedes."""
    count = 0
    for process in log.rows:
        held: list[Message] = []
        for message, row in log.first_deliveries(process):
            if message not in log.broadcast:
                continue
            source, origin = log.broadcast[message]
            if source == process and row["step"] < origin["step"]:
                continue
            count += any(precedes(message, other) for other in held)
            held.append(message)
    return count


def expired(log: Reading) -> int:
    """Count the deliveries after their deadline, by the delivering node's clock."""
    count = 0
    for process in log.rows:
        for message, row in log.first_deliveries(process):
            if message not in log.broadcast:
                continue
            source, origin = log.broadcast[message]
            deadline = origin.get("deadline_us")
            early = source == process and row["step"] < origin["step"]
            count += not early and deadline is not None and row["clock_us"] > deadline
    return count


def sequences(log: Reading) -> dict[Process, list[Message]]:
    """Return what each process delivered, in order: messages with a broadcast, if the log has broadcasts."""
    result = {}
    for process in log.rows:
        own = []
        for message, row in log.first_deliveries(process):
            source, origin = log.broadcast.get(message, (None, row))
            if (source or not log.broadcast) and (source != process or row["step"] > origin["step"]):
                own.append(message)
        result[process] = own
    return result


def disagreements(log: Reading) -> int:
    """Count the violations of total order: the messages of each knot with a disagreement, less one a knot."""
    orders = sequences(log)
    after: dict[Message, set[Message]] = {}
    pairs: set[tuple[Message, Message]] = set()
    for own in orders.values():
        for first, then in combinations(own, 2):
            after.setdefault(first, set()).add(then)
            pairs.add((first, then))
    grown = True
    while grown:
        grown = False
        for first, known in after.items():
            more = set().union(*(after.get(other, set()) for other in known)) - known
            if more:
                after[first] = known | more
                grown = True
    knots = {
        frozenset(m for m in after if m in known and message in after[m])
        for message, known in after.items()
        if message in known
    }
    return sum(
        len(knot) - 1 for knot in knots if any((b, a) in pairs for a, b in pairs if a in knot and b in knot)
    )


def lacks(log: Reading, members: Sequence[str]) -> int:
    """Count each correct member and message that it lacks although a correct member delivered it."""
    orders = sequences(log)
    correct = [
        processes[0]
        for member in members
        if len(processes := [process for process in log.rows if process[0] == member]) == 1
    ]
    wanted = {message for process in correct for message in orders[process]}
    return sum(len(wanted - set(orders[process])) for process in correct if process not in log.holed)


def is_open(log: Reading, order: str, members: Sequence[str], part: bool = False) -> bool:
    """Return whether something is missing that the order needs."""
    own = [row for rows in log.rows.values() for row in rows]
    delivered = [row for row in own if row["kind"] == "delivered"]
    sources = {row["message_source"] for row in delivered}
    nodes = {node for node, _ in log.rows}
    return bool(
        log.holed
        or not delivered
        or (order in ("causal", "multicast", "delta") and not log.broadcast and not part)
        or (order == "multicast" and not any("destinations" in row for row in own))
        or (order == "delta" and not part and not any(row.get("deadline_us") is not None for row in own))
        or ((log.broadcast or part) and not members and sources - nodes)
        or set(members) - nodes
    )

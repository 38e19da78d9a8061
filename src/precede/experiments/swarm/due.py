"""Which messages are due after a world of contacts has healed, computed from the event log alone.

After healing all nodes are in contact, but some messages may be lost: no node carries them any more, or they
expire first. A message is due at a node if some node carries it, if it expires late enough to reach all nodes,
and if each of its predecessors that the node has not delivered is due there too, or expires before it and
before the world ends. With `lazy_expiry` the last does not help.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from precede.core.instants import Duration, Instant, parse_duration
from precede.experiments.run import Prepared
from precede.experiments.swarm.events import Message, Process, events_of, message_of
from precede.experiments.swarm.plan import Plan
from precede.experiments.swarm.swarm import up_at_end
from precede.sim.hosted_node import HostedNode

_NEVER: Final = 1 << 62


class _Facts(Struct):
    """Facts from the event log. Sets of messages are bit masks; `place` maps a message to its bit.

    `lazy`: as printed in the paper, a node notices that a predecessor has expired only when a waiting message
    does (`lazy_expiry`).
    """

    place: dict[Message, int]
    broadcast_at: list[Instant]
    deadline: list[Instant]
    past: list[int]
    delivered: dict[Process, int]
    carried: int
    destinations: list[list[str] | None]
    lazy: bool


def carried_missing(
    plan: Plan,
    prepared: Prepared,
    log: pa.Table,
    spreading: Duration,
    carried: Collection[Message] | None = None,
    newcomers: bool = True,
    volatile: bool = False,
) -> list[str]:
    """List messages that are due at a node which is up at the end, and that it did not deliver.

    `spreading` is the longest time that all carried messages need to reach all nodes, from the instant at which
    the world heals or, for a later message, from its broadcast. `carried` are the messages that some node gives
    to every destination; without it, all that were carried when the world healed. Without `newcomers`, nothing
    is due at a node that lost its store. `volatile`: nodes save only their own messages, so a crash loses what
    others sent.
    """
    running = up_at_end(prepared)
    facts = _read(plan, log, running, volatile)
    if carried is not None:
        facts.carried = sum(1 << place for message, place in facts.place.items() if message in carried)
    latest = [_latest_clock(running.values(), max(plan.heal_at, at) + spreading) for at in facts.broadcast_at]
    skew = parse_duration(plan.run.options.get("skew", "0s"))
    missing = []
    for process, hosted in running.items():
        if process[1] and not newcomers:
            continue
        have = facts.delivered.get(process, 0)
        due = _due(facts, have, _addressed(facts, process[0]), latest, hosted.clock_at(plan.end) - skew)
        missing += [
            f"{process[0]} never delivered {message[0]}:{message[2]}"
            for message, place in facts.place.items()
            if due >> place & 1 and not have >> place & 1
        ]
    return missing


def offered_missing(plan: Plan, prepared: Prepared, log: pa.Table, spreading: Duration) -> list[str]:
    """List messages that are due and not delivered, if each source sends its own ones until they are confirmed.

    These are the messages of incarnations that are up at the end. Nothing is due at a node that lost its store:
    what its earlier incarnation has confirmed is not sent again.
    """
    up = up_at_end(prepared)
    messages = [message_of(row) for row in events_of(log, "broadcast")]
    offered = {message: None for message in messages if message[:2] in up}
    return carried_missing(plan, prepared, log, spreading, offered, newcomers=False)


def _addressed(facts: _Facts, node: str) -> int:
    """Return the messages that are for a node, as a bit mask."""
    return sum(1 << place for place, to in enumerate(facts.destinations) if to is None or node in to)


def _latest_clock(nodes: Iterable[HostedNode], at: Instant) -> Instant:
    """Return what the clock that is furthest ahead shows at an instant."""
    return max((node.clock_at(at) for node in nodes), default=0)


def _due(facts: _Facts, have: int, addressed: int, latest: Sequence[Instant], end: Instant) -> int:
    """Return the messages due at a node that has delivered `have` of those that are for it; all are bit masks.

    `latest` is, for each message, the latest reading of a clock at which it may arrive. A message that expires
    by then is not due. What has a deadline before `end` expires at this node before the world ends. One pass is
    enough: predecessors come first in the log.
    """
    due = 0
    for place, deadline in enumerate(facts.deadline):
        if not facts.carried & addressed & 1 << place or deadline <= latest[place]:
            continue
        open_ = facts.past[place] & addressed & ~have & ~due
        if not open_ or (not facts.lazy and _expire_before(facts, open_, min(deadline, end))):
            due |= 1 << place
    return due


def _expire_before(facts: _Facts, messages: int, deadline: Instant) -> bool:
    return all(facts.deadline[p] < deadline for p in range(messages.bit_length()) if messages >> p & 1)


def _just_received(fresh: Mapping[Process, tuple[Instant, int]], process: Process, at: Instant) -> int:
    """Return the messages that a process received at this instant, which a crash at the same may lose."""
    when, messages = fresh.get(process, (-1, 0))
    return messages if when == at else 0


def _read(plan: Plan, log: pa.Table, running: Mapping[Process, Any], volatile: bool) -> _Facts:
    facts = _Facts({}, [], [], [], {}, 0, [], bool(plan.run.options.get("lazy_expiry")))
    known: dict[Process, int] = {}
    held: dict[Process, int] = {}
    own: dict[Process, int] = {}
    fresh: dict[Process, tuple[Instant, int]] = {}
    lost = 0
    for row in events_of(log, "crashed", "broadcast", "received", "delivered", "discarded"):
        process = (row["node"], row["incarnation"])
        if row["kind"] == "crashed":
            held[process] = held.get(process, 0) & ~_just_received(fresh, process, row["at_us"])
            if volatile:
                held[process] &= own.get(process, 0)
            continue
        message = message_of(row)
        if row["kind"] == "broadcast":
            facts.place[message] = len(facts.place)
            facts.broadcast_at.append(row["at_us"])
            facts.deadline.append(_NEVER if row["deadline_us"] is None else row["deadline_us"])
            facts.past.append(known.get(process, 0))
            facts.destinations.append(row["destinations"])
        if message not in facts.place:
            continue  # never broadcast: the witness reports it, and it is due nowhere
        bit = 1 << facts.place[message]
        if row["kind"] == "broadcast":
            known[process] = known.get(process, 0) | bit
            own[process] = own.get(process, 0) | bit
        if row["kind"] in ("broadcast", "received"):
            if row["at_us"] < plan.heal_at:
                held[process] = held.get(process, 0) | bit
                if row["kind"] == "received":
                    fresh[process] = (row["at_us"], _just_received(fresh, process, row["at_us"]) | bit)
        elif row["kind"] == "delivered":
            known[process] = known.get(process, 0) | bit | facts.past[facts.place[message]]
            facts.delivered[process] = facts.delivered.get(process, 0) | bit
        elif row["reason"] in ("expired_cached", "evicted"):
            if row["reason"] == "evicted" and row["at_us"] >= plan.heal_at:
                lost |= bit
            elif row["at_us"] < plan.heal_at:
                held[process] = held.get(process, 0) & ~bit
    for process in running:
        facts.carried |= held.get(process, 0)
    facts.carried &= ~lost
    return facts

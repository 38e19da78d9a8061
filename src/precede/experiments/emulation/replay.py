"""A run again, with what was measured when real nodes lived through it: links, transfer times, messages.

Nodes, stays, crashes and deadlines are the scenario's own. The n-th packet that an end of a link sends takes as
long as its n-th packet took in the emulation (`sim.measured`); a message is said when it really was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.plan import Plan
from precede.core.transfers import DOWN, SENT, UP, LinkEnd, Told, Transfer
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Replay, Run, prepare
from precede.sim.networks.measured import MeasuredNetwork
from precede.sim.workload import Birth, Workload

Hop = tuple[Instant, NodeId]
"""When a message first came to a node, and from whom."""

Hops = dict[tuple[NodeId, MessageId], Hop]


class Measured(Struct):
    """What real nodes told, put together: ends of links, and how each message came to each node."""

    ends: list[LinkEnd]
    hops: Hops
    packets: int = 0
    arrived: int = 0

    def times(self) -> list[int]:
        """What every packet took that came out."""
        return sorted(one.time for end in self.ends for one in end.sent if one.time is not None)


class Again(Struct):
    """The simulation with measured times: its log, how messages travelled, what the network counted."""

    events: pa.Table
    hops: Hops
    counters: Mapping[str, int]


def put_together(told: Iterable[Told]) -> Measured:
    """Both ends of each link, life by life; the n-th packet in is the n-th packet out."""
    lives, hops, packets = _lives(told)
    ends = []
    arrived = 0
    for (node, peer), own in lives.items():
        others = lives.get((peer, node), [])
        for life in own:
            received = _other_end(life, others)
            arrived += min(len(received), len(life.sent))
            ends.append(_end(node, peer, life, received))
    return Measured(sorted(ends, key=lambda end: (end.up, end.node, end.peer)), hops, packets, arrived)


def run_again(run: Run, plan: Plan, measured: Measured, emulated: pa.Table) -> Again:
    """The simulation of the same scenario, with measured instants in the place of its network's."""
    hops: Hops = {}

    def arrived(at: Instant, to: NodeId, sender: NodeId, packet: Packet) -> None:
        if packet.messages:
            for id in getattr(packet, "ids", ()):
                hops.setdefault((to, id), (at, sender))

    sink = TableSink()
    network = MeasuredNetwork(measured.ends, arrived)
    replay = Replay(network, Workload(script=_births(plan, emulated)), _left(plan, emulated))
    prepared = prepare(run, sink, replay=replay)
    prepared.world.run(plan.end)
    prepared.recorder.flush()
    return Again(sink.events(), hops, network.counters())


class _Life:
    """One life of a link at one end."""

    __slots__ = ("down", "received", "sent", "up")

    def __init__(self, up: Instant) -> None:
        self.up = up
        self.down: Instant | None = None
        self.sent: list[Told] = []
        self.received: list[Instant] = []


def _lives(told: Iterable[Told]) -> tuple[dict[tuple[NodeId, NodeId], list[_Life]], Hops, int]:
    """In the order in which each node told it, which is that of its own clock."""
    lives: dict[tuple[NodeId, NodeId], list[_Life]] = {}
    hops: Hops = {}
    packets = 0
    for one in sorted(told, key=lambda one: one.at):
        own = lives.setdefault((one.node, one.peer), [])
        if one.what == UP:
            own.append(_Life(one.at))
            continue
        if not own or own[-1].down is not None:
            continue  # told by a process that was killed before it told of the link
        if one.what == DOWN:
            own[-1].down = one.at
        elif one.what == SENT:
            packets += 1
            own[-1].sent.append(one)
        else:
            own[-1].received.append(one.at)
            for id in one.ids:
                hops.setdefault((one.node, id), (one.at, one.peer))
    return lives, hops, packets


def _other_end(life: _Life, others: Sequence[_Life]) -> list[Instant]:
    """When what was sent in this life came out: in the life of the other end that shares most time with it."""
    best, shared = None, 0
    for other in others:
        end = min(_or_last(life.down), _or_last(other.down))
        common = end - max(life.up, other.up)
        if common > shared:
            best, shared = other, common
    return best.received if best is not None else []


def _or_last(at: Instant | None) -> Instant:
    return 1 << 62 if at is None else at


def _end(node: NodeId, peer: NodeId, life: _Life, received: Sequence[Instant]) -> LinkEnd:
    sent: list[Transfer] = []
    after: Instant | None = None  # when the next message left
    for number in range(len(life.sent) - 1, -1, -1):
        told = life.sent[number]
        time = max(1, received[number] - told.at) if number < len(received) else None
        gap = time if time is not None else 1
        if after is not None and time is not None:
            gap = min(time, after - told.at)
        if told.kind == "messages":
            after = told.at
        sent.append(Transfer(told.at, time, gap, (told.kind, told.ids)))
    return LinkEnd(node, peer, life.up, life.down, sent[::-1])


def _left(plan: Plan, emulated: pa.Table) -> dict[NodeId, list[Instant]]:
    """When the real nodes left: after all that they said, also where that was late."""
    number = {name: node for node, name in enumerate(plan.names)}
    gone = emulated.filter(pc.equal(emulated["kind"].cast(pa.string()), "left"))
    left: dict[NodeId, list[Instant]] = {}
    for row in gone.select(["node", "at_us"]).to_pylist():
        left.setdefault(number[row["node"]], []).append(row["at_us"] + 1)
    return left


def _births(plan: Plan, emulated: pa.Table) -> list[Birth]:
    """What was said, when the real nodes took it."""
    number = {name: node for node, name in enumerate(plan.names)}
    born = emulated.filter(pc.equal(emulated["kind"].cast(pa.string()), "broadcast"))
    rows: list[dict[str, Any]] = born.select(["node", "at_us", "message_number"]).to_pylist()
    planned: dict[NodeId, list[Any]] = {}
    for said in plan.said:
        planned.setdefault(said.node, []).append(said)
    births = []
    for row in sorted(rows, key=lambda row: (row["at_us"], row["node"], row["message_number"])):
        node = number[row["node"]]
        said = planned[node][row["message_number"] - 1]
        births.append(Birth(row["at_us"], node, said.to, said.lifetime, bytes(said.size)))
    return births

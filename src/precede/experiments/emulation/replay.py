"""Simulates a run again with the links, transfer times and broadcasts that an emulation measured.

Nodes, stays, crashes and deadlines are those of the scenario. The n-th packet that one end of a link sends
takes as long as its n-th packet took in the emulation (`sim.networks.measured`). A message is broadcast when
the real node broadcast it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.plan import Plan
from precede.core.transfers import DOWN, SENT, UP, LinkEnd, LinkRecord, Transfer
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Replay, Run, prepare
from precede.sim.networks.measured import MeasuredNetwork
from precede.sim.workload import Birth, Workload
from precede.sim.world import World

Hop = tuple[Instant, NodeId]
"""When a node first received a message, and from which node."""

Hops = dict[tuple[NodeId, MessageId], Hop]


class Measured(Struct):
    """The measurements of all real nodes: ends of links, and the hop by which a node got a message."""

    ends: list[LinkEnd]
    hops: Hops
    packets: int = 0
    arrived: int = 0

    def times(self) -> list[int]:
        """Return the transfer times of all packets that arrived, sorted."""
        return sorted(one.time for end in self.ends for one in end.sent if one.time is not None)


class Again(Struct):
    """The result of the simulation with measured times: event log, hops, counters of the network."""

    events: pa.Table
    hops: Hops
    counters: Mapping[str, int]


def put_together(records: Iterable[LinkRecord]) -> Measured:
    """Join the records of both ends of each link: the n-th packet received is the n-th packet sent."""
    periods, hops, packets = _periods(records)
    ends = []
    arrived = 0
    for (node, peer), own in periods.items():
        others = periods.get((peer, node), [])
        for period in own:
            received = _other_end(period, others)
            arrived += min(len(received), len(period.sent))
            ends.append(_end(node, peer, period, received))
    return Measured(sorted(ends, key=lambda end: (end.up, end.node, end.peer)), hops, packets, arrived)


def run_again(run: Run, plan: Plan, measured: Measured, emulated: pa.Table) -> Again:
    hops: Hops = {}

    def arrived(at: Instant, to: NodeId, sender: NodeId, packet: Packet) -> None:
        if packet.messages:
            for id in getattr(packet, "ids", ()):
                hops.setdefault((to, id), (at, sender))

    sink = TableSink()
    network = MeasuredNetwork(measured.ends, arrived)
    replay = Replay(network, Workload(script=_births(plan, emulated)), _left(plan, emulated))
    prepared = prepare(run, sink, replay=replay, make_world=World)
    prepared.world.run(plan.end)
    prepared.recorder.flush()
    return Again(sink.events(), hops, network.counters())


class _Period:
    """One period in which a link is up, at one end."""

    __slots__ = ("down", "received", "sent", "up")

    def __init__(self, up: Instant) -> None:
        self.up = up
        self.down: Instant | None = None
        self.sent: list[LinkRecord] = []
        self.received: list[Instant] = []


def _periods(records: Iterable[LinkRecord]) -> tuple[dict[tuple[NodeId, NodeId], list[_Period]], Hops, int]:
    """Return the periods of each link end, the hops and the number of sent packets."""
    periods: dict[tuple[NodeId, NodeId], list[_Period]] = {}
    hops: Hops = {}
    packets = 0
    for one in sorted(records, key=lambda one: one.at):
        own = periods.setdefault((one.node, one.peer), [])
        if one.what == UP:
            own.append(_Period(one.at))
            continue
        if not own or own[-1].down is not None:
            continue  # the process was killed before it reported the link
        if one.what == DOWN:
            own[-1].down = one.at
        elif one.what == SENT:
            packets += 1
            own[-1].sent.append(one)
        else:
            own[-1].received.append(one.at)
            for id in one.ids:
                hops.setdefault((one.node, id), (one.at, one.peer))
    return periods, hops, packets


def _other_end(period: _Period, others: Sequence[_Period]) -> list[Instant]:
    """Return when the other end received the packets of a period, in its period that overlaps longest."""
    best_period, shared = None, 0
    for other in others:
        end = min(_or_last(period.down), _or_last(other.down))
        common = end - max(period.up, other.up)
        if common > shared:
            best_period, shared = other, common
    return best_period.received if best_period is not None else []


def _or_last(at: Instant | None) -> Instant:
    return 1 << 62 if at is None else at


def _end(node: NodeId, peer: NodeId, period: _Period, received: Sequence[Instant]) -> LinkEnd:
    sent: list[Transfer] = []
    after: Instant | None = None  # when the next packet with messages was sent
    for number in range(len(period.sent) - 1, -1, -1):
        record = period.sent[number]
        time = max(1, received[number] - record.at) if number < len(received) else None
        gap = time if time is not None else 1
        if after is not None and time is not None:
            gap = min(time, after - record.at)
        if record.kind == "messages":
            after = record.at
        sent.append(Transfer(record.at, time, gap, (record.kind, record.ids)))
    return LinkEnd(node, peer, period.up, period.down, sent[::-1])


def _left(plan: Plan, emulated: pa.Table) -> dict[NodeId, list[Instant]]:
    """Return when each real node left, plus one microsecond: that is after everything the node sent."""
    number = {name: node for node, name in enumerate(plan.names)}
    departures = emulated.filter(pc.equal(emulated["kind"].cast(pa.string()), "left"))
    left: dict[NodeId, list[Instant]] = {}
    for row in departures.select(["node", "at_us"]).to_pylist():
        left.setdefault(number[row["node"]], []).append(row["at_us"] + 1)
    return left


def _births(plan: Plan, emulated: pa.Table) -> list[Birth]:
    """Return the broadcasts that real nodes accepted, at the instants when they accepted them."""
    number = {name: node for node, name in enumerate(plan.names)}
    born = emulated.filter(pc.equal(emulated["kind"].cast(pa.string()), "broadcast"))
    rows: list[dict[str, Any]] = born.select(["node", "at_us", "message_number"]).to_pylist()
    planned: dict[NodeId, list[Any]] = {}
    for broadcast in plan.broadcasts:
        planned.setdefault(broadcast.node, []).append(broadcast)
    births = []
    for row in sorted(rows, key=lambda row: (row["at_us"], row["node"], row["message_number"])):
        node = number[row["node"]]
        broadcast = planned[node][row["message_number"] - 1]
        births.append(Birth(row["at_us"], node, broadcast.to, broadcast.lifetime, bytes(broadcast.size)))
    return births

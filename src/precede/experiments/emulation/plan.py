"""Makes the plan of an emulation: simulates a run and records what happens to its nodes from outside.

In worlds that report links to their nodes (contacts, cells) the plan has these links. In other worlds it has
the pairs of nodes that hear each other at the beginning.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from precede.core.effects import RADIO, Medium
from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.plan import LinkChange, Plan, PlannedBroadcast, Stay
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.experiments.worlds.kinds import BuiltWorld
from precede.protocols import registry
from precede.sim.networks.flood import FloodRadio
from precede.sim.world import World


def plan_of(run: Run, entry: registry.Entry[Any] | None = None) -> tuple[Plan, pa.Table]:
    """Simulate a run; return its plan, and the event log that the simulation wrote."""
    _check_links_are_reported(run)
    sink = TableSink()
    watch = _Watch()
    prepared = prepare(run, sink, entry, watch.begin, make_world=World)
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    built, events = prepared.built, sink.events()
    options = dict(run.options)
    if prepared.entry.ordering is not None:
        options.setdefault("dissemination", registry.usual_dissemination(str(run.world["kind"])))
    plan = Plan(
        run_id=run.id,
        protocol=run.protocol,
        order=prepared.entry.order,
        options=msgspec.to_builtins(options),
        names=built.names,
        roles=tuple(built.role(node) for node in range(len(built.names))),
        members=built.all_members(),
        stays=_stays(events, {name: node for node, name in enumerate(built.names)}),
        links=tuple(watch.links) if _reports_links(run) else _constant_links(built),
        broadcasts=tuple(watch.broadcasts),
        end=prepared.world.now,
        linger=built.linger,
    )
    return plan, events


class _Watch:
    """Records the broadcasts of the workload and the link changes of the network."""

    def __init__(self) -> None:
        self.broadcasts: list[PlannedBroadcast] = []
        self.links: list[LinkChange] = []
        self._known: dict[tuple[NodeId, NodeId, Medium], bool] = {}

    def begin(self, world: World) -> None:
        self._world = world
        world.on_broadcast = self._say
        world.on_link = self._change

    def _say(
        self, node: NodeId, payload: bytes, to: tuple[NodeId, ...] | None, lifetime: Duration | None
    ) -> None:
        self.broadcasts.append(PlannedBroadcast(self._world.now, node, len(payload), to, lifetime))

    def _change(self, node: NodeId, peer: NodeId, over: Medium, up: bool) -> None:
        """Record a link change only once, although most worlds report it at both ends."""
        pair = (min(node, peer), max(node, peer), over)
        if self._known.get(pair, False) != up:
            self._known[pair] = up
            self.links.append(LinkChange(self._world.now, pair[0], pair[1], up, over))


def _stays(events: pa.Table, number: Mapping[str, NodeId]) -> tuple[Stay, ...]:
    rows = events.select(["node", "kind", "at_us"]).to_pylist()
    stays: list[Stay] = []
    begun: dict[NodeId, Instant] = {}
    for row in rows:
        node = number[row["node"]]
        if row["kind"] == "started":
            begun[node] = row["at_us"]
        elif row["kind"] in ("left", "crashed") and node in begun:
            stays.append(Stay(node, begun.pop(node), row["at_us"], row["kind"]))
    stays += [Stay(node, start) for node, start in begun.items()]
    return tuple(sorted(stays, key=lambda stay: (stay.start, stay.node)))


def _check_links_are_reported(run: Run) -> None:
    """Raise `BadInput` for a world whose links change without a report: the plan could not have them."""
    keys = [key for key in ("speed", "trace", "partitions") if run.world.get(key)]
    if keys and not _reports_links(run):
        cause = f"links of a {run.world['kind']} world with {' and '.join(keys)} change without a report"
        raise BadInput(f"{run.scenario or 'the scenario'}: {cause}; real nodes take contacts or cells instead")


def _reports_links(run: Run) -> bool:
    kind = run.world["kind"]
    return kind in ("contacts", "cellular") or (kind == "point_to_point" and bool(run.world.get("link_events")))


def _constant_links(built: BuiltWorld) -> tuple[LinkChange, ...]:
    network = built.network
    nodes = range(len(built.names))
    if isinstance(network, FloodRadio):
        pairs = [(a, b) for a in nodes for b in network.in_range(a) if a < b]
    else:
        pairs = [(a, b) for a in nodes for b in nodes if a < b]
    return tuple(LinkChange(0, a, b, True, RADIO) for a, b in pairs)

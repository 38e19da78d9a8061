"""Explains deliveries that only the emulation has, or only the simulation with its measured times.

A message reaches a node over one hop. If the sender of that hop lacks the message in the other world, the
difference follows from an earlier one. Otherwise the hop happened close to the end of the contact, of the
lifetime or of the run, which no two runs hit to the microsecond. Close means: within the 99th percentile of
transfer times. `margin` is the distance to that end, in seconds of the scenario.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.plan import Plan
from precede.core.transfers import LinkEnd
from precede.experiments.emulation.replay import Again, Hops, Measured

KINDS = {
    "follows": "the sender of the hop lacks it too",
    "edge of a contact": "it was transferred just before the contact ended",
    "edge of a lifetime": "it was transferred or waited for just before its lifetime ended",
    "edge of the run": "it was transferred just before the run ended",
    "edge of a stay": "it was broadcast just before its source left",
    "unexplained": "none of these",
}


class Difference(Struct, frozen=True):
    """A delivery that only one of the two worlds has, and why."""

    node: str
    source: str
    number: int
    only_in: str
    kind: str
    via: str = ""
    margin_s: float | None = None


class _World(Struct):
    """Facts about one of the two worlds, from its event log and its hops."""

    name: str
    delivered: dict[tuple[NodeId, MessageId], Instant]
    received: dict[tuple[NodeId, MessageId], Instant]
    given_up: dict[tuple[NodeId, MessageId], str]
    deadlines: dict[MessageId, Instant | None]
    hops: Hops


def explained(plan: Plan, measured: Measured, again: Again, emulated: pa.Table) -> list[Difference]:
    """Explain every delivery that only one world has: first the emulation's, each by node and message."""
    number = {name: node for node, name in enumerate(plan.names)}
    real = _world("emulation", emulated, number, measured.hops)
    model = _world("simulation", again.events, number, again.hops)
    link_ends: dict[tuple[NodeId, NodeId], list[LinkEnd]] = {}
    for end in measured.ends:
        link_ends.setdefault((end.node, end.peer), []).append(end)
    times = measured.times() or [0]
    slow = times[len(times) * 99 // 100]
    differences = []
    for one, other in ((real, model), (model, real)):
        for node, id in sorted(set(one.delivered) - set(other.delivered)):
            kind, via, margin = _why(plan, one, other, node, id, link_ends, slow)
            sender = "" if via is None else plan.names[via]
            margin_s = None if margin is None else round(margin / 1e6, 3)
            names = (plan.names[node], plan.names[id.source])
            differences.append(Difference(*names, id.number, one.name, kind, sender, margin_s))
    return differences


def summed_up(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """Count the differences of each kind and world that has any, with the largest margin."""
    rows = []
    for kind, says in KINDS.items():
        for only_in in ("emulation", "simulation"):
            these = [one for one in differences if one.kind == kind and one.only_in == only_in]
            if these:
                margins = [one.margin_s for one in these if one.margin_s is not None]
                most = max(margins, default=None)
                rows.append(
                    {"kind": kind, "only_in": only_in, "count": len(these), "margin_s_max": most, "says": says}
                )
    return rows


def write_differences(path: Path, differences: Sequence[Difference]) -> None:
    lines = ["node,source,number,only_in,kind,via,margin_s"]
    for one in differences:
        margin = "" if one.margin_s is None else one.margin_s
        lines.append(f"{one.node},{one.source},{one.number},{one.only_in},{one.kind},{one.via},{margin}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _why(
    plan: Plan,
    one: _World,
    other: _World,
    node: NodeId,
    id: MessageId,
    link_ends: dict[tuple[NodeId, NodeId], list[LinkEnd]],
    slow: int,
) -> tuple[str, NodeId | None, int | None]:
    at = one.delivered[node, id]
    deadline = one.deadlines.get(id)
    if (node, id) in other.received or other.given_up.get((node, id), "").startswith(("expired", "late")):
        return "edge of a lifetime", None, None if deadline is None else deadline - at
    hop = one.hops.get((node, id))
    if hop is None:
        return _own(plan, node, id, at, slow)
    at, via = hop
    if via != id.source and (via, id) not in other.received:
        return "follows", via, None
    edges = {"edge of the run": plan.end - at}
    if deadline is not None:
        edges["edge of a lifetime"] = deadline - at
    for end in link_ends.get((via, node), ()):
        if end.up <= at and (end.down is None or at <= end.down + slow):
            edges["edge of a contact"] = (plan.end if end.down is None else max(end.down, at)) - at
    nearest = min(edges, key=lambda name: edges[name])
    kind = nearest if edges[nearest] <= slow else "unexplained"
    return kind, via, edges[nearest]


def _own(plan: Plan, node: NodeId, id: MessageId, at: Instant, slow: int) -> tuple[str, None, int | None]:
    """Explain a delivery without a hop: the source broadcast just before it left, or it is unexplained."""
    ends = [abs(stay.end - at) for stay in plan.stays if stay.node == node and stay.end is not None]
    if id.source == node and ends and min(ends) <= slow:
        return "edge of a stay", None, min(ends)
    return "unexplained", None, None


def _world(name: str, events: pa.Table, number: dict[str, NodeId], hops: Hops) -> _World:
    world = _World(name, {}, {}, {}, {}, hops)
    columns = ["node", "kind", "message_source", "message_incarnation", "message_number", "at_us", "reason"]
    rows = events.select([*columns, "deadline_us"])
    rows = rows.set_column(1, "kind", rows["kind"].cast(pa.string()))
    kinds = pa.array(["broadcast", "received", "delivered", "discarded"])
    for row in rows.filter(pc.is_in(rows["kind"], kinds)).to_pylist():
        id = MessageId(number[row["message_source"]], row["message_incarnation"], row["message_number"])
        place = (number[row["node"]], id)
        if row["kind"] == "broadcast":
            world.deadlines[id] = row["deadline_us"]
        elif row["kind"] == "received":
            world.received[place] = row["at_us"]
        elif row["kind"] == "delivered":
            world.delivered[place] = row["at_us"]
        else:
            world.given_up[place] = row["reason"]
    return world

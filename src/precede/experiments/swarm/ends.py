"""What a world must look like at its end: bounded stores and registries, silence, nodes that accept messages.

Everything has healed and settled by then. A store may hold what its node still needs, counted by the kind of
its keys; a registry may have an entry per stream or node, but must not grow with messages or time; a world
without periodic packets has no timer left; every node that kept its state accepts one more message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from precede.core.errors import Refused
from precede.experiments.run import Prepared
from precede.experiments.swarm.events import count_events
from precede.experiments.swarm.plan import DRAWERS, Plan
from precede.experiments.swarm.promises import leaves_unheard, loses_store
from precede.sim.hosted_node import HostedNode

_STORED: Final[Mapping[str, tuple[str, ...]]] = {
    "net": ("cache",),
    "own": ("kept",),
    "held": ("kept", "pending"),
    "done": ("streams", "graph", "view", "applications"),
    "top": ("streams",),
    "step": ("checkpoint",),
    "admitted": ("streams", "view", "applications"),
    "ended": ("streams", "view", "applications"),
    "life": ("streams",),
    "shown": ("messages",),
    "copy": ("messages",),
    "seen": ("messages",),
}
"""For each kind of key, what bounds the number of its keys, added up. A kind that is not listed has one key.

With DRIFT a node gets a new stream when a view removed it and another one admitted it again, and when it
applies again because no sponsor answered or because it restarted (`Joining.attempts`).
"""

_REGISTERED: Final[Mapping[str, str]] = {
    "delivered_entries": "delivered",
    "vector_entries": "streams",
    "links": "nodes",
    "sources": "streams",
    "hosts": "nodes",
    "hosts_ever": "nodes",
    "previous": "nodes",
    "founders_heard": "nodes",
}
"""The registries among the sizes of nodes, and what bounds each: streams, pairs of them, or nodes."""

_LATER: Final = 1 << 50
"""An instant after the end of every world."""

_DEADLINE: Final = "due"
"""The timer of the next deadline, which may lie after the end of a world."""

_TIMERS: Final = 8
"""The most timers that a node may have when nothing is under way."""


def unsettled(plan: Plan, prepared: Prepared, log: pa.Table) -> dict[str, list[str]]:
    """List what should not be so at the end of a world. Nodes change by it: nothing may follow.

    Nothing is listed of a protocol that is not built in: what it stores and which timers it needs is unknown.
    """
    if plan.run.protocol not in DRAWERS:
        return {}
    nodes = prepared.world.nodes
    streams = sum(hosted.incarnation + 1 for hosted in nodes)
    messages = count_events(log, "broadcast")
    common = {
        "streams": streams,
        "applications": sum(hosted.store.get("lives", 0) for hosted in nodes),
        "delivered": streams * streams + (messages if _has_gaps(plan, log) else 0),
        "nodes": len(nodes),
        "messages": messages,
        "checkpoint": int(plan.run.options.get("checkpoint", 64)),
    }
    most_timers = _TIMERS if _is_periodic(plan) else 0
    leaks, undelivered = [], []
    for hosted in nodes:
        if not hosted.up or hosted.gone:
            continue
        name, sizes = prepared.built.names[hosted.id], dict(hosted.node.sizes())
        bounds = sizes | common
        leaks += [f"{name}: {line}" for line in (*_overfull(hosted, bounds), *_grown(sizes, bounds))]
        timers = [key for key in hosted.timers if key != _DEADLINE]
        if len(timers) > most_timers and not leaves_unheard(plan):
            leaks.append(f"{name} does not go quiet: timers {timers[:3]}")
        if prepared.built.role(hosted.id) != "station" and not hosted.incarnation and _is_source(plan, name):
            undelivered += _refusal(hosted, name)
    return {"leaks": leaks, "undelivered": undelivered}


def _has_gaps(plan: Plan, log: pa.Table) -> bool:
    """Tell whether a node may get some numbers of a stream only, and must remember each of them.

    It does so where messages have destinations. A node that lost its store does not get again what it had
    confirmed.
    """
    return log["destinations"].null_count < len(log) or loses_store(plan)


def _overfull(hosted: HostedNode, bounds: Mapping[str, int]) -> list[str]:
    """List the kinds of keys of which the store has more than are due."""
    counts: dict[str, int] = {}
    for key in hosted.store:
        kind = str(key[0] if isinstance(key, tuple) else key)
        counts[kind] = counts.get(kind, 0) + 1
    lines = []
    for kind, count in counts.items():
        most = sum(bounds.get(bound, 0) for bound in _STORED[kind]) if kind in _STORED else 1
        if count > most and (kind, count) != ("own", 1):
            lines.append(f"{count} keys of kind {kind!r} are in the store, {most} are due")
    return lines


def _grown(sizes: Mapping[str, int], bounds: Mapping[str, int]) -> list[str]:
    return [
        f"{name} has {sizes[name]} entries, more than {bounds[bound]} ({bound})"
        for name, bound in _REGISTERED.items()
        if sizes.get(name, 0) > bounds[bound]
    ]


def _is_periodic(plan: Plan) -> bool:
    """Tell whether nodes send digests, beacons, tests or acknowledgements for ever."""
    options: Mapping[str, Any] = plan.run.options
    return (
        plan.run.world["kind"] == "flood"
        or plan.run.protocol == "was"
        or bool(options.get("refresh") or options.get("diagnosis"))
        or options.get("dissemination") == "gossip"
    )


def _is_source(plan: Plan, name: str) -> bool:
    """Tell whether a node is meant to broadcast: with DRIFT, only those that the options name."""
    named = plan.run.options.get("sources")
    return not isinstance(named, str) or name in named.split()


def _refusal(hosted: HostedNode, name: str) -> list[str]:
    """Return a line if a node does not accept a message, though the world has healed."""
    try:
        hosted.node.broadcast(b"", hosted.clock_at(_LATER), None, None)
    except Refused as error:
        return [f"{name} accepts no message: {error}"]
    return []

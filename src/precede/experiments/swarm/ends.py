"""What a world must look like at its end: bounded stores and registries, silence, nodes that accept messages.

Everything has healed and settled by then. A store may hold what its node still needs, counted by the kind of
its keys; a registry may have an entry per stream or node, but must not grow with messages or time; a world
without periodic packets has no timer left; every node that kept its state accepts one more message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from precede.core.errors import Refused
from precede.experiments.run import Prepared
from precede.experiments.swarm.events import count_events
from precede.experiments.swarm.limits import SIZES, STORED, periodic_timers, quantities, timer_name
from precede.experiments.swarm.plan import DRAWERS, FIXED_GROUP, Plan
from precede.experiments.swarm.promises import leaves_unheard, loses_store, may_still_wait
from precede.sim.hosted_node import HostedNode

_LATER: Final = 1 << 50
"""An instant after the end of every world."""


def unsettled(plan: Plan, prepared: Prepared, log: pa.Table) -> dict[str, list[str]]:
    """List what should not be so at the end of a world. Nodes change by it: nothing may follow.

    Nothing is listed of a protocol that is not built in: what it stores and which timers it needs is unknown.
    """
    if plan.run.protocol not in DRAWERS:
        return {}
    nodes = prepared.world.nodes
    streams = sum(hosted.incarnation + 1 for hosted in nodes)
    messages = count_events(log, "broadcast")
    world = quantities(plan, streams, len(nodes), messages, _has_gaps(plan, log))
    world["applications"] = sum(hosted.store.get("lives", 0) for hosted in nodes)
    leaks, undelivered = [], []
    for hosted in nodes:
        if not hosted.up or hosted.gone:
            continue
        name, sizes = prepared.built.names[hosted.id], dict(hosted.node.sizes())
        lines = [*_overfull(hosted, sizes | world), *_grown(sizes, world)]
        if not leaves_unheard(plan):
            asks = {"ask": 1} if sizes.get("gaps") and may_still_wait(plan) else {}
            lines += _restless(hosted, periodic_timers(plan) | asks)
        leaks += [f"{name}: {line}" for line in lines]
        if prepared.built.role(hosted.id) != "station" and _is_source(plan, hosted, name):
            undelivered += _refusal(hosted, name)
    return {"leaks": leaks, "undelivered": undelivered}


def _has_gaps(plan: Plan, log: pa.Table) -> bool:
    """Tell whether a node may get some numbers of a stream only, and must remember each of them.

    It does so where messages have destinations or lifetimes, and where caches evict. A node that lost its store
    does not get again what it had confirmed.
    """
    options = plan.run.options
    return (
        log["destinations"].null_count < len(log)
        or log["deadline_us"].null_count < len(log)
        or bool(options.get("cache"))
        or loses_store(plan)
    )


def _overfull(hosted: HostedNode, bounds: Mapping[str, int]) -> list[str]:
    """List the kinds of keys of which the store has more than are due."""
    counts: dict[str, int] = {}
    for key in hosted.store:
        kind = str(key[0] if isinstance(key, tuple) else key)
        counts[kind] = counts.get(kind, 0) + 1
    lines = []
    for kind, count in counts.items():
        most = sum(bounds.get(bound, 0) for bound in STORED[kind]) if kind in STORED else 1
        if count > most and (kind, count) != ("own", 1):  # DRIFT's own stream
            lines.append(f"{count} keys of kind {kind!r} are in the store, {most} are due")
    return lines


def _grown(sizes: Mapping[str, int], bounds: Mapping[str, int]) -> list[str]:
    lines = []
    for name, limit in SIZES.items():
        most = sum(bounds[bound] for bound in limit)
        if sizes.get(name, 0) > most:
            lines.append(f"{name} has {sizes[name]} entries, more than {most} ({' + '.join(limit)})")
    return lines


def _restless(hosted: HostedNode, periodic: Mapping[str, int]) -> list[str]:
    """Return a line if a node has a timer that nothing needs any more."""
    counts = Counter(map(timer_name, hosted.timers))
    needless = sorted(name for name, count in counts.items() if count > periodic.get(name, 0))
    return [f"does not go quiet: timers {needless[:3]}"] if needless else []


def _is_source(plan: Plan, hosted: HostedNode, name: str) -> bool:
    """Tell whether a node is meant to broadcast: with DRIFT, only those that the options name.

    `vector_clock` numbers the messages of each node from 1, so a later incarnation may not broadcast.
    """
    named = plan.run.options.get("sources")
    if plan.run.protocol == FIXED_GROUP and hosted.incarnation:
        return False
    return not isinstance(named, str) or name in named.split()


def _refusal(hosted: HostedNode, name: str) -> list[str]:
    """Return a line if a node does not accept a message, though the world has healed."""
    try:
        hosted.node.broadcast(b"", hosted.clock_at(_LATER), None, None)
    except Refused as error:
        return [f"{name} accepts no message: {error}"]
    return []

"""What a node may still have when a world has healed and is quiet, each limit with its derivation.

A limit is a sum of quantities of the world or of the node: `nodes`; `streams` (one for each incarnation of each
node); `pairs` of streams; `messages` that were broadcast; `gaps` (the messages, in worlds where a node may lack
one for good and remember which, else 0); `applications` for a stream (DRIFT); `barrier` (the streams; the
messages where they have lifetimes); `checkpoint` (the option); or another size of the same node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from precede.core.effects import Key
from precede.experiments.swarm.plan import Plan

STORED: Final[Mapping[str, tuple[str, ...]]] = {
    # The store mirrors the memory: a key for each message that the node still needs there.
    "net": ("cache",),
    "own": ("kept",),
    "held": ("kept", "pending"),
    # How far each stream was delivered; in `hash_dag` every delivered message, because any may be named later.
    # A DRIFT node begins a stream when it starts, when a view removed its last one, and when it applies again
    # because no sponsor answered or because it restarted (`Joining.attempts`).
    "done": ("streams", "graph", "view", "applications"),
    "admitted": ("streams", "view", "applications"),
    "ended": ("streams", "view", "applications"),
    # The newest message of each stream, and its barrier.
    "top": ("streams",),
    # The steps since the last checkpoint, which removes them.
    "step": ("checkpoint",),
    # The newest incarnation of each node.
    "life": ("nodes",),
    # A list on a screen, and what a routing carries or must not take again: they grow with messages.
    "shown": ("messages",),
    "copy": ("messages",),
    "seen": ("messages",),
}
"""For each kind of key in a store, the limit of the number of its keys. Other kinds have one key."""

SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    # An entry per stream, and the numbers beyond a gap; PRS has one per pair of processes (its DELIV matrix).
    "delivered_entries": ("pairs", "gaps"),
    "vector_entries": ("streams",),
    "co_delivered": ("streams",),
    "time_entries": ("streams",),
    # RST counts messages of each process to each other; SES keeps a vector for each destination.
    "sent_counts": ("pairs",),
    "pairs": ("streams",),
    # At most the last message of each process to each destination (prs1997, section 5).
    "barrier_tuples": ("pairs",),
    # Direct predecessors: a later message of a stream covers an earlier one, so there is one per stream,
    # pruned or not.
    "causal_barrier": ("barrier",),
    "heads": ("streams",),
    # Ranges of numbers that the node holds or held: one per stream, and one more for each number it lacks.
    "known_ranges": ("streams", "gaps"),
    # A node has one stream at a time. Its other ones are closed or removed by a view.
    "sources": ("nodes",),
    "seen": ("nodes",),
    "founders_heard": ("nodes",),
    "links": ("nodes",),
    "hosts": ("nodes",),
    "hosts_ever": ("nodes",),
    "previous": ("nodes",),
    # Messages that are kept for others: no longer than they exist.
    "cache": ("messages",),
    "evicted": ("messages",),
    "asked": ("messages",),
    "graph": ("messages",),
    "shown": ("messages",),
    "own_unacknowledged": ("messages",),
}
"""For each size of a node, its limit. Sizes that must drain are not listed (`Node.drains`)."""

UNLIMITED: Final[Mapping[str, str]] = {
    "cache_bytes": "the bytes of `cache`, whose messages are counted",
    "kept": "floods for neighbours that lack them: as long as `retention` says",
    "dummies": "a count of packets, not a registry",
    "view": "the number of the view, not a registry",
    "declared_down": "a count of events, not a registry",
    "shadow": "only where a run observes what TOF would deliver",
    "foreign_groups": "0 or 1: another group is known. One group at the end is checked",
    "marks": "marks in private buffers, which drain",
    "lobby": "messages for a newcomer that has not joined; that all join is checked",
}
"""The sizes that have no limit here, and why."""

DEADLINES: Final = ("due", "expire")
"""Timers of the next deadline, which may lie after the end of a world."""


def quantities(plan: Plan, streams: int, nodes: int, messages: int, gaps: bool) -> dict[str, int]:
    """Return the quantities of a world by which limits are given."""
    return {
        "streams": streams,
        "nodes": nodes,
        "pairs": streams * streams,
        "messages": messages,
        "gaps": messages if gaps else 0,
        # With lifetimes an earlier message may live longer than a later one, and must be named too.
        "barrier": messages if plan.run.protocol == "delta_causal" else streams,
        "checkpoint": int(plan.run.options.get("checkpoint", 64)),
    }


def periodic_timers(plan: Plan) -> dict[str, int]:
    """Return which timers run for ever in a world, and how many of each a node may have."""
    options: Mapping[str, Any] = plan.run.options
    timers = dict.fromkeys(DEADLINES, 1)
    if plan.run.world["kind"] == "flood":
        timers["beacon"] = 1
    if options.get("refresh"):
        timers["refresh"] = 1
    if options.get("dissemination") == "gossip":
        timers["digest"] = 1
    if options.get("diagnosis"):
        timers |= {"test": 1, "silent": int(plan.run.world["nodes"])}
    if plan.run.protocol == "was":
        timers |= {"ack": 1, "watch": 1}
    return timers


def timer_name(key: Key) -> str:
    """Return the name of a timer, without the ids in its key."""
    if not isinstance(key, tuple):
        return str(key)
    return str(key[1] if key[0] == "net" else key[0])

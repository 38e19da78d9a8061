"""What is due after a contact world has healed: from the log alone, with full happened-before.

When everybody meets everybody, not everything must arrive: what nobody carries any more is lost, and a message
may have to wait longer than it lives. A message that is carried and lives long enough to cross the world must
be delivered at a node if each of its predecessors that is not delivered there is due there too, or expires
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
from msgspec import Struct

from precede.core.instants import Duration, Instant
from precede.experiments.run import Prepared
from precede.experiments.swarm.plan import Plan
from precede.experiments.swarm.swarm import events_of

Process: TypeAlias = tuple[str, int]
Message: TypeAlias = tuple[str, int, int]

_NEVER: Final = 1 << 62


class _Lore(Struct):
    """What the rows say; sets of messages are bit masks over `place`."""

    place: dict[Message, int]
    deadline: list[Instant]
    past: list[int]
    delivered: dict[Process, int]
    carried: int


def carried_missing(plan: Plan, prepared: Prepared, log: pa.Table, spreading: Duration) -> list[str]:
    """Everybody who is there at the end must have delivered all that was due; one line for each that is not.

    `spreading` is how long it takes at most until everything carried is everywhere.
    """
    world = prepared.world
    names = prepared.built.names
    there = {
        (names[hosted.id], hosted.incarnation): hosted
        for hosted in world.nodes
        if hosted.up and not hosted.gone
    }
    lore = _read(plan, log, there)
    spread_at = plan.heal_at + spreading
    latest = max((s.clock.read(spread_at) if s.clock else spread_at for s in there.values()), default=0)
    missing = []
    for process in there:
        have = lore.delivered.get(process, 0)
        due = _due(lore, have, latest)
        missing += [
            f"{process[0]} never delivered {message[0]}:{message[2]}"
            for message, place in lore.place.items()
            if due >> place & 1 and not have >> place & 1
        ]
    return missing


def _due(lore: _Lore, have: int, latest: Instant) -> int:
    """The messages due at a node that has delivered these. Predecessors come first in the log."""
    due = 0
    for place, deadline in enumerate(lore.deadline):
        if not lore.carried >> place & 1 or deadline <= latest:
            continue
        open_ = lore.past[place] & ~have & ~due
        if all(lore.deadline[p] < deadline for p in range(open_.bit_length()) if open_ >> p & 1):
            due |= 1 << place
    return due


def _just_received(fresh: Mapping[Process, tuple[Instant, int]], process: Process, at: Instant) -> int:
    """What came in at this very instant: if the node crashes over it, it may not have been kept."""
    when, messages = fresh.get(process, (-1, 0))
    return messages if when == at else 0


def _read(plan: Plan, log: pa.Table, there: Mapping[Process, Any]) -> _Lore:
    lore = _Lore({}, [], [], {}, 0)
    known: dict[Process, int] = {}
    held: dict[Process, int] = {}
    fresh: dict[Process, tuple[Instant, int]] = {}
    lost = 0
    for row in events_of(log, "crashed", "broadcast", "received", "delivered", "discarded"):
        process = (row["node"], row["incarnation"])
        if row["kind"] == "crashed":
            held[process] = held.get(process, 0) & ~_just_received(fresh, process, row["at_us"])
            continue
        message = (row["message_source"], row["message_incarnation"], row["message_number"])
        if row["kind"] == "broadcast":
            lore.place[message] = len(lore.place)
            lore.deadline.append(_NEVER if row["deadline_us"] is None else row["deadline_us"])
            lore.past.append(known.get(process, 0))
        if message not in lore.place:
            continue  # nobody said it: the witness calls it a ghost, and nobody is owed it
        bit = 1 << lore.place[message]
        if row["kind"] in ("broadcast", "received"):
            if row["at_us"] < plan.heal_at:
                held[process] = held.get(process, 0) | bit
                if row["kind"] == "received":
                    fresh[process] = (row["at_us"], _just_received(fresh, process, row["at_us"]) | bit)
        elif row["kind"] == "delivered":
            known[process] = known.get(process, 0) | bit | lore.past[lore.place[message]]
            lore.delivered[process] = lore.delivered.get(process, 0) | bit
        elif row["reason"] in ("expired_cached", "evicted"):
            if row["reason"] == "evicted" and row["at_us"] >= plan.heal_at:
                lost |= bit
            elif row["at_us"] < plan.heal_at:
                held[process] = held.get(process, 0) & ~bit
    for process in there:
        lore.carried |= held.get(process, 0)
    lore.carried &= ~lost
    return lore

"""Small contact worlds for tests, built from plain lists, and an independent flood as oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from precede.core.node import Context
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import TableSink
from precede.protocols.registry import Entry, find, make_entry
from precede.sim.clocks import Clock
from precede.sim.networks.contacts import Contact, ContactNetwork
from precede.sim.networks.network import MESSAGES_BORN, NODES_ENTER, NODES_LEAVE
from precede.sim.world import World


class Birth(NamedTuple):
    node: int
    at: int
    lifetime: int | None = None


class Row(NamedTuple):
    node: int
    kind: str
    at: int
    clock: int
    message: tuple[int, int, int]
    deadline: int | None
    reason: str | None


class Setting(NamedTuple):
    """The description of a contact world; times in microseconds."""

    nodes: int
    contacts: Sequence[Contact]
    births: Sequence[Birth]
    presence: Mapping[int, tuple[int, int]] = {}
    clocks: Mapping[int, Clock] = {}
    network: Mapping[str, Any] = {}
    end: int = 1 << 40


def contact_world(
    setting: Setting, protocol: str | Entry, seed: int = 1, **options: Any
) -> tuple[World, TableSink]:
    """A world with its contacts, nodes and broadcasts scheduled, before it runs."""
    entry = find(protocol) if isinstance(protocol, str) else protocol
    sink = TableSink()
    names = [str(node) for node in range(setting.nodes)]
    members = tuple(range(setting.nodes))
    written = {"dissemination": "epidemic", **options}

    def make_node(node: int, incarnation: int, random: Random) -> Any:
        return make_entry(entry, "node", Context(node, members, written, random, incarnation))

    network = ContactNetwork(setting.contacts, **setting.network)
    recorder = Recorder("test", names, sink)
    world = World(seed, setting.nodes, make_node, network, recorder, setting.clocks)
    network.begin()
    for node in range(setting.nodes):
        enter, leave = setting.presence.get(node, (0, setting.end))
        world.schedule_phase(NODES_ENTER, enter, world.enter, node)
        if leave < setting.end:
            world.schedule_phase(NODES_LEAVE, leave, world.leave, node)
    for birth in setting.births:
        payload = b"x" * 10
        world.schedule_phase(
            MESSAGES_BORN, birth.at, world.broadcast, birth.node, payload, None, birth.lifetime
        )
    return world, sink


def play(setting: Setting, protocol: str | Entry, seed: int = 1, **options: Any) -> list[Row]:
    """Run a world to its end. Returns the log rows about messages, in order."""
    world, sink = contact_world(setting, protocol, seed, **options)
    world.run(setting.end)
    world.recorder.flush()
    return rows_of(sink)


def rows_of(sink: TableSink) -> list[Row]:
    rows = []
    for row in sink.events().to_pylist():
        if row["message_source"] is not None:
            message = (int(row["message_source"]), row["message_incarnation"], row["message_number"])
            rows.append(
                Row(
                    int(row["node"]),
                    row["kind"],
                    row["at_us"],
                    row["clock_us"],
                    message,
                    row["deadline_us"],
                    row["reason"],
                )
            )
    return rows


def receptions(rows: Sequence[Row]) -> dict[tuple[int, tuple[int, int, int]], int]:
    return {(row.node, row.message): row.at for row in rows if row.kind == "received"}


def deliveries(rows: Sequence[Row], node: int) -> list[tuple[int, int, int]]:
    return [row.message for row in rows if row.kind == "delivered" and row.node == node]


def flood(setting: Setting, lifetime: int | None) -> dict[tuple[int, tuple[int, int, int]], int]:
    """The instant of each reception, computed from the contact list alone: an oracle for links without delay.

    At one instant contacts end, nodes leave, nodes enter, contacts begin, messages are broadcast. Then every
    message that has not expired is at all nodes of its connected component.
    """
    instants = {birth.at for birth in setting.births}
    for _, _, start, end in setting.contacts:
        instants |= {start, end}
    for enter, leave in setting.presence.values():
        instants |= {enter, leave}
    present = {node for node in range(setting.nodes) if node not in setting.presence}
    held: dict[int, set[tuple[int, int, int]]] = {node: set() for node in range(setting.nodes)}
    deadline: dict[tuple[int, int, int], float] = {}
    received: dict[tuple[int, tuple[int, int, int]], int] = {}
    numbers = [0] * setting.nodes
    for now in sorted(instant for instant in instants if instant <= setting.end):
        for node, (enter, leave) in setting.presence.items():
            if leave == now:
                present.discard(node)
                held[node] = set()
            if enter == now and leave > now:
                present.add(node)
        near: dict[int, set[int]] = {node: set() for node in present}
        for a, b, start, end in setting.contacts:
            if start <= now < end and a in present and b in present:
                near[a].add(b)
                near[b].add(a)
        _spread(near, held, deadline, received, now)
        for birth in setting.births:
            if birth.at == now and birth.node in present:
                numbers[birth.node] += 1
                message = (birth.node, 0, numbers[birth.node])
                own_lifetime = lifetime if birth.lifetime is None else birth.lifetime
                deadline[message] = float("inf") if own_lifetime is None else now + own_lifetime
                held[birth.node].add(message)
        _spread(near, held, deadline, received, now)
    return received


def _spread(
    near: dict[int, set[int]],
    held: dict[int, set[tuple[int, int, int]]],
    deadline: dict[tuple[int, int, int], float],
    received: dict[tuple[int, tuple[int, int, int]], int],
    now: int,
) -> None:
    seen: set[int] = set()
    for root in near:
        if root in seen:
            continue
        component, frontier = {root}, [root]
        while frontier:
            for peer in near[frontier.pop()] - component:
                component.add(peer)
                frontier.append(peer)
        seen |= component
        union = {message for node in component for message in held[node] if deadline[message] > now}
        for node in component:
            for message in union - held[node]:
                held[node].add(message)
                received[node, message] = now

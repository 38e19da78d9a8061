"""What a multicast node persists: a journal of what it sent and delivered, with a checkpoint now and then.

A causal order's state is a function of what the node sent and delivered, in that order. So one step persists
one message, not a matrix; a restart loads the checkpoint and replays the steps after it. Each step is one
`Persist`, which makes a delivery atomic with its `Deliver`. A crash between a checkpoint and the removal of
the steps it covers leaves steps that the next start skips and removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from precede.core.effects import Effect, Key, Persist
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Packet
from precede.core.node import Saved

P = TypeVar("P", bound=Packet)


class Step(Struct, frozen=True, gc=False, array_like=True):
    """What changed the state: a delivered packet, or the destinations and payload of an own message."""

    packet: Any = None
    destinations: tuple[int, ...] = ()
    payload: bytes = b""


class Checkpoint(Struct, frozen=True, gc=False, array_like=True):
    """The state after a step: own number, last delivered number by process, the rule's state, the unsent."""

    step: int
    number: int
    last: dict[int, int]
    rule: Any
    unsent: list[tuple[Any, tuple[NodeId, ...]]]


class Opened(Struct):
    """What a restart finds."""

    checkpoint: Checkpoint | None
    steps: list[Step]
    held: list[Any]
    lives: dict[NodeId, int]
    stale: list[Key]


class Journal:
    """Appends `Persist` effects; does nothing when the node need not survive a restart."""

    def __init__(self, durable: bool, steps_per_checkpoint: int) -> None:
        self._durable = durable
        self._steps_per_checkpoint = steps_per_checkpoint
        self._step = 0
        self._covered = 0

    def sent(self, payload: bytes, destinations: tuple[int, ...], effects: list[Effect]) -> None:
        """An own message. Goes before its `Accept`."""
        if self._durable:
            self._append(Step(None, destinations, payload), effects)

    def delivered(self, packet: Packet, effects: list[Effect]) -> None:
        """A delivery. Goes directly before its `Deliver`."""
        if self._durable:
            self._append(Step(packet), effects)

    def held(self, packet: Packet, id: MessageId, effects: list[Effect]) -> None:
        """A message that waits, before it is acknowledged."""
        if self._durable:
            effects.append(Persist(_held_key(id), packet))

    def released(self, id: MessageId, effects: list[Effect]) -> None:
        """A message that waited has been delivered."""
        if self._durable:
            effects.append(Persist(_held_key(id), None))

    def life(self, node: NodeId, incarnation: int, effects: list[Effect]) -> None:
        """A node is in a later incarnation (-1: gone for good)."""
        if self._durable:
            effects.append(Persist(("life", node), incarnation))

    def checkpoint(self, save: Callable[[int], Checkpoint], effects: list[Effect]) -> None:
        """At the end of an input: replace many steps by the state."""
        if self._step - self._covered >= self._steps_per_checkpoint:
            effects.append(Persist("state", save(self._step)))
            effects.extend([Persist(("step", step), None) for step in range(self._covered + 1, self._step + 1)])
            self._covered = self._step

    def open(self, saved: Saved, packet: type[P]) -> Opened:
        """Everything persisted, in its types; the journal goes on behind it."""
        checkpoint = msgspec.convert(saved["state"], Checkpoint) if "state" in saved else None
        self._covered = checkpoint.step if checkpoint is not None else 0
        steps: dict[int, Step] = {}
        held: list[tuple[MessageId, P]] = []
        lives: dict[NodeId, int] = {}
        stale: list[Key] = []
        for key, value in saved.items():
            match key:
                case ("step", int(number)) if number > self._covered:
                    steps[number] = _step(value, packet)
                case ("step", int()):
                    stale.append(key)
                case ("held", int(source), int(incarnation), int(number)):
                    held.append((MessageId(source, incarnation, number), msgspec.convert(value, packet)))
                case ("life", int(node)):
                    lives[node] = value
        self._step = max([self._covered, *steps])
        return Opened(
            checkpoint,
            [steps[number] for number in sorted(steps)],
            [waited for _, waited in sorted(held, key=lambda found: found[0])],
            lives,
            stale,
        )

    def packets(self, checkpoint: Checkpoint, packet: type[P]) -> list[tuple[P, tuple[NodeId, ...]]]:
        """The unsent packets of a checkpoint, in their type, with those who have not acknowledged them."""
        return [(msgspec.convert(value, packet), nodes) for value, nodes in checkpoint.unsent]

    def _append(self, step: Step, effects: list[Effect]) -> None:
        self._step += 1
        effects.append(Persist(("step", self._step), step))


def unsent_by_packet(unacknowledged: dict[NodeId, Packet]) -> list[tuple[Packet, tuple[NodeId, ...]]]:
    """One message's packets with those who have not acknowledged them; a shared packet is kept once."""
    shared: dict[int, tuple[Packet, list[NodeId]]] = {}
    for node, packet in unacknowledged.items():
        shared.setdefault(id(packet), (packet, []))[1].append(node)
    return [(packet, tuple(nodes)) for packet, nodes in shared.values()]


def _step(value: Sequence[Any], packet: type[P]) -> Step:
    step = msgspec.convert(value, Step)
    if step.packet is None:
        return step
    return Step(msgspec.convert(step.packet, packet))


def _held_key(id: MessageId) -> Key:
    return ("held", id.source, id.incarnation, id.number)

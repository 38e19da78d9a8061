"""What a durable multicast node persists: a journal of its sendings and deliveries, with checkpoints.

The state of a causal order follows from what the node sent and delivered, in that order. So one step persists
one message, not a matrix. A restart loads the last checkpoint and replays the steps after it. Each step is one
`Persist`, which makes a delivery atomic with its `Deliver`. A crash between a checkpoint and the removal of
the steps it covers leaves steps that the next start skips and removes.
"""

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
    """One change of the state: a delivered packet, or the destinations and payload of an own message."""

    packet: Any = None
    destinations: tuple[int, ...] = ()
    payload: bytes = b""


class Checkpoint(Struct, frozen=True, gc=False, array_like=True):
    """The state after a step: own number, last delivered number by process, rule, unacknowledged packets."""

    step: int
    number: int
    last: dict[int, int]
    rule: Any
    unsent: list[tuple[Any, tuple[NodeId, ...]]]


class JournalContents(Struct):
    """What a restart reads: the checkpoint, the steps after it, waiting packets, incarnations of other nodes.

    `stale` are the keys of steps that the checkpoint covers.
    """

    checkpoint: Checkpoint | None
    steps: list[Step]
    held: list[Any]
    incarnations: dict[NodeId, int]
    stale: list[Key]


class Journal:
    """Appends the effects that persist a node's messages and deliveries; none if the node is not durable."""

    def __init__(self, durable: bool, steps_per_checkpoint: int) -> None:
        self._durable = durable
        self._steps_per_checkpoint = steps_per_checkpoint
        self._step = 0
        self._covered = 0

    def sent(self, payload: bytes, destinations: tuple[int, ...], effects: list[Effect]) -> None:
        """Persist an own message; append this before the effect `Accept`, which tells that it was taken."""
        if self._durable:
            self._append(Step(None, destinations, payload), effects)

    def delivered(self, packet: Packet, effects: list[Effect]) -> None:
        """Persist a delivery; call it directly before its `Deliver`."""
        if self._durable:
            self._append(Step(packet), effects)

    def held(self, packet: Packet, id: MessageId, effects: list[Effect]) -> None:
        """Persist a message that waits; call it before the message is acknowledged."""
        if self._durable:
            effects.append(Persist(_held_key(id), packet))

    def released(self, id: MessageId, effects: list[Effect]) -> None:
        """Erase a message that waited and is delivered."""
        if self._durable:
            effects.append(Persist(_held_key(id), None))

    def incarnation(self, node: NodeId, incarnation: int, effects: list[Effect]) -> None:
        """Persist the incarnation of another node; -1: it has left for good."""
        if self._durable:
            effects.append(Persist(("life", node), incarnation))

    def checkpoint(self, save: Callable[[int], Checkpoint], effects: list[Effect]) -> None:
        """If there are enough steps, persist the state and erase them. Call this at the end of an input."""
        if self._step - self._covered >= self._steps_per_checkpoint:
            effects.append(Persist("state", save(self._step)))
            effects.extend([Persist(("step", step), None) for step in range(self._covered + 1, self._step + 1)])
            self._covered = self._step

    def open(self, saved: Saved, packet: type[P]) -> JournalContents:
        """Read everything that was persisted. New steps follow the last one read."""
        checkpoint = msgspec.convert(saved["state"], Checkpoint) if "state" in saved else None
        self._covered = checkpoint.step if checkpoint is not None else 0
        steps: dict[int, Step] = {}
        held: list[tuple[MessageId, P]] = []
        incarnations: dict[NodeId, int] = {}
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
                    incarnations[node] = value
        self._step = max([self._covered, *steps])
        return JournalContents(
            checkpoint,
            [steps[number] for number in sorted(steps)],
            [waiting for _, waiting in sorted(held, key=lambda item: item[0])],
            incarnations,
            stale,
        )

    def packets(self, checkpoint: Checkpoint, packet: type[P]) -> list[tuple[P, tuple[NodeId, ...]]]:
        """Return a checkpoint's unacknowledged packets, each with the nodes that did not acknowledge it."""
        return [(msgspec.convert(value, packet), nodes) for value, nodes in checkpoint.unsent]

    def _append(self, step: Step, effects: list[Effect]) -> None:
        self._step += 1
        effects.append(Persist(("step", self._step), step))


def unsent_by_packet(unacknowledged: dict[NodeId, Packet]) -> list[tuple[Packet, tuple[NodeId, ...]]]:
    """Return one message's packets, each once, with the nodes that have not acknowledged it."""
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

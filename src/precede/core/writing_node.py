"""A node that writes its effects one by one instead of returning them in a list (docs/decisions/0046).

A list of effects is an object for each effect and one for the list, for every packet. A driver that carries out
each effect at once needs none of them. A subclass of `WritingNode` has one text for `receive`, which any driver
can call: those that need a list get one.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Arrive, Deliver, Effect, Effects, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node


@mypyc_attr(allow_interpreted_subclasses=True)
class EffectWriter:
    """Takes the effects of one input, in the order in which they must happen."""

    def arrive(self, message: Message) -> None:
        """Write `Arrive((message,))`."""
        self.add(Arrive((message,)))

    def deliver(self, message: Message) -> None:
        """Write `Deliver(message)`."""
        self.add(Deliver(message))

    def send(self, packet: Packet, to: NodeId, over: Medium = RADIO) -> None:
        """Write `Send(packet, to, over)`."""
        self.add(Send(packet, to, over))

    def add(self, effect: Effect) -> None:
        """Write any effect."""
        raise NotImplementedError


@final
class ListedEffects(EffectWriter):
    """Keeps the effects in a list."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    def add(self, effect: Effect) -> None:
        self.effects.append(effect)


@mypyc_attr(allow_interpreted_subclasses=True)
class WritingNode(Node):
    """A node that handles packets in `take`, and need not override `receive`. If it does, `receive` is called.

    >>> from precede.core.writing_node import WritingNode
    >>> class Echo(WritingNode):
    ...     def take(self, packet, sender, now, over, effects):
    ...         effects.send(packet, sender, over)
    >>> Echo().receive("a packet", 3, 0, 0)
    [Send(packet='a packet', to=3, over=0, key=None)]
    """

    def take(self, packet: Packet, sender: NodeId, now: Instant, over: Medium, effects: EffectWriter) -> None:
        """Handle a packet that has arrived whole: write the effects, and keep no reference to `effects`."""
        raise NotImplementedError

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        listed = ListedEffects()
        self.take(packet, sender, now, over, listed)
        return listed.effects

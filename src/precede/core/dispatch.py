"""The dispatch over effects: one loop that carries out the effects of nodes, for every driver.

The simulator, the runtime, the scenario player and the tests subclass `EffectHandler` and write one method per
effect. The loop keeps two rules for all of them. Effects are carried out in the order in which the node listed
them. A node may crash between two effects, but never between a `Persist` and the `Deliver` directly behind it.
"""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from precede.core.effects import (
    Accept,
    Arrive,
    CancelSend,
    CancelTimer,
    Deliver,
    Discard,
    Effect,
    Effects,
    Key,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.identity import NodeId
from precede.core.instants import Instant


@mypyc_attr(allow_interpreted_subclasses=True)
class EffectHandler:
    """Carries out effects. A subclass overrides one method per effect; an effect without a method does nothing.

    Every method takes the node that returned the effect, the effect, and the reading of that node's clock.
    """

    def carry_out(self, node: NodeId, effects: Effects, now: Instant) -> None:
        """Carries out a list of effects in order, or the part of it before a crash."""
        after_persist = False
        for effect in effects:
            kind = type(effect)
            if not (after_persist and kind is Deliver) and not self.begin_step(node):
                return
            self.apply(node, effect, now)
            after_persist = kind is Persist

    def begin_step(self, node: NodeId) -> bool:
        """Called before each atomic step. False if the node crashes here: the rest of the list is dropped."""
        return True

    def apply(self, node: NodeId, effect: Effect, now: Instant) -> None:
        """Carries out one effect: calls the method that is named after it."""
        if type(effect) is Deliver:
            self.deliver(node, effect, now)
        elif type(effect) is Send:
            self.send(node, effect, now)
        elif type(effect) is Arrive:
            self.arrive(node, effect, now)
        elif type(effect) is SetTimer:
            self.set_timer(node, effect, now)
        elif type(effect) is Persist:
            self.persist(node, effect, now)
        elif type(effect) is CancelTimer:
            self.cancel_timer(node, effect, now)
        elif type(effect) is Discard:
            self.discard(node, effect, now)
        elif type(effect) is Accept:
            self.accept(node, effect, now)
        elif type(effect) is Observe:
            self.observe(node, effect, now)
        elif type(effect) is CancelSend:
            self.cancel_send(node, effect, now)
        else:
            raise TypeError(f"node {node} returned {effect!r}, which is no effect")

    def accept(self, node: NodeId, effect: Accept, now: Instant) -> None:
        """Record a new message of the node. After a restart the node may accept it again: record it once."""

    def arrive(self, node: NodeId, effect: Arrive, now: Instant) -> None:
        """Record the first copies of messages that the node has received."""

    def send(self, node: NodeId, effect: Send, now: Instant) -> None:
        """Give a packet to the network."""

    def cancel_send(self, node: NodeId, effect: CancelSend, now: Instant) -> None:
        """Take back a keyed packet that is still queued."""

    def deliver(self, node: NodeId, effect: Deliver, now: Instant) -> None:
        """Hand a message to the application."""

    def discard(self, node: NodeId, effect: Discard, now: Instant) -> None:
        """Record that the node discards a message that it had received."""

    def observe(self, node: NodeId, effect: Observe, now: Instant) -> None:
        """Record a measured instant that is no delivery."""

    def set_timer(self, node: NodeId, effect: SetTimer, now: Instant) -> None:
        """Call the node's `timer` when its clock reads the instant; replaces a timer with the same key."""

    def cancel_timer(self, node: NodeId, effect: CancelTimer, now: Instant) -> None:
        """Forget a timer."""

    def persist(self, node: NodeId, effect: Persist, now: Instant) -> None:
        """Make a value durable before any later effect is carried out."""


def store_value(store: dict[Key, Any], effect: Persist) -> None:
    """Carries out a `Persist` on a dictionary that stands for the node's disk."""
    if effect.value is None:
        store.pop(effect.key, None)
    else:
        store[effect.key] = effect.value

"""Persists received messages that wait for others, so that a restart does not lose them.

An ordering acknowledges a message when it arrives; nobody sends it again. A message that cannot be delivered
yet is therefore persisted, and erased after its delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from precede.core.effects import Effect, Persist
from precede.core.identity import MessageId
from precede.core.node import Saved
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.saved_state import saved_envelopes


class HeldMessages:
    """Appends the effects that persist and erase waiting messages; none if the node is not durable."""

    def __init__(self, durable: bool) -> None:
        self._durable = durable

    def hold(self, envelope: Envelope, effects: list[Effect]) -> None:
        if self._durable:
            effects.append(Persist(_key(envelope.message.id), envelope))

    def release(self, id: MessageId, effects: list[Effect]) -> None:
        if self._durable:
            effects.append(Persist(_key(id), None))

    def resume(
        self, saved: Saved, stamp_type: Any, knows: Callable[[MessageId], bool], effects: list[Effect]
    ) -> Iterator[Envelope]:
        """After a restart: yield the messages that waited, by id, for the caller to let them arrive again.

        A message is erased if it was delivered by then, or if it does not wait again when it arrives.
        """
        for envelope in saved_envelopes(saved, "held", stamp_type):
            key = _key(envelope.message.id)
            before = len(effects)
            if not knows(envelope.message.id):
                yield envelope
            if not any(isinstance(effect, Persist) and effect.key == key for effect in effects[before:]):
                effects.append(Persist(key, None))


def _key(id: MessageId) -> tuple[str | int, ...]:
    return ("held", id.source, id.incarnation, id.number)

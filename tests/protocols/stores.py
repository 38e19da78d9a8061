"""The store of a node in tests: a dict that takes what the node persists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from precede.core.effects import Effect, Persist

Store: TypeAlias = dict[Any, Any]


def persist(store: Store, effects: Sequence[Effect]) -> None:
    """Carry out the writes and removals among some effects; ignore the other effects."""
    for effect in effects:
        if type(effect) is Persist:
            if effect.value is None:
                store.pop(effect.key, None)
            else:
                store[effect.key] = effect.value

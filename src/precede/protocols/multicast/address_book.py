"""Whom a multicast node knows, and in which life each is.

Members known from the beginning are one set that all nodes share; only what differs from "a member, in
its first life" is kept by node, so a thousand nodes that know each other cost no million entries.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from precede.core.identity import NodeId

GONE: Final = -1
"""The life of a node that has left for good."""


class AddressBook:
    """Nodes and their lives (incarnations)."""

    def __init__(self, node: NodeId, incarnation: int, members: tuple[NodeId, ...]) -> None:
        self._node = node
        self._members = members
        self._is_member = _set_of(members)
        self._lives: dict[NodeId, int] = {node: incarnation}
        self._strangers = int(node not in self._is_member)

    def life_of(self, node: NodeId) -> int | None:
        """The life a node is in; GONE; or None for one we have never heard of."""
        life = self._lives.get(node)
        if life is None and node in self._is_member:
            return 0
        return life

    def learn(self, node: NodeId, life: int) -> bool:
        """A node is in this life, or GONE. Is that news? Nobody goes back to an earlier life, or comes back."""
        known = self.life_of(node)
        if known is not None and (known == GONE or GONE < life <= known):
            return False
        if known is None:
            self._strangers += 1
        self._lives[node] = life
        return True

    def others(self) -> list[NodeId]:
        """Everybody there is but this node: members first, then strangers as they came."""
        lives = self._lives
        known = [node for node in self._members if lives.get(node, 0) != GONE and node != self._node]
        return known + [
            node
            for node, life in lives.items()
            if life != GONE and node != self._node and node not in self._is_member
        ]

    @property
    def population(self) -> int:
        """How many processes a vector or matrix has a place for."""
        return len(self._members) + self._strangers


@lru_cache(maxsize=16)
def _set_of(members: tuple[NodeId, ...]) -> frozenset[NodeId]:
    return frozenset(members)

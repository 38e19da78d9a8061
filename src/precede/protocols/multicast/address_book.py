"""The nodes a multicast node knows, and the incarnation of each.

The members known from the beginning are one set that all nodes share. Only a node that is not "a member in its
first incarnation" has an entry of its own: a thousand nodes that know each other need no million entries.
"""

from functools import lru_cache
from typing import Final

from mypy_extensions import mypyc_attr

from precede.core.identity import NodeId

GONE: Final = -1
"""The incarnation of a node that has left for good."""


@mypyc_attr(allow_interpreted_subclasses=True)
class AddressBook:
    """Known nodes and their incarnations."""

    def __init__(self, node: NodeId, incarnation: int, members: tuple[NodeId, ...]) -> None:
        self._node = node
        self._members = members
        self._is_member = _set_of(members)
        self._incarnations: dict[NodeId, int] = {node: incarnation}
        self._strangers = int(node not in self._is_member)

    def incarnation_of(self, node: NodeId) -> int | None:
        """Return the present incarnation of a node, GONE if it has left, None if it is unknown."""
        incarnation = self._incarnations.get(node)
        if incarnation is None and node in self._is_member:
            return 0
        return incarnation

    def learn(self, node: NodeId, incarnation: int) -> bool:
        """Record a node's incarnation, or GONE. True if that is new: a node never returns to an earlier one."""
        present = self.incarnation_of(node)
        if present is not None and (present == GONE or GONE < incarnation <= present):
            return False
        if present is None:
            self._strangers += 1
        self._incarnations[node] = incarnation
        return True

    def others(self) -> list[NodeId]:
        """Return the present nodes but this one: members first, then others in the order it met them."""
        incarnations = self._incarnations
        members = [node for node in self._members if incarnations.get(node, 0) != GONE and node != self._node]
        return members + [
            node
            for node, incarnation in incarnations.items()
            if incarnation != GONE and node != self._node and node not in self._is_member
        ]

    @property
    def population(self) -> int:
        """Return how many elements a vector has: one per member and per other node ever met, present or not."""
        return len(self._members) + self._strangers


@lru_cache(maxsize=16)
def _set_of(members: tuple[NodeId, ...]) -> frozenset[NodeId]:
    return frozenset(members)

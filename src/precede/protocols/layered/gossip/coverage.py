"""Which neighbours a transmission reaches, and which messages this node must relay.

A transmitter names its neighbours: all of them hear what it transmits. A node relays a message only if one of
its own neighbours is in the list of no transmitter of that message that the node has heard. A false list can
keep a node from relaying; digests then repair what is missing.
"""

from collections.abc import Set
from typing import Final, final
from zlib import crc32

from precede.core.identity import MessageId, NodeId
from precede.core.instants import SECOND, Instant

_LIST_REPEATS: Final = 3
_MOST_NEIGHBOURS: Final = 1_024
_HEARD_FOR: Final = 30 * SECOND


@final
class Coverage:
    """The neighbours of this node, their own lists of neighbours, and the relays that are due.

    A neighbour is linked (the driver reports its link) or was heard lately. `relays`: for each message to be
    relayed, the nodes that have heard it.
    """

    def __init__(self, me: NodeId) -> None:
        self._me = me
        self._has_links = False  # does the driver report links?
        self._linked: dict[NodeId, None] = {}
        self._heard: dict[NodeId, Instant] = {}
        self._lists: dict[NodeId, tuple[int, frozenset[NodeId]]] = {}
        self._own: tuple[NodeId, ...] = ()
        self._unchanged = False  # are the links those of `_own`?
        self._one_room: bool | None = None  # None: the neighbours or their lists have changed
        self._version = 0
        self._repeats = 0
        self.relays: dict[MessageId, set[NodeId]] = {}

    def link_up(self, peer: NodeId) -> None:
        self._has_links = True
        self._unchanged = False
        self._one_room = None
        self._linked[peer] = None

    def link_down(self, peer: NodeId) -> None:
        self._unchanged = False
        self._one_room = None
        self._linked.pop(peer, None)
        self._heard.pop(peer, None)
        self._lists.pop(peer, None)

    def heard(
        self, peer: NodeId, version: int, neighbours: tuple[NodeId, ...] | None, now: Instant
    ) -> frozenset[NodeId]:
        """Record a peer's transmission. Return the nodes that hear it, as far as the peer's list is known."""
        if not self._has_links:  # who is heard is a neighbour
            if self._heard.pop(peer, None) is None:
                self._one_room = None
            self._heard[peer] = now
            if len(self._heard) > _MOST_NEIGHBOURS:
                del self._heard[next(iter(self._heard))]
        if neighbours is not None and (peer in self._linked or peer in self._heard):
            self._one_room = None
            self._lists[peer] = (version, frozenset(neighbours[:_MOST_NEIGHBOURS]))
            if len(self._lists) > _MOST_NEIGHBOURS:
                del self._lists[next(iter(self._lists))]
        known, members = self._lists.get(peer, (0, frozenset[NodeId]()))
        return members if version and known == version else frozenset()

    def neighbours(self, now: Instant) -> list[NodeId]:
        """List the neighbours of this node: the linked ones, or those heard lately if no links are reported."""
        if self._has_links:
            return list(self._linked)
        for peer in [peer for peer, at in self._heard.items() if at < now - _HEARD_FOR]:
            del self._heard[peer]
            self._one_room = None
        return list(self._heard)

    def is_alone(self) -> bool:
        return self._has_links and not self._linked

    def own_list(self, now: Instant) -> tuple[int, tuple[NodeId, ...] | None]:
        """Return the version of this node's list of neighbours, and the list if this transmission carries it.

        The list is part of the first transmissions after a change, and of one after `repeat_list`.
        """
        if not self._unchanged:
            own = tuple(sorted(self.neighbours(now)))
            self._unchanged = self._has_links
            if own != self._own:
                self._own = own
                self._version = 1 + crc32(repr(own).encode())
                self._repeats = _LIST_REPEATS
        if not self._repeats:
            return self._version, None
        self._repeats -= 1
        return self._version, self._own

    def repeat_list(self) -> None:
        """Make the next transmission carry the list once more, because a neighbour may not have it."""
        self._repeats = max(self._repeats, 1)

    def is_covered(self, reached: Set[NodeId], now: Instant) -> bool:
        if self._has_links:
            return self._linked.keys() <= reached
        return all(peer in reached for peer in self.neighbours(now))

    def is_one_room(self, now: Instant) -> bool:
        """Does this node hear every neighbour of its neighbours, as far as their lists are known?

        A neighbour that was silent since others came has a shorter list here, which is no evidence. The answer
        is kept until neighbours or lists change: to compute it took a third of a swarm world of 64 nodes.
        """
        neighbours = self.neighbours(now)
        if self._one_room is None:
            room = {self._me, *neighbours}
            self._one_room = all(members <= room for _, members in self._lists.values())
        return self._one_room

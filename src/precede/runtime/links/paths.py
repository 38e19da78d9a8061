"""Tracks which addresses are proven, bounds the bytes to the others, and moves members to new addresses.

An address is proven when a member answered a challenge from it with data that only this member knows. Before
that, at most three times the bytes that came from an address go to it, so an attacker who forges a victim's
address gains nothing. A member whose frames come from a new address moves there only after both addresses were
challenged. The old one stays if it answers in time, so a faster relay does not attract the traffic.
"""

import os
from collections import OrderedDict
from typing import Final, NamedTuple

from precede.core.identity import NodeId
from precede.runtime.transports.transport import Where

AMPLIFICATION: Final = 3
OLD_PATH_ANSWERS_WITHIN_S: Final = 0.5
CHALLENGE_EXPIRES_S: Final = 3.0
MOST_ADDRESSES: Final = 4096


class _Move(NamedTuple):
    """A challenge under way: the token and address of the old path and of the new one."""

    old: tuple[bytes, Where]
    new: tuple[bytes, Where]
    began: float
    new_answered: bool


class Paths:
    """Budgets of unproven addresses, and challenges under way."""

    def __init__(self) -> None:
        self._budgets: OrderedDict[Where, int] = OrderedDict()
        self._proven: OrderedDict[Where, None] = OrderedDict()
        self._moves: dict[NodeId, _Move] = {}

    def heard(self, where: Where, size: int) -> None:
        """Record that `size` bytes came from an address. An unproven address may get three times as many."""
        if where in self._proven:
            return
        self._budgets[where] = self._budgets.get(where, 0) + AMPLIFICATION * size
        self._budgets.move_to_end(where)
        if len(self._budgets) > MOST_ADDRESSES:
            self._budgets.popitem(last=False)

    def may_send(self, where: Where, size: int) -> bool:
        """May `size` bytes go to an address? They are spent from its budget, if it is unproven."""
        if where in self._proven:
            return True
        budget = self._budgets.get(where, 0)
        if budget < size:
            return False
        self._budgets[where] = budget - size
        return True

    def prove(self, where: Where) -> None:
        """Mark an address as proven: a member answered from it, or the application named it."""
        self._budgets.pop(where, None)
        self._proven[where] = None
        self._proven.move_to_end(where)
        if len(self._proven) > MOST_ADDRESSES:
            self._proven.popitem(last=False)

    def challenge(self, peer: NodeId, old: Where, new: Where, now: float) -> list[tuple[Where, bytes]]:
        """Return challenges for both addresses of a member that moves, unless earlier ones are open."""
        move = self._moves.get(peer)
        if move is not None and now - move.began < CHALLENGE_EXPIRES_S:
            return []
        move = self._moves[peer] = _Move((os.urandom(8), old), (os.urandom(8), new), now, False)
        return [(where, token) for token, where in (move.old, move.new)]

    def answered(self, peer: NodeId, token: bytes, where: Where, now: float) -> Where | None:
        """Process an answer to a challenge. Returns the address to use from now on if that decides it."""
        move = self._moves.get(peer)
        if move is None:
            return None
        if (token, where) == move.old and now - move.began <= OLD_PATH_ANSWERS_WITHIN_S:
            del self._moves[peer]
        elif (token, where) == move.new:
            self._moves[peer] = move._replace(new_answered=True)
            return self.due(peer, now)
        return None

    def due(self, peer: NodeId, now: float) -> Where | None:
        """Return the new address once it has answered and the old one has not in time."""
        move = self._moves.get(peer)
        if move is None or now - move.began <= OLD_PATH_ANSWERS_WITHIN_S:
            return None
        if move.new_answered:
            del self._moves[peer]
            return move.new[1]
        if now - move.began > CHALLENGE_EXPIRES_S:
            del self._moves[peer]
        return None

"""Gets the history of neighbours: messages that this member lacks and that nobody carries any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from precede.core.identity import NodeId
from precede.runtime.transfer.giver import Sender
from precede.runtime.transfer.packets import MOST_TOPS, HistoryAsk, HistoryPart

ANSWER_S: Final = 10.0
TURN_S: Final = 60.0
"""How long one neighbour is asked while there are others: it may lie, and give a history without an end."""
_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 60.0


class HistoryWants:
    """Asks one neighbour after the other for its history, while this member's node lacks messages.

    `tops` is what the node has delivered; `take` hands a packet to the node, which checks it like any other.
    """

    def __init__(
        self,
        tops: Callable[[], Sequence[tuple[NodeId, int, int]] | None],
        take: Callable[[bytes, NodeId], None],
        send: Sender,
    ) -> None:
        self._tops = tops
        self._take = take
        self._send = send
        self._peer: NodeId | None = None
        self._after = 0
        self._began_at = 0.0
        self._asked_at = 0.0
        self._tried: dict[NodeId, None] = {}
        self._pause_until = 0.0
        self._pause = _PAUSE_S
        self._got = 0
        self._asks_in_vain = 0

    def step(self, lacks: bool, neighbours: Sequence[NodeId]) -> None:
        """Ask for the next part, or begin with a neighbour if messages are missing. Call it at intervals."""
        now = time.monotonic()
        if self._peer is not None:
            others = [peer for peer in neighbours if peer != self._peer]
            if others and now - self._began_at > TURN_S:
                self._tried[self._peer] = None
                self._begin(next((peer for peer in others if peer not in self._tried), others[0]), now)
            elif now - self._asked_at > ANSWER_S:
                if self._asks_in_vain == 2:
                    self._end(failed=True)
                else:
                    self._asks_in_vain += 1
                    self._ask()
            return
        if not lacks or now < self._pause_until:
            return
        fresh = [peer for peer in neighbours if peer not in self._tried]
        if fresh:
            self._begin(fresh[0], now)
        elif self._tried:
            self._tried.clear()
            self._pause_until = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)

    def _begin(self, peer: NodeId, now: float) -> None:
        """Ask a neighbour for its whole history; it leaves out what this member has."""
        self._peer, self._after, self._got = peer, 0, 0
        self._began_at = now
        self._asks_in_vain = 0
        self._ask()

    def link_up(self, peer: NodeId) -> None:
        """Ask again for what was on its way when a link went down; a link that is up loses nothing."""
        if peer == self._peer:
            self._ask()

    def _ask(self) -> None:
        assert self._peer is not None
        tops = self._tops()
        if tops is None:
            self._end(failed=True)
            return
        self._asked_at = time.monotonic()
        self._send(HistoryAsk(self._after, tuple(tops[:MOST_TOPS])), self._peer)

    def part(self, part: HistoryPart, sender: NodeId) -> None:
        """Hand the packets of a part to the node, and ask for the next one."""
        if sender != self._peer or part.after != self._after:
            return
        if part.last < part.after or (part.last == part.after and not part.ends):
            return  # no honest member sends that: each part covers at least one place, or is the last one
        self._asked_at = time.monotonic()
        self._asks_in_vain = 0
        self._after = part.last
        self._got += len(part.packets)
        for packet in part.packets:
            self._take(packet, sender)
        if part.ends:
            self._end(failed=not self._got)
        elif not part.more:
            self._ask()

    def _end(self, *, failed: bool) -> None:
        """Finish with a neighbour. If it had nothing, ask the next one; ask all of them ever more rarely."""
        assert self._peer is not None
        self._tried[self._peer] = None
        self._peer = None
        if not failed:
            self._pause = _PAUSE_S
            self._pause_until = time.monotonic() + _PAUSE_S  # the node takes some time with what it got

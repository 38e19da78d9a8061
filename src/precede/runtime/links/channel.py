"""A reliable, ordered channel to one neighbour over frames that may be lost, doubled or overtaken.

Pieces are numbered; the receiver takes them in order and says how far it has come; what is not acknowledged is
sent again. A channel lives as long as both ends think that the link is up: each end names its own life by a
session number and repeats the other's, so an end that began anew is noticed (docs/reference/wire.md). What
waits is bounded, and a keyed packet that still waits can be replaced or taken back.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from precede.core.effects import Key

HEADER: Final = struct.Struct(">IIII")
"""Own session, the neighbour's session, number of this piece (0: none), number of the last piece received."""

WINDOW: Final = 64
MOST_QUEUED: Final = 4096
_ACK_EVERY: Final = 8
_ACK_WITHIN: Final = 0.02
_FIRST_WAIT: Final = 0.15
_LONGEST_WAIT: Final = 2.0
_REPEATED_ACKS: Final = 3


class Queued:
    """A packet on its way: its pieces, how many have left, and under which key it can be taken back."""

    __slots__ = ("gone", "key", "last", "pieces")

    def __init__(self, pieces: Sequence[bytes], key: Key | None) -> None:
        self.pieces = pieces
        self.key = key
        self.gone = 0
        self.last = 0


class Channel:
    """One end. `transmit` sends a header and a piece; `left` is told when a keyed packet has left."""

    def __init__(
        self, session: int, transmit: Callable[[bytes, bytes], None], left: Callable[[Key, bool], None]
    ) -> None:
        self.session = session
        self.theirs = 0
        self.confirmed = False
        self._transmit = transmit
        self._left = left
        self._queue: deque[Queued] = deque()
        self._queued = 0
        self._flying: dict[int, bytes] = {}
        self._gone: deque[Queued] = deque()
        self._next = 1
        self._received = 0
        self._early: dict[int, bytes] = {}
        self._unacknowledged = 0
        self._last_ack = 0
        self._repeated = 0
        self._wait = _FIRST_WAIT
        self._resend: asyncio.TimerHandle | None = None
        self._acking: asyncio.TimerHandle | None = None

    # -- out ---------------------------------------------------------------------------------------------

    def send(self, pieces: Sequence[bytes], key: Key | None = None) -> bool:
        """Queue a packet; False when too much waits already."""
        if key is not None:
            for queued in self._queue:
                if queued.key == key and not queued.gone:
                    self._queued += len(pieces) - len(queued.pieces)
                    queued.pieces = pieces
                    return True
        if self._queued and self._queued + len(pieces) > MOST_QUEUED:
            return False
        self._queue.append(Queued(pieces, key))
        self._queued += len(pieces)
        self._pump()
        return True

    def cancel(self, key: Key) -> None:
        """Take back what has not left."""
        for queued in self._queue:
            if queued.key == key and not queued.gone:
                self._queue.remove(queued)
                self._queued -= len(queued.pieces)
                return

    def _pump(self) -> None:
        while self._queue and len(self._flying) < WINDOW:
            queued, number = self._queue[0], self._next
            self._next += 1
            self._queued -= 1
            piece = queued.pieces[queued.gone]
            queued.gone += 1
            self._flying[number] = piece
            if queued.gone == len(queued.pieces):
                queued.last = number
                self._gone.append(self._queue.popleft())
            self._put(number, piece)
            if queued.last and queued.key is not None:
                self._left(queued.key, True)  # may send again, through this very function
        if self._flying and self._resend is None:
            self._resend = asyncio.get_running_loop().call_later(self._wait, self._repeat)

    def _put(self, number: int, piece: bytes) -> None:
        self._unacknowledged = 0
        self._transmit(HEADER.pack(self.session, self.theirs, number, self._received), piece)

    def _repeat(self) -> None:
        """Nothing was acknowledged for a while: the oldest pieces again, ever more rarely."""
        self._resend = None
        if not self._flying:
            return
        for number in list(self._flying)[:_ACK_EVERY]:
            self._put(number, self._flying[number])
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._resend = asyncio.get_running_loop().call_later(self._wait, self._repeat)

    def _acknowledged(self, upto: int, carries: bool) -> None:
        if upto >= self._next:
            return
        if upto > self._last_ack:
            for number in range(self._last_ack + 1, upto + 1):
                self._flying.pop(number, None)
            self._last_ack = upto
            while self._gone and self._gone[0].last <= upto:
                self._gone.popleft()
            self._repeated, self._wait = 0, _FIRST_WAIT
            if self._resend is not None:
                self._resend.cancel()
                self._resend = None
            self._pump()
        elif self._flying and not carries:
            self._repeated += 1
            if self._repeated == _REPEATED_ACKS:
                first = next(iter(self._flying))
                self._put(first, self._flying[first])

    # -- in ----------------------------------------------------------------------------------------------

    def received(self, number: int, ack: int, piece: bytes) -> Sequence[bytes]:
        """What can be taken now, in order."""
        self._acknowledged(ack, number > 0)
        if number == 0:
            return ()
        if number != self._received + 1:
            if 0 < number - self._received <= 2 * WINDOW:
                self._early.setdefault(number, piece)
            self.acknowledge()
            return ()
        ready = [piece]
        self._received = number
        while self._early and (early := self._early.pop(self._received + 1, None)) is not None:
            self._received += 1
            ready.append(early)
        self._unacknowledged += len(ready)
        if self._unacknowledged >= _ACK_EVERY:
            self.acknowledge()
        elif self._acking is None:
            self._acking = asyncio.get_running_loop().call_later(_ACK_WITHIN, self._ack_late)
        return ready

    def acknowledge(self) -> None:
        """Say how far we have come, now; also a sign of life, and how the sessions are agreed on."""
        self._put(0, b"")

    def _ack_late(self) -> None:
        self._acking = None
        if self._unacknowledged:
            self.acknowledge()

    def begin_again(self, theirs: int) -> None:
        """The neighbour counts from the beginning."""
        self.theirs = theirs
        self._received = 0
        self._early.clear()

    def pause(self) -> None:
        """The link is down for now: nothing is sent until `resume`, and nothing is forgotten."""
        for handle in (self._resend, self._acking):
            if handle is not None:
                handle.cancel()
        self._resend = self._acking = None

    def resume(self) -> None:
        """What was under way goes again under its numbers: the other end knows which of it has come."""
        self._wait = _FIRST_WAIT
        self._repeat()
        self._pump()

    def close(self) -> list[Queued]:
        """The link is down; which packets may not have arrived, those that left first."""
        self.pause()
        rest = [*self._gone, *self._queue]
        self._queue.clear()
        self._gone.clear()
        self._flying.clear()
        self._queued = 0
        return rest

    @property
    def worn_out(self) -> bool:
        """No numbers are left: the link must begin again."""
        return self._next > 0xFFFF0000

    @property
    def queued(self) -> int:
        """Pieces that wait to leave or to be acknowledged."""
        return self._queued + len(self._flying)

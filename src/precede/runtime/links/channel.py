"""A reliable, ordered channel to one neighbour, over frames that may be lost, duplicated or reordered.

Pieces are numbered. The receiver delivers them in order and acknowledges the last one in order; the sender
retransmits pieces that are not acknowledged. Each end has a session number and repeats the other's in every
frame, so an end notices when the other has started anew (docs/reference/wire.md). The queue is bounded. A keyed
packet that is still queued can be replaced or cancelled.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from precede.core.effects import Key
from precede.core.identity import NodeId

HEADER: Final = struct.Struct(">IIII")
"""Own session, the neighbour's session, number of this piece (0: none), last piece received in order."""

WINDOW: Final = 64
MOST_QUEUED: Final = 4096
MOST_HELD: Final = 1024
_ACK_EVERY: Final = 8
_ACK_WITHIN: Final = 0.02
_FIRST_WAIT: Final = 0.15
_LONGEST_WAIT: Final = 2.0
_REPEATED_ACKS: Final = 3


class Queued:
    """A packet in a channel: its pieces, how many were sent, the last one's number (or 0), its key."""

    __slots__ = ("key", "last", "pieces", "sent")

    def __init__(self, pieces: Sequence[bytes], key: Key | None) -> None:
        self.pieces = pieces
        self.key = key
        self.sent = 0
        self.last = 0


class HeldPackets:
    """Packets for neighbours whose link is down, within a bound for each of them."""

    def __init__(self) -> None:
        self._packets: dict[NodeId, deque[Queued]] = {}

    def add(self, node: NodeId, queued: Queued) -> bool:
        """Keep a packet and return True; return False if too many are kept for this neighbour."""
        held = self._packets.setdefault(node, deque())
        if len(held) >= MOST_HELD:
            return False
        held.append(queued)
        return True

    def take(self, node: NodeId) -> deque[Queued]:
        return self._packets.pop(node, deque())


class Channel:
    """One end of a channel. `transmit(header, piece)` sends a frame; `left(key, ok)` reports keyed packets.

    `pace` multiplies all waits, for a medium that is slower than a LAN.
    """

    def __init__(
        self,
        session: int,
        transmit: Callable[[bytes, bytes], None],
        left: Callable[[Key, bool], None],
        pace: float = 1.0,
    ) -> None:
        self.session = session
        self.theirs = 0
        self.confirmed = False
        self._transmit = transmit
        self._left = left
        self._pace = pace
        self._queue: deque[Queued] = deque()
        self._queued = 0
        self._unacknowledged_pieces: dict[int, bytes] = {}
        self._sent_packets: deque[Queued] = deque()
        self._next = 1
        self._received = 0
        self._early: dict[int, bytes] = {}
        self._to_acknowledge = 0
        self._last_ack = 0
        self._repeated = 0
        self._wait = _FIRST_WAIT
        self._resend: asyncio.TimerHandle | None = None
        self._acking: asyncio.TimerHandle | None = None

    # -- out ---------------------------------------------------------------------------------------------

    def send(self, pieces: Sequence[bytes], key: Key | None = None) -> bool:
        """Queue a packet, or replace an unsent one with the same key; return False if the queue is full."""
        if key is not None:
            for queued in self._queue:
                if queued.key == key and not queued.sent:
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
        """Remove a queued packet of which no piece was sent."""
        for queued in self._queue:
            if queued.key == key and not queued.sent:
                self._queue.remove(queued)
                self._queued -= len(queued.pieces)
                return

    def _pump(self) -> None:
        """Send queued pieces while the window has room."""
        while self._queue and len(self._unacknowledged_pieces) < WINDOW:
            queued, number = self._queue[0], self._next
            self._next += 1
            self._queued -= 1
            piece = queued.pieces[queued.sent]
            queued.sent += 1
            self._unacknowledged_pieces[number] = piece
            if queued.sent == len(queued.pieces):
                queued.last = number
                self._sent_packets.append(self._queue.popleft())
            self._put(number, piece)
            if queued.last and queued.key is not None:
                self._left(queued.key, True)  # may send again, through this very function
        if self._unacknowledged_pieces and self._resend is None:
            self._resend = asyncio.get_running_loop().call_later(self._wait * self._pace, self._repeat)

    def _put(self, number: int, piece: bytes) -> None:
        """Send one piece; its header acknowledges the pieces received."""
        self._to_acknowledge = 0
        self._transmit(HEADER.pack(self.session, self.theirs, number, self._received), piece)

    def _repeat(self) -> None:
        """Send the oldest pieces again, with exponential backoff: no acknowledgement came in time."""
        self._resend = None
        if not self._unacknowledged_pieces:
            return
        for number in list(self._unacknowledged_pieces)[:_ACK_EVERY]:
            self._put(number, self._unacknowledged_pieces[number])
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._resend = asyncio.get_running_loop().call_later(self._wait * self._pace, self._repeat)

    def _acknowledged(self, upto: int, carries: bool) -> None:
        """Remove the pieces up to a number, which the neighbour has. `carries`: the same frame brought a piece.

        Three acknowledgements of the same piece in a row mean that the next one is lost: send it again at once.
        """
        if upto >= self._next:
            return
        if upto > self._last_ack:
            for number in range(self._last_ack + 1, upto + 1):
                self._unacknowledged_pieces.pop(number, None)
            self._last_ack = upto
            while self._sent_packets and self._sent_packets[0].last <= upto:
                self._sent_packets.popleft()
            self._repeated, self._wait = 0, _FIRST_WAIT
            if self._resend is not None:
                self._resend.cancel()
                self._resend = None
            self._pump()
        elif self._unacknowledged_pieces and not carries:
            self._repeated += 1
            if self._repeated == _REPEATED_ACKS:
                first = next(iter(self._unacknowledged_pieces))
                self._put(first, self._unacknowledged_pieces[first])

    # -- in ----------------------------------------------------------------------------------------------

    def received(self, number: int, ack: int, piece: bytes) -> Sequence[bytes]:
        """Process a frame and return the pieces that are now in order."""
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
        self._to_acknowledge += len(ready)
        if self._to_acknowledge >= _ACK_EVERY:
            self.acknowledge()
        elif self._acking is None:
            self._acking = asyncio.get_running_loop().call_later(_ACK_WITHIN * self._pace, self._ack_late)
        return ready

    def acknowledge(self) -> None:
        """Send an acknowledgement now. It also tells the neighbour the session numbers of both ends."""
        self._put(0, b"")

    def _ack_late(self) -> None:
        self._acking = None
        if self._to_acknowledge:
            self.acknowledge()

    def begin_again(self, theirs: int) -> None:
        """Expect pieces from 1 on: the neighbour has a new session."""
        self.theirs = theirs
        self._received = 0
        self._early.clear()

    def pause(self) -> None:
        """Stop the timers while the link is down, and keep all state until `resume`."""
        for handle in (self._resend, self._acking):
            if handle is not None:
                handle.cancel()
        self._resend = self._acking = None

    def resume(self) -> None:
        """Retransmit unacknowledged pieces under the same numbers, now that the link is up again."""
        self._wait = _FIRST_WAIT
        self._repeat()
        self._pump()

    def close(self) -> list[Queued]:
        """End the channel and return the packets that may not have arrived, in the order of sending."""
        self.pause()
        rest = [*self._sent_packets, *self._queue]
        self._queue.clear()
        self._sent_packets.clear()
        self._unacknowledged_pieces.clear()
        self._queued = 0
        return rest

    @property
    def worn_out(self) -> bool:
        """Whether the piece numbers are used up, so that the link must start again."""
        return self._next > 0xFFFF0000

    @property
    def queued(self) -> int:
        return self._queued + len(self._unacknowledged_pieces)

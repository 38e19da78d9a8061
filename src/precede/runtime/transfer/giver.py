"""What a member gives to others: parts of its history, and snapshots of its application.

A snapshot is made when the application is at rest: it has processed every delivered message and asks for the
next. Then its state is exactly the position of the node in the order, which goes with it as the cut.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from precede.core.identity import NodeId
from precede.core.messages import Packet
from precede.core.node import Node
from precede.runtime.history.kept import Kept, KeptMessages
from precede.runtime.transfer.packets import (
    MOST_CHUNK_BYTES,
    MOST_CUT_BYTES,
    MOST_PART_PACKETS,
    MOST_SNAPSHOT_BYTES,
    HistoryAsk,
    HistoryPart,
    SnapshotAsk,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotOffer,
    TransferPacket,
)
from precede.runtime.transfer.snapshot import OnSnapshot, digest_of

PARTS_TOGETHER: Final = 8
"""Parts or chunks that follow each other without another request."""
MOST_WAITING: Final = 64
MOST_SNAPSHOTS: Final = 2
MOST_ROWS_PER_STEP: Final = 8_192
"""Messages of the history that are read for others between two steps: a few per cent of a processor's time."""
_PART_BYTES: Final = 8_000
_PACKET_BYTES: Final = 4_000
_PAGE: Final = 64
_REUSED_S: Final = 10.0
_KEPT_S: Final = 600.0
_log: Final = logging.getLogger("precede")


class Sender(Protocol):
    """Sends a packet of state transfer to a neighbour."""

    def __call__(self, packet: TransferPacket, to: NodeId) -> None: ...


class Made:
    """A snapshot that was made here: its bytes, its offer, when it was made and last used, and by whom."""

    def __init__(self, state: bytes, offer: SnapshotOffer, now: float) -> None:
        self.state = state
        self.offer = offer
        self.made_at = self.used_at = now
        self.users: dict[NodeId, None] = {}


class Giver:
    """Answers the requests of others. `sign` signs an offer, if this member has an identity."""

    def __init__(
        self,
        node: Node,
        history: Callable[[], KeptMessages],
        encode: Callable[[Packet], bytes],
        send: Sender,
        on_snapshot: OnSnapshot | None,
        sign: Callable[[SnapshotOffer], bytes],
    ) -> None:
        self._node = node
        self._history = history
        self._encode = encode
        self._send = send
        self._on_snapshot = on_snapshot
        self._sign = sign
        self._made: dict[int, Made] = {}
        self._waiting: dict[NodeId, None] = {}
        self._asks: dict[NodeId, HistoryAsk] = {}
        self._rows = 0

    # -- history -----------------------------------------------------------------------------------------

    def asked_for_history(self, ask: HistoryAsk, peer: NodeId) -> None:
        """Answer now, or at the next step if others wait or too much was read since the last one."""
        if not self._asks and self._rows < MOST_ROWS_PER_STEP:
            self._answer(ask, peer)
        elif peer in self._asks or len(self._asks) < MOST_WAITING:
            self._asks[peer] = ask  # the place in the queue stays

    def step(self) -> None:
        """Answer peers that wait, one after the other, and forget old snapshots. Call it at intervals."""
        self._rows = 0
        while self._asks and self._rows < MOST_ROWS_PER_STEP:
            peer = next(iter(self._asks))
            self._answer(self._asks.pop(peer), peer)
        self._forget_old()

    def _answer(self, ask: HistoryAsk, peer: NodeId) -> None:
        """Send the next parts of the history: only messages that the peer has not delivered."""
        own = self._node.delivered_tops()
        if own is None:
            return
        tops = {(source, incarnation): number for source, incarnation, number in ask.tops}
        place = ask.after
        if all(number <= tops.get((source, incarnation), 0) for source, incarnation, number in own):
            self._send(HistoryPart(place, place, False, True, ()), peer)  # the peer has all that is here
            return
        for left in range(PARTS_TOGETHER - 1, -1, -1):
            last, ends, packets = self._part(place, tops)
            more = left > 0 and not ends and self._rows < MOST_ROWS_PER_STEP
            self._send(HistoryPart(place, last, more, ends, tuple(packets)), peer)
            place = last
            if not more:
                return

    def _part(self, after: int, tops: dict[tuple[NodeId, int], int]) -> tuple[int, bool, list[bytes]]:
        """Return the last place that a part covers, whether nothing follows, and its packets."""
        packets: list[bytes] = []
        chosen: list[Kept] = []
        size = total = 0
        place, ends = after, False
        while total + size < _PART_BYTES and len(packets) < MOST_PART_PACKETS - 1:
            if self._rows >= MOST_ROWS_PER_STEP:
                break
            page = self._history().read(place, _PAGE)
            self._rows += _PAGE
            for kept in page:
                place = kept.place
                id = kept.message.id
                if id.number <= tops.get((id.source, id.incarnation), 0):
                    continue
                chosen.append(kept)
                size += len(kept.message.payload) + 200
                if size >= _PACKET_BYTES:
                    packets += self._packed(chosen)
                    total, size, chosen = total + size, 0, []
                if total + size >= _PART_BYTES or len(packets) >= MOST_PART_PACKETS - 1:
                    break
            if len(page) < _PAGE:
                ends = not page or place == page[-1].place
                break
        packets += self._packed(chosen)
        return place, ends, packets

    def _packed(self, chosen: list[Kept]) -> Iterator[bytes]:
        messages = [(kept.message, kept.content) for kept in chosen]
        packet = self._node.history_packet(messages) if messages else None
        if packet is not None:
            yield self._encode(packet)

    # -- snapshots ---------------------------------------------------------------------------------------

    def asked_for_snapshot(self, ask: SnapshotAsk, peer: NodeId) -> None:
        """Offer the snapshot that is asked for, or a recent one; else make one when the application rests."""
        now = time.monotonic()
        made = self._made.get(ask.number) or next(
            (each for each in self._made.values() if now - each.made_at <= _REUSED_S), None
        )
        if made is not None:
            self._use(made, peer)
            self._send(made.offer, peer)
        elif self._on_snapshot is not None and len(self._waiting) < MOST_WAITING:
            self._waiting[peer] = None

    @property
    def is_waited_for(self) -> bool:
        return bool(self._waiting)

    def make(self) -> None:
        """Make a snapshot for the peers that wait for one. Call it when the application is at rest."""
        waiting, self._waiting = self._waiting, {}
        cut = self._node.cut()
        if self._on_snapshot is None or cut is None or len(cut) > MOST_CUT_BYTES:
            return
        try:
            state = self._on_snapshot()
        except Exception:
            _log.exception("on_snapshot raised; no snapshot is given")
            return
        if not isinstance(state, bytes) or len(state) > MOST_SNAPSHOT_BYTES:
            _log.error("on_snapshot: expected at most %d bytes, got %.80r", MOST_SNAPSHOT_BYTES, state)
            return
        unsigned = SnapshotOffer(secrets.randbits(62) + 1, len(state), digest_of(state), cut, b"")
        offer = msgspec.structs.replace(unsigned, signature=self._sign(unsigned))
        made = self._made[offer.number] = Made(state, offer, time.monotonic())
        for peer in waiting:
            self._use(made, peer)
            self._send(offer, peer)
        while len(self._made) > MOST_SNAPSHOTS:
            oldest = sorted(self._made.values(), key=lambda each: (len(each.users), each.used_at))[0]
            del self._made[oldest.offer.number]

    def _use(self, made: Made, peer: NodeId) -> None:
        """Note that a peer fetches this snapshot, and no other: one peer alone does not drive others' out."""
        for each in self._made.values():
            each.users.pop(peer, None)
        made.users[peer] = None
        made.used_at = time.monotonic()

    def _forget_old(self) -> None:
        """Forget snapshots that nobody fetched for some minutes."""
        now = time.monotonic()
        for number in [number for number, made in self._made.items() if now - made.used_at > _KEPT_S]:
            del self._made[number]

    def asked_for_chunks(self, fetch: SnapshotFetch, peer: NodeId) -> None:
        made = self._made.get(fetch.number)
        if made is None:
            return
        self._use(made, peer)
        ends = [fetch.offset + MOST_CHUNK_BYTES * count for count in range(1, PARTS_TOGETHER + 1)]
        begins = [fetch.offset, *ends[:-1]]
        for begin, end in zip(begins, ends, strict=True):
            more = end < ends[-1] and end < made.offer.size
            self._send(SnapshotChunk(fetch.number, begin, more, made.state[begin:end]), peer)
            if not more:
                return

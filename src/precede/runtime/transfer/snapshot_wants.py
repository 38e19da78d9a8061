"""Gets a snapshot of another member: asks, checks the offer, collects the bytes, and restores them at rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from precede.core.identity import NodeId
from precede.runtime.transfer.giver import Sender
from precede.runtime.transfer.packets import (
    MOST_CHUNK_BYTES,
    SnapshotAsk,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotOffer,
)
from precede.runtime.transfer.spool import Source, Spool

OFFER_S: Final = 5.0
CHUNK_S: Final = 10.0
GIVER_GONE_S: Final = 60.0
_PAUSE_S: Final = 2.0


class Checks(Protocol):
    """What decides whether an offer is taken."""

    def is_trusted(self, giver: NodeId) -> bool: ...

    def is_signed(self, giver: NodeId, offer: SnapshotOffer) -> bool: ...

    def can_adopt(self, cut: bytes) -> bool: ...


class SnapshotWants:
    """The transfer of one snapshot at a time. `refused` counts offers that were not taken, by reason."""

    def __init__(self, spool: Spool, checks: Checks, send: Sender, refused: Callable[[str], None]) -> None:
        self.spool = spool
        self._checks = checks
        self._send = send
        self._refused = refused
        self._asked: NodeId | None = None
        self._asked_at = 0.0
        self._fetched_at = 0.0
        self._heard_at = time.monotonic()
        self._tried: dict[NodeId, None] = {}
        self._pause_until = 0.0
        self.in_vain = 0
        """How often a neighbour was asked since the last offer."""

    def step(self, lacks: bool, neighbours: Sequence[NodeId]) -> None:
        """Go on with a transfer, or begin one if messages are missing. Call it at intervals."""
        now = time.monotonic()
        if self.spool.is_complete:
            return
        if self.spool.source is not None:
            self._go_on(self.spool.source, neighbours, now)
        elif lacks and now >= self._pause_until and now - self._asked_at > OFFER_S:
            self._ask(neighbours, now)

    def _go_on(self, source: Source, neighbours: Sequence[NodeId], now: float) -> None:
        if now - self._heard_at > GIVER_GONE_S:
            self.drop("giver_gone")
        elif source.giver in neighbours and now - self._fetched_at > CHUNK_S:
            self._fetch(source)

    def link_up(self, peer: NodeId) -> None:
        """Ask again for what was on its way when a link went down; a link that is up loses nothing."""
        source = self.spool.source
        if source is not None and source.giver == peer and not self.spool.is_complete:
            self._fetch(source)
        elif peer == self._asked:
            self._asked_at = time.monotonic()
            self._send(SnapshotAsk(0), peer)

    def _ask(self, neighbours: Sequence[NodeId], now: float) -> None:
        trusted = [peer for peer in neighbours if self._checks.is_trusted(peer)]
        fresh = [peer for peer in trusted if peer not in self._tried]
        if not fresh:
            self._tried.clear()
            fresh = trusted
        if fresh:
            self._asked, self._asked_at = fresh[0], now
            self._tried[fresh[0]] = None
            self.in_vain += 1
            self._send(SnapshotAsk(0), fresh[0])

    def _fetch(self, source: Source) -> None:
        self._fetched_at = time.monotonic()
        self._send(SnapshotFetch(source.offer.number, self.spool.size), source.giver)

    def offered(self, offer: SnapshotOffer, sender: NodeId) -> None:
        """Take an offer that was asked for, if its maker signed it and the node can adopt its cut."""
        if sender != self._asked or self.spool.source is not None:
            return
        self._asked = None
        self.in_vain = 0
        if not self._checks.is_signed(sender, offer):
            self._refused("snapshot_forged")
        elif not self._checks.can_adopt(offer.cut):
            self._refused("snapshot_unfit")
        else:
            source = Source(sender, offer)
            self.spool.begin(source)
            self._heard_at = time.monotonic()
            if offer.size:
                self._fetch(source)

    def chunk(self, chunk: SnapshotChunk, sender: NodeId) -> None:
        """Append the next bytes of the snapshot, and ask for more."""
        source = self.spool.source
        if source is None or (sender, chunk.number) != (source.giver, source.offer.number):
            return
        if chunk.offset != self.spool.size:
            return
        if len(chunk.data) != min(MOST_CHUNK_BYTES, source.offer.size - self.spool.size):
            self.drop("snapshot_forged")  # no member sends less: it would keep this one waiting, byte by byte
            return
        self._heard_at = self._fetched_at = time.monotonic()
        self.spool.add(chunk.data)
        if not chunk.more and not self.spool.is_complete:
            self._fetch(source)

    def drop(self, reason: str) -> None:
        """Give up the snapshot, and ask again after a pause."""
        self._refused(reason)
        self.spool.clear()
        self._pause_until = time.monotonic() + _PAUSE_S

    def done(self) -> None:
        """Forget the snapshot, because it was restored."""
        self.spool.clear()
        self._tried.clear()

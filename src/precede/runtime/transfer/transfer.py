"""State transfer of one member: connects what it gives and what it wants to its node, links and application.

A snapshot is restored, and one is made, only while the application is at rest: it has processed every message
that was handed to it. Restoring is two steps: `on_restore`, then one commit with which the node goes on at the
cut. A crash between the two repeats both at the next start, before the application gets a message.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from precede.core.errors import StoreFailed
from precede.core.identity import NodeId
from precede.runtime.deliveries import Deliveries, MemberState
from precede.runtime.driver import Driver
from precede.runtime.links.authorship import Authors
from precede.runtime.links.neighbours import Links
from precede.runtime.names import MemberNames
from precede.runtime.notices import Notices
from precede.runtime.settings import MemberSettings
from precede.runtime.transfer.giver import Giver
from precede.runtime.transfer.history_wants import HistoryWants
from precede.runtime.transfer.packets import (
    HistoryAsk,
    HistoryPart,
    SnapshotAsk,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotOffer,
    TransferPacket,
    decode,
    encode,
)
from precede.runtime.transfer.snapshot import Snapshot, signed_bytes
from precede.runtime.transfer.snapshot_wants import SnapshotWants
from precede.runtime.transfer.spool import Spool

_STEP_S: Final = 0.25
_MANY: Final = 12
"""After so many questions without an answer the application learns that it gets no snapshot: about a minute."""
_ADOPTED: Final = "adopted snapshot"
_log: Final = logging.getLogger("precede")


class Transfer:
    """The state transfer of one member. Its packets go over the links of a radio."""

    def __init__(
        self,
        group: str,
        settings: MemberSettings,
        names: MemberNames,
        state: MemberState,
        driver: Driver,
        deliveries: Deliveries,
        authors: Authors | None,
        links: Links,
        notices: Notices,
    ) -> None:
        self._group = group
        self._names = names
        self._state = state
        self._driver = driver
        self._deliveries = deliveries
        self._authors = authors
        self._links = links
        self._notices = notices
        self._on_restore = settings.on_restore
        self._clock = settings.clock
        self._trusted = None if settings.snapshot_from is None else [*settings.snapshot_from]
        node = driver.node
        self._giver = Giver(
            node, driver.store.history, driver.encode, self._send, settings.on_snapshot, self._sign
        )
        self._history = HistoryWants(node.delivered_tops, self._take, self._send)
        self._snapshots: SnapshotWants | None = None
        if self._on_restore is not None:
            node.await_state()
            store = settings.store
            path: Path | None = None if store is None else store.with_name(f"{store.name}-snapshot")
            self._snapshots = SnapshotWants(Spool(path), self, self._send, self._count)
        deliveries.on_rest = self._at_rest
        self._task: asyncio.Task[None] | None = None

    # -- running -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Finish a restoration that a crash has interrupted, and begin to look for what is missing."""
        self._at_rest()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._snapshots is not None:
            self._snapshots.spool.close()

    def link(self, peer: NodeId, up: bool) -> None:
        """Go on with a transfer from a neighbour that is heard again."""
        if up:
            self._history.link_up(peer)
        if up and self._snapshots is not None:
            self._snapshots.link_up(peer)

    async def _run(self) -> None:
        while self._state.failure is None:
            await asyncio.sleep(_STEP_S)
            try:
                self._step()
            except StoreFailed:
                return  # the driver has reported it
            except OSError as error:
                self._driver.fail(StoreFailed(f"the file of a snapshot: {error}"))

    def _step(self) -> None:
        driver = self._driver
        lacks = driver.node.lacks_state(self._clock())
        if self._snapshots is not None:
            self._snapshots.step(lacks, self._links.neighbours())
            if self._snapshots.in_vain >= _MANY:
                text = "messages are missing, and no neighbour that is trusted gives a snapshot"
                self._notices.give("no_snapshot", text)
        elif driver.node.delivered_tops() is not None:
            self._history.step(lacks, self._links.neighbours())
        self._giver.step()
        if self._deliveries.is_at_rest:
            self._at_rest()

    def _at_rest(self) -> None:
        """Restore a snapshot that is complete, or make one that is waited for: the application is at rest."""
        if self._snapshots is not None and self._snapshots.spool.is_complete:
            self._restore(self._snapshots)
        has_all = not len(self._deliveries) and not self._deliveries.has_gap
        if self._giver.is_waited_for and has_all and self._driver.is_settled:
            self._giver.make()

    def _restore(self, snapshots: SnapshotWants) -> None:
        """Restore the complete snapshot: the application first, then the node with its cut, in one commit."""
        source = snapshots.spool.source
        assert source is not None
        assert self._on_restore is not None
        driver, offer = self._driver, source.offer
        if driver.store.remembered(_ADOPTED, 0) == offer.number:
            snapshots.done()  # a crash came between the commit and this
            return
        if not driver.is_settled:
            return  # what was delivered in this turn is released first
        state = snapshots.spool.state()
        if state is None:
            snapshots.drop("snapshot_forged")
        elif not self.can_adopt(offer.cut):
            snapshots.drop("snapshot_unfit")
        else:
            name = self._names.name_of(source.giver)
            snapshot = Snapshot(state, name, self._authors is not None, driver.store.last_place)
            try:
                self._on_restore(snapshot)
            except Exception:
                _log.exception("on_restore raised; the snapshot of %s is dropped", snapshot.source)
                snapshots.drop("restore_raised")
                return
            driver.acknowledge(driver.store.last_place)  # the snapshot covers what was not taken
            self._deliveries.clear()
            driver.store.remember(_ADOPTED, offer.number)
            driver.run_at_once(lambda now: driver.node.adopt(offer.cut, now))
            snapshots.done()

    # -- packets -----------------------------------------------------------------------------------------

    def packet(self, data: bytes, sender: NodeId, to_all: bool) -> None:
        """Handle a packet of state transfer. One in a frame for everybody, or of no kind, is dropped."""
        packet = None if to_all else decode(data)
        if packet is None or self._state.phase != "open":
            self._count("transfer")
        else:
            self._receive(packet, sender)

    def _receive(self, packet: TransferPacket, sender: NodeId) -> None:
        with self._driver.failing():
            match packet:
                case HistoryAsk():
                    self._giver.asked_for_history(packet, sender)
                case HistoryPart():
                    self._history.part(packet, sender)
                case SnapshotAsk():
                    self._giver.asked_for_snapshot(packet, sender)
                case SnapshotFetch():
                    self._giver.asked_for_chunks(packet, sender)
                case SnapshotOffer() | SnapshotChunk() if self._snapshots is not None:
                    self._collect(self._snapshots, packet, sender)

    def _collect(self, snapshots: SnapshotWants, packet: SnapshotOffer | SnapshotChunk, sender: NodeId) -> None:
        try:
            if isinstance(packet, SnapshotOffer):
                snapshots.offered(packet, sender)
            else:
                snapshots.chunk(packet, sender)
        except OSError as error:
            raise StoreFailed(f"the file of a snapshot: {error}") from error

    def _send(self, packet: TransferPacket, to: NodeId) -> None:
        if not self._links.send(encode(packet), to):
            self._count("transfer_unsent")

    def _take(self, packet: bytes, sender: NodeId) -> None:
        self._driver.packet(packet, sender)

    def _count(self, reason: str) -> None:
        self._driver.dropped[reason] += 1

    # -- trust -------------------------------------------------------------------------------------------

    def _sign(self, offer: SnapshotOffer) -> bytes:
        if self._authors is None:
            return b""
        return self._authors.sign_bytes(signed_bytes(self._group, self._driver.node_id, offer))

    def is_trusted(self, giver: NodeId) -> bool:
        return self._trusted is None or self._names.name_of(giver) in self._trusted

    def is_signed(self, giver: NodeId, offer: SnapshotOffer) -> bool:
        content = signed_bytes(self._group, giver, offer)
        return self._authors is None or self._authors.is_signed_by(giver, offer.signature, content)

    def can_adopt(self, cut: bytes) -> bool:
        return self._driver.node.can_adopt(cut, self._clock())

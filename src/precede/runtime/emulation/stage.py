"""The sockets, stores and log folders of an emulation.

Every node's socket is bound before the first process starts and outlives the node, so a node that was killed
comes back at the same address. Datagrams sent to it in between are dropped.
"""

import socket
from collections.abc import Callable, Collection
from pathlib import Path

from precede.core.effects import RADIO, WIRED
from precede.core.identity import NodeId
from precede.core.plan import Plan
from precede.runtime.emulation.members import Clock
from precede.runtime.emulation.transfers import Transfers
from precede.runtime.group import Group
from precede.runtime.rows import write_segment
from precede.runtime.settings import MemberSettings
from precede.runtime.store import Store
from precede.runtime.transports.addresses import Address
from precede.runtime.transports.tcp import TcpTransport
from precede.runtime.transports.udp import UdpTransport

BEACON = 0.5


class Stage:
    """Opens the members of an emulation. `open_member` is `precede.api.open_member`."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        open_member: Callable[..., Group],
        clock: Clock,
        *,
        log_packets: bool = False,
        beacon: float = BEACON,
        keys: tuple[bytes, ...] = (),
        segment: float | None = None,
        killed: Collection[NodeId] | None = None,
    ) -> None:
        """Prepare the members and bind their sockets.

        With `segment`, each member writes a log file every so many seconds. Then only nodes that are in
        `killed` or start again have a store. Without `segment`, or if `killed` is None, every node has one.
        """
        self.plan = plan
        self.folder = folder
        self.clock = clock
        self._open_member = open_member
        self._log_packets = log_packets
        self._beacon = beacon
        self._keys = keys
        self._segment = segment
        self._kill_any = killed is None
        self._killed = frozenset(killed or ())
        self._sockets = {node: _bound(socket.SOCK_DGRAM) for node in range(len(plan.names))}
        self.places: dict[NodeId, Address] = {
            node: bound.getsockname() for node, bound in self._sockets.items()
        }
        wired = sorted({end for link in plan.links if link.over == WIRED for end in (link.a, link.b)})
        self._wires = {node: _bound(socket.SOCK_STREAM) for node in wired}
        self._standing = all(link.up and link.at == 0 for link in plan.links if link.over == RADIO)
        self._transfers: Transfers | None = None
        self._book = {name: node for node, name in enumerate(plan.names)}

    def open_group(self, node: NodeId) -> Group:
        """Make a member, ready to start. Without `segment` its rows stay in its store until `write_log`."""
        plan = self.plan
        name = plan.names[node]
        stored = self._needs_store(node)
        return self._open_member(
            plan.protocol,
            plan.roles[node],
            plan.run_id,
            name,
            {**plan.options, "durable": stored},
            UdpTransport(self.places[node], endpoint=self._sockets[node]),
            MemberSettings(
                members=[plan.names[member] for member in plan.members],
                book=self._book,
                keys=self._keys,
                store=self._store(node) if stored else None,
                synchronous=False,
                incarnation=0,
                log=None if self._segment is None else self.log / name,
                segment=self._segment,
                log_packets=self._log_packets,
                keep_rows=True,
                wired=self._wire(node),
                beacon=self._beacon,
                by_hand=True,
                patient=self._standing,
                clock=self.clock.now,
                speed=self.clock.speed,
                transfers=self.transfers(),
            ),
        )

    def transfers(self) -> Transfers:
        """Return this process's record of transfers. Each forked process makes its own."""
        if self._transfers is None:
            self._transfers = Transfers(self.folder / "transfers")
        return self._transfers

    def write_log(self, node: NodeId) -> int:
        """Move the rows of a stopped node from its store into its log folder; returns how many."""
        path = self._store(node)
        if not path.exists():
            return 0
        store = Store(path, synchronous=False)
        try:
            return write_segment(
                store, self.log / self.plan.names[node], self.plan.run_id, self.plan.names[node]
            )
        finally:
            store.close()

    @property
    def log(self) -> Path:
        """The folder of the event log: a folder of segments for each node."""
        return self.folder / "log"

    def close(self) -> None:
        for bound in (*self._sockets.values(), *self._wires.values()):
            bound.close()

    def _needs_store(self, node: NodeId) -> bool:
        """Does a node need a store: it may be killed, starts again, or writes its log only at the end?"""
        stays = [stay for stay in self.plan.stays if stay.node == node]
        return self._segment is None or self._kill_any or len(stays) != 1 or node in self._killed

    def _store(self, node: NodeId) -> Path:
        return self.folder / "stores" / f"{self.plan.names[node]}.db"

    def _wire(self, node: NodeId) -> TcpTransport | None:
        """Return the wired transport of a station; None for other nodes."""
        if node not in self._wires:
            return None
        ends = [(link.a, link.b) for link in self.plan.links if link.over == WIRED and node in (link.a, link.b)]
        others = dict.fromkeys(b if a == node else a for a, b in ends)
        peers = [self._wires[other].getsockname() for other in others]
        return TcpTransport(self._wires[node].getsockname(), peers, endpoint=self._wires[node])


def _bound(kind: socket.SocketKind) -> socket.socket:
    bound = socket.socket(socket.AF_INET, kind)
    if kind == socket.SOCK_DGRAM:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    bound.bind(("127.0.0.1", 0))
    return bound

"""What admission hands to the links above it: authentic data, and reports about neighbours."""

from collections.abc import Callable
from typing import NamedTuple

from precede.core.identity import NodeId
from precede.runtime.transports.transport import Where


class Arrived(NamedTuple):
    """Authentic data. `sender` is None for a frame to everybody, which any member could have made."""

    sender: NodeId | None
    data: bytes


class LinkEvents(NamedTuple):
    """Callbacks of admission: `send` transmits a frame, the others report events.

    A boot is a number that a member draws at each start. `on_ready(peer, boot, where)`: a session with a new
    boot of a member is confirmed; whatever was shared with an earlier boot is gone. `on_moved(peer, where)`: a
    member has proven a new address. `on_alive(peer)`: an authentic frame of a session came.
    `on_stranger(where)`: a member that was not introduced yet is at this address. `on_mismatch(where)`: a
    member with other terms is at this address.
    """

    send: Callable[[bytes, Where], None]
    on_ready: Callable[[NodeId, int, Where], None]
    on_moved: Callable[[NodeId, Where], None]
    on_alive: Callable[[NodeId], None]
    on_stranger: Callable[[Where], None]
    on_mismatch: Callable[[Where], None]

"""What an application may send, and when it has to wait before it sends more."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from precede.core.errors import Refused, StoreFailed
from precede.runtime.deliveries import Deliveries, MemberState
from precede.runtime.links.neighbours import Links
from precede.runtime.transports.transport import Transport

MOST_PAYLOAD: Final = 1_000_000
"""The most bytes of a payload. The rest of a packet (at most 1 MiB) is for the data that orders it."""

MOST_UNSENT_BYTES: Final = 1 << 18
"""`broadcast` waits while more bytes than this wait for the network."""
_STEP_S: Final = 0.01
_LONGEST_WAIT_S: Final = 2.0


class Sending:
    """Checks payloads before they are broadcast, and waits afterwards."""

    def __init__(
        self,
        state: MemberState,
        deliveries: Deliveries,
        links: Sequence[Links],
        transports: Sequence[Transport],
    ) -> None:
        self._state = state
        self._links = links
        self._transports = transports
        self._deliveries = deliveries

    def checked(self, payload: object, header: int = 0) -> bytes:
        """Return a payload as bytes. Raise TypeError if it is no bytes, Refused if a packet cannot hold it.

        Receivers would wait for ever for a larger message, since they cannot decode it. `header` is how many
        bytes are added to it.
        """
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            hint = ": encode it" if isinstance(payload, str) else ""
            raise TypeError(f"a payload is bytes, not {type(payload).__name__}{hint}")
        most = min(MOST_PAYLOAD, *(links.largest_packet * 9 // 10 for links in self._links)) - header
        if len(payload) > most:
            raise Refused(f"a payload of {len(payload):,} bytes does not fit into a packet (at most {most:,})")
        return bytes(payload)

    async def wait(self) -> None:
        """Wait for the end of the turn, at which the message is committed. Then apply backpressure.

        It waits while a loop of this application is too far behind (`Deliveries.holds_up`). It waits, not
        longer than `_LONGEST_WAIT_S`, while too many bytes wait for the network. Raise StoreFailed if the
        commit failed.
        """
        await asyncio.sleep(0)
        if self._state.failure is not None:
            raise StoreFailed(str(self._state.failure))
        while self._deliveries.holds_up() and self._state.phase == "open":
            await asyncio.sleep(_STEP_S)
        until = time.monotonic() + _LONGEST_WAIT_S
        while self._is_behind() and time.monotonic() < until:
            await asyncio.sleep(_STEP_S)

    def _is_behind(self) -> bool:
        return any(each.unsent_bytes() > MOST_UNSENT_BYTES for each in self._transports)

"""What an application may send, and when it has to wait before it sends more."""

import asyncio
from collections.abc import Sequence
from typing import Final

from precede.core.errors import Refused, StoreFailed
from precede.runtime.deliveries import MOST_UNTAKEN, Deliveries, MemberState
from precede.runtime.links.neighbours import Links

MOST_PAYLOAD: Final = 1_000_000
"""The most bytes of a payload. The rest of a packet (at most 1 MiB) is for the data that orders it."""


class Sending:
    """Checks payloads before they are broadcast, and waits afterwards."""

    def __init__(self, state: MemberState, links: Sequence[Links], deliveries: Deliveries) -> None:
        self._state = state
        self._links = links
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
        """Wait for the end of the turn, then while more than `MOST_UNTAKEN` delivered messages are not taken.

        At the end of the turn the message is committed. Raise StoreFailed if that failed.
        """
        await asyncio.sleep(0)
        if self._state.failure is not None:
            raise StoreFailed(str(self._state.failure))
        while len(self._deliveries) > MOST_UNTAKEN:
            await asyncio.sleep(0.01)

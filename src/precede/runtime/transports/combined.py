"""Several transports as one: a member that is on a LAN and accepts WebSocket connections is a gateway."""

from collections.abc import Callable
from functools import partial
from typing import cast

from precede.runtime.transports.addresses import Address
from precede.runtime.transports.transport import OnFrame, Transport, Where


class CombinedTransport(Transport):
    """Sends and hears frames over all of the given transports.

    A member whose transports reach different members relays messages between them, as every member does. A
    laptop with UDP and WebSocket is the gateway of browsers to the members on its LAN.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     udp, pages = precede.UdpTransport(("127.0.0.1", 0)), precede.WebSocketTransport(("127.0.0.1", 0))
    ...     both = precede.CombinedTransport(udp, pages)
    ...     async with precede.join("picnic", "ana", key=None, transport=both) as group:
    ...         print(group.address == udp.address, pages.address[0])
    >>> asyncio.run(main())
    True 127.0.0.1
    """

    def __init__(self, *transports: Transport) -> None:
        assert transports, "needs at least one transport"
        self._transports = transports
        self.largest = min(transport.largest for transport in transports)
        self.one_reaches_all = all(transport.one_reaches_all for transport in transports)

    @property
    def address(self) -> Address:
        """The address of the first transport."""
        return cast(Address, getattr(self._transports[0], "address"))  # noqa: B009

    async def start(self, on_frame: OnFrame) -> None:
        for number, transport in enumerate(self._transports):
            transport.on_link = partial(self._on_link, number)
            transport.sealed = self.sealed
            await transport.start(self._heard_on(number, on_frame))

    def _on_link(self, number: int, where: Where, up: bool) -> None:
        self.on_link((number, where), up)

    @staticmethod
    def _heard_on(number: int, on_frame: OnFrame) -> Callable[[bytes, Where], None]:
        return lambda frame, where: on_frame(frame, (number, where))

    def send(self, frame: bytes, where: Where) -> None:
        transport, place = self._find(where)
        transport.send(frame, place)

    def broadcast(self, frame: bytes) -> None:
        for transport in self._transports:
            transport.broadcast(frame)

    def unsent_bytes(self) -> int:
        return max(transport.unsent_bytes() for transport in self._transports)

    def broadcast_reaches(self, where: Where) -> bool:
        transport, place = self._find(where)
        return transport.broadcast_reaches(place)

    def known(self, where: Where, near: bool) -> None:
        transport, place = self._find(where)
        transport.known(place, near)

    def why_silent(self) -> str:
        return "; ".join(transport.why_silent() for transport in self._transports)

    async def stop(self) -> None:
        for transport in self._transports:
            await transport.stop()

    def _find(self, where: Where) -> tuple[Transport, Where]:
        number, place = cast(tuple[int, Where], where)
        return self._transports[number], place

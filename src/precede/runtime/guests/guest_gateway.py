"""The gateway of guests: carries messages between a total-order group and its guest group."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from precede.runtime.deliveries import Delivered
from precede.runtime.group import Group
from precede.runtime.guests.signed_payloads import SignedPayloads

_ORDERED: Final = "ordered"
_SAY: Final = "say"
_decoder: Final = msgspec.msgpack.Decoder(tuple[str, bytes])


class GuestGateway:
    """The gateway's part: carries messages between a total-order group and its guest group.

    The guest group is a causal group (`precede.join`) with the name `GuestGateway.group_of(NAME)`, over a
    `WebSocketTransport`, with a store. `forward` each message of the total order, in that order, before the
    next one is taken; run `listen` beside it. `broadcast` sends a payload in the total order, and may wait
    until the group is founded. After a crash a message may be carried twice; `SignedPayloads.open` drops the
    second one everywhere. examples/chat/chat.py is a gateway.

    >>> import precede
    >>> precede.GuestGateway.group_of("picnic")
    'picnic guests'
    """

    def __init__(
        self, guests: Group, payloads: SignedPayloads, broadcast: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._guests = guests
        self._payloads = payloads
        self._broadcast = broadcast

    @staticmethod
    def group_of(group: str) -> str:
        """Return the name of the guest group of a total-order group."""
        return f"{group} guests"

    async def forward(self, message: Delivered) -> None:
        """Tell the guests the next message of the total order."""
        await self._guests.broadcast(msgspec.msgpack.encode((_ORDERED, message.payload)))

    async def listen(self) -> None:
        """Broadcast what guests say, until cancelled. A payload that its guest has not signed is ignored."""
        async for message in self._guests:
            try:
                kind, payload = _decoder.decode(message.payload)
            except (msgspec.DecodeError, RecursionError):
                continue
            signed = self._payloads.read(payload)
            if kind == _SAY and signed is not None and signed[0] == message.source:
                await self._broadcast(payload)

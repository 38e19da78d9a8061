"""The gateway of guests: carries messages between a total-order group and its guest group."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from precede.core.errors import NotYet, Refused
from precede.runtime.deliveries import Delivered
from precede.runtime.group import Group
from precede.runtime.guests.signed_payloads import MOST_SIGNED_BYTES, SignedPayloads

_ORDERED: Final = "ordered"
_SAY: Final = "say"
_log: Final = logging.getLogger("precede")
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
        self._warned: set[str] = set()

    @staticmethod
    def group_of(group: str) -> str:
        """Return the name of the guest group of a total-order group."""
        return f"{group} guests"

    async def forward(self, message: Delivered) -> None:
        """Tell the guests the next message of the total order, unless it is larger than any that opens."""
        if len(message.payload) <= MOST_SIGNED_BYTES:
            forwarded = msgspec.msgpack.encode((_ORDERED, message.payload))
            await self._carry(self._guests.broadcast, forwarded, message.source)

    async def listen(self) -> None:
        """Broadcast what guests say, until cancelled. A payload that its guest has not signed is ignored."""
        async for message in self._guests:
            try:
                kind, payload = _decoder.decode(message.payload)
            except (msgspec.DecodeError, RecursionError):
                continue
            signed = self._payloads.read(payload)
            if kind == _SAY and signed is not None and signed[0] == message.source:
                await self._carry(self._broadcast, payload, message.source)

    async def _carry(self, broadcast: Callable[[bytes], Awaitable[None]], payload: bytes, author: str) -> None:
        """Broadcast a payload. If the group refuses it for good, go on with the next one: else its author
        would stop the gateway.
        """
        try:
            await broadcast(payload)
        except NotYet:
            raise
        except Refused as error:
            if author not in self._warned:
                self._warned.add(author)
                _log.warning("the gateway of guests leaves a message of %s out: %s", author, error)

"""The links of this member's own messages. They are durable before a message is sent.

An honest member must never sign two different headers with one nonce and one id. So nonce and link of a message
are part of the message when the protocol persists it, and the store has them too, for protocols that persist
payloads only. A protocol that forgot its numbers and uses one again draws a new nonce.
"""

import secrets
from typing import Final, Protocol

import msgspec

from precede.core.identity import MessageId
from precede.core.messages import Message, Written
from precede.runtime.evidence.headers import NONCE_BYTES, header_of, trailer_of

MOST_LINKS: Final = 65_536
"""For how many of its latest own messages a store keeps the links (hashes)."""
_FORGET_EVERY: Final = 1024


class ChainStore(Protocol):
    """The part of a store that keeps the links (hashes) of own messages, by incarnation and number."""

    def remember(self, name: str, value: int) -> None: ...

    def remembered(self, name: str, default: int) -> int: ...

    def add_link(self, id: MessageId, trailer: bytes, link: bytes) -> None: ...

    def link_of(self, id: MessageId) -> tuple[bytes, bytes] | None: ...

    def last_link(self) -> tuple[int, int, bytes] | None: ...

    def forget_links(self, incarnation: int, up_to: int) -> None: ...


class OwnChain:
    """Gives each own message its nonce and the link to (the hash of) the previous one."""

    def __init__(self, store: ChainStore) -> None:
        self._store = store
        self._nonce = store.remembered("nonce", _new_nonce())
        store.remember("nonce", self._nonce)
        self._incarnation, self._number, self._link = store.last_link() or (0, 0, b"")

    def add(self, message: Message, written: Written) -> None:
        """Give an own message that is accepted its link, unless it got one before a restart."""
        id = message.id
        if trailer_of(message.signature):
            return
        if id.incarnation != self._incarnation or id.number <= self._number:
            trailer, link = self._store.link_of(id) or (b"", b"")
            if trailer and header_of(written, *_split(trailer)).link() == link:
                msgspec.structs.force_setattr(message, "signature", trailer)
                return
            self._nonce, self._link = _new_nonce(), b""
            self._store.remember("nonce", self._nonce)
        trailer = self._nonce.to_bytes(NONCE_BYTES, "big") + self._link
        msgspec.structs.force_setattr(message, "signature", trailer)
        self._incarnation, self._number = id.incarnation, id.number
        self._link = header_of(written, *_split(trailer)).link()
        self._store.add_link(id, trailer, self._link)
        if id.number % _FORGET_EVERY == 0:
            self._store.forget_links(id.incarnation, id.number - MOST_LINKS)

    def trailer_of(self, message: Message) -> bytes:
        """Return nonce and link of an own message; nonce 0 if no link is known, as for messages of 0.1."""
        known = trailer_of(message.signature)
        if known:
            return known
        stored = self._store.link_of(message.id)
        return bytes(NONCE_BYTES) if stored is None else stored[0]


def _split(trailer: bytes) -> tuple[bytes, bytes]:
    return trailer[:NONCE_BYTES], trailer[NONCE_BYTES:]


def _new_nonce() -> int:
    return secrets.randbelow((1 << 8 * NONCE_BYTES) - 1) + 1

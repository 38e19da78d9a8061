"""Makes the vectors of keys, handshakes, frames and signatures, which every language checks.

`python -m tests.vectors.sealed` writes `docs/reference/vectors/sealed.json`. All secrets are fixed, so every
byte follows from docs/reference/wire.md.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.gossip.entry import DISSEMINATION
from precede.protocols.layered.gossip.holdings import _hash
from precede.protocols.layered.gossip.packets import DigestPacket, WantPacket, data_packet
from precede.protocols.layered.parsed_envelopes import batch_of
from precede.runtime.codec import Codec
from precede.runtime.evidence.headers import header_of
from precede.runtime.links import sessions
from precede.runtime.links.admission import encode_introductions
from precede.runtime.links.group_seal import GroupSeal, derive_keys
from precede.runtime.links.introductions import Identity, _digest_of
from precede.runtime.links.noise import KKPSK0, Handshake, public_bytes
from precede.runtime.names import group_key, node_id
from tests.vectors.making import FOLDER

PAGE: Final = FOLDER / "sealed.json"
GROUP: Final = "picnic"
SECRET: Final = bytes(range(32))
SEEDS: Final = {"ana": bytes([1] * 32), "ben": bytes([2] * 32)}
EPHEMERALS: Final = (bytes([3] * 32), bytes([4] * 32))
BOOTS: Final = (0x0102030405060708, 0x1112131415161718)
INDICES: Final = (0x21222324, 0x31323334)
SALT: Final = bytes([5] * 8)
NONCE: Final = bytes([6] * 4)


def make() -> dict[str, Any]:
    """Return every vector as plain data; bytes are hexadecimal."""
    key = group_key(SECRET, GROUP)
    members = {name: Identity(seed) for name, seed in SEEDS.items()}
    return {
        "group": GROUP,
        "secret": SECRET.hex(),
        "keys": {name: value.hex() for name, value in derive_keys(key)._asdict().items()},
        "members": [_member(name, identity) for name, identity in members.items()],
        "without_roster": {name: Identity.shared(GROUP, name).signing.public.hex() for name in SEEDS},
        "handshake": _handshake(members["ana"], members["ben"], key),
        "for_everybody": _for_everybody(key),
        "messages": _messages(members["ana"]),
        "packets": _packets(),
    }


def _member(name: str, identity: Identity) -> dict[str, Any]:
    introduction = identity.introduce(GROUP, name)
    return {
        "name": name,
        "node": node_id(name),
        "identity": SEEDS[name].hex(),
        "signing": introduction.signing.hex(),
        "link": introduction.link.hex(),
        "id": introduction.id.hex(),
        "introductions": encode_introductions([introduction]).hex(),
        "digest": f"{_digest_of(introduction):016x}",
    }


def _handshake(ana: Identity, ben: Identity, key: bytes) -> dict[str, Any]:
    """Ana begins a handshake with Ben; then each sends a ping."""
    keys = derive_keys(key)
    ids = [blake2b(identity.signing.public, digest_size=16).digest() for identity in (ana, ben)]
    prologue = b"precede" + bytes((sessions.WIRE_VERSION,)) + ids[0] + ids[1]
    prologue += BOOTS[1].to_bytes(8, "big") + GROUP.encode()
    first, second = (
        Handshake(
            *(KKPSK0, own is ana, prologue),
            static=own.link,
            remote_static=public_bytes(other.link),
            psk=keys.psk,
            ephemeral=X25519PrivateKey.from_private_bytes(ephemeral),
        )
        for own, other, ephemeral in ((ana, ben, EPHEMERALS[0]), (ben, ana, EPHEMERALS[1]))
    )
    noise = first.write(BOOTS[0].to_bytes(8, "big"))
    head = bytes((sessions.MESSAGE_1,)) + INDICES[0].to_bytes(4, "big")
    head += sessions._mask(keys, noise[:32], ids[0][:4])
    message_1 = head + sessions._mac(keys, ids[1], BOOTS[1], head + noise) + noise
    second.read(noise)
    answer = second.write()
    indices = INDICES[0].to_bytes(4, "big") + INDICES[1].to_bytes(4, "big")
    first.read(answer)
    pings = []
    for side, index in ((first, INDICES[1]), (second, INDICES[0])):
        header = bytes((sessions.DATA,)) + index.to_bytes(4, "big") + bytes(4)
        pings.append((header + side.split()[0].encrypt(bytes((sessions.PING,)), header)).hex())
    return {
        "ephemerals": [each.hex() for each in EPHEMERALS],
        "boots": [f"{boot:016x}" for boot in BOOTS],
        "indices": list(INDICES),
        "message_1": message_1.hex(),
        "message_2": (bytes((sessions.MESSAGE_2,)) + indices + answer).hex(),
        "pings": pings,
    }


def _for_everybody(key: bytes) -> dict[str, str]:
    with patch("precede.runtime.links.group_seal.os.urandom", return_value=SALT):
        seal = GroupSeal([derive_keys(key)])
    assert isinstance(seal._cipher, ChaCha20Poly1305)
    data = b"for everybody"
    return {"salt": SALT.hex(), "data": data.hex(), "frame": seal.seal(data).hex()}


def _envelopes() -> list[Envelope]:
    ana, ben = node_id("ana"), node_id("ben")
    return [
        Envelope(Message(MessageId(ana, 7, 1), b"bread?"), (), None, None, 16, 0, 1_700_000_000_000_000),
        Envelope(
            Message(MessageId(ana, 7, 2), b""),
            (((ana, 7), 1), (ben, 300)),
            None,
            None,
            48,
            2,
            1_700_000_000_500_000,
        ),
    ]


def _messages(ana: Identity) -> list[dict[str, Any]]:
    """Two messages of one stream: the second has the link of the first."""
    vectors, previous = [], b""
    for envelope in _envelopes():
        header = header_of(envelope.written(), NONCE, previous)
        content = header.signed_bytes(GROUP)
        carried = ana.signing.sign(content) + NONCE + previous
        signed = Envelope(Message(envelope.message.id, envelope.message.payload, carried), *_rest(envelope))
        packet = Codec(DISSEMINATION.packets).encode(data_packet(batch_of((signed,)), 0, None))
        previous = header.link()
        vectors.append(
            {"signed": content.hex(), "signature": carried.hex(), "link": previous.hex(), "wire": packet.hex()}
        )
    return vectors


def _rest(envelope: Envelope) -> tuple[Any, ...]:
    return tuple(getattr(envelope, field) for field in Envelope.__struct_fields__[1:])


def _packets() -> dict[str, str]:
    codec, ids = Codec(DISSEMINATION.packets), [envelope.message.id for envelope in _envelopes()]
    digest = DigestPacket(_hash(ids[0]) ^ _hash(ids[1]), True, ((ids[0].source, 7, (1, 2)),), 0, None)
    want = WantPacket(((node_id("ben"), ids[0].source, 7, (1, 1)),))
    return {"digest": codec.encode(digest).hex(), "want": codec.encode(want).hex()}


def written() -> str:
    return json.dumps(make(), indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")

"""Makes the vectors of state transfer: each packet as bytes, and what the maker of a snapshot signs.

`python -m tests.vectors.transfer` writes `docs/reference/vectors/transfer.json`.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from precede.runtime.evidence.signatures import SigningKey
from precede.runtime.names import node_id
from precede.runtime.transfer.packets import (
    HistoryAsk,
    HistoryPart,
    SnapshotAsk,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotOffer,
    TransferPacket,
    encode,
)
from precede.runtime.transfer.snapshot import digest_of, signed_bytes
from tests.vectors.making import FOLDER

PAGE: Final = FOLDER / "transfer.json"
GROUP: Final = "picnic"
SEED: Final = bytes([1] * 32)
STATE: Final = b"3 loaves, 2 cheeses"
CUT: Final = bytes(range(16))


def make() -> dict[str, Any]:
    """Return every vector as plain data; bytes are hexadecimal."""
    key, maker = SigningKey(SEED), node_id("ana")
    unsigned = SnapshotOffer(77, len(STATE), digest_of(STATE), CUT, b"")
    content = signed_bytes(GROUP, maker, unsigned)
    offer = msgspec.structs.replace(unsigned, signature=key.sign(content))
    packets: list[TransferPacket] = [
        HistoryAsk(0, ()),
        HistoryAsk(500, ((maker, 0, 400), (node_id("ben"), 3, 7))),
        HistoryPart(500, 512, True, False, (bytes((1, 0, 0x90)), bytes((1, 0, 0x91, 0)))),
        SnapshotAsk(0),
        offer,
        SnapshotFetch(77, 8),
        SnapshotChunk(77, 8, False, STATE[8:]),
    ]
    return {
        "group": GROUP,
        "maker": "ana",
        "maker_public": key.public.hex(),
        "state": STATE.hex(),
        "signed_bytes": content.hex(),
        "packets": [{"kind": type(each).__name__, "wire": encode(each).hex()} for each in packets],
    }


if __name__ == "__main__":
    PAGE.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")

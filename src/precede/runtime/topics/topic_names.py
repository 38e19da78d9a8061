"""The name of a topic, and how it travels: in front of the payload, with its length in one byte."""

from __future__ import annotations

from typing import Final

from precede.core.errors import BadInput

MOST_NAME_BYTES: Final = 64


def encoded_name(name: object) -> bytes:
    """Return what a payload of this topic begins with. Raise BadInput if it is no name of a topic."""
    if not isinstance(name, str) or not name:
        raise BadInput(f"topic: expected a name that is not empty, got {name!r}")
    try:
        text = name.encode()
    except UnicodeEncodeError:
        raise BadInput(f"topic: {name!r} cannot be encoded as UTF-8") from None
    if len(text) > MOST_NAME_BYTES:
        raise BadInput(f"topic: a name has at most {MOST_NAME_BYTES} bytes, {name!r} has {len(text)}")
    return bytes((len(text),)) + text


def split_payload(payload: bytes) -> tuple[str, bytes] | None:
    """Split a payload of a lane into the name of its topic and the payload proper; None if there is no name."""
    size = payload[0] if payload else 0
    if not 0 < size <= MOST_NAME_BYTES or len(payload) < 1 + size:
        return None
    try:
        return payload[1 : 1 + size].decode(), payload[1 + size :]
    except UnicodeDecodeError:
        return None

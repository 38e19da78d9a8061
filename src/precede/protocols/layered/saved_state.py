"""Reads persisted state after a restart. A value is persisted under a tuple that begins with its kind."""

from __future__ import annotations

from typing import Any

import msgspec

from precede.core.node import Saved
from precede.protocols.layered.envelope import Envelope


def saved_under(saved: Saved, kind: str) -> list[tuple[tuple[str | int, ...], Any]]:
    return [(key, value) for key, value in saved.items() if type(key) is tuple and key[0] == kind]


def saved_envelopes(saved: Saved, kind: str, stamp_type: Any) -> list[Envelope]:
    envelopes = [restored_envelope(value, stamp_type) for _, value in saved_under(saved, kind)]
    return sorted(envelopes, key=lambda envelope: envelope.message.id)


def restored_envelope(value: Any, stamp_type: Any) -> Envelope:
    """Convert a persisted envelope from plain data to its types. With `stamp_type` None the stamp stays."""
    envelope = msgspec.convert(value, Envelope)
    if stamp_type is None:
        return envelope
    return msgspec.structs.replace(envelope, stamp=msgspec.convert(envelope.stamp, stamp_type))

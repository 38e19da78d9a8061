"""A message as the nodes of a world carry it: read once, for all of them."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from precede.core.effects import Arrive
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import HEADER_BYTES, ID_BYTES
from precede.protocols.layered.parsed_envelopes import Batch, batch_of


@final
class Carried:
    """A message, its serial number in the world, and the sizes of the packet with this message alone."""

    __slots__ = (
        "arrival",
        "batch",
        "control_bytes",
        "control_entries",
        "deadline",
        "parsed",
        "payload_bytes",
        "serial",
        "size_bytes",
        "takes",
    )

    def __init__(self, envelope: Envelope, serial: i64) -> None:
        batch: Batch = batch_of((envelope,))
        self.batch = batch
        self.parsed = batch.contents[0]
        self.arrival: Arrive = batch.arrival()
        self.serial: i64 = serial
        self.deadline: i64 = batch.first_deadline
        self.payload_bytes: i64 = batch.payload_bytes
        self.control_bytes = batch.control_bytes + HEADER_BYTES + ID_BYTES
        self.control_entries = batch.control_entries
        self.size_bytes = batch.payload_bytes + self.control_bytes
        self.takes: i64 = 0
        """How long a transfer takes, without jitter."""

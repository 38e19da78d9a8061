"""The packet and the options of the dissemination `direct`."""

from typing import ClassVar

from precede.protocols.layered.envelope import EnvelopePacket
from precede.protocols.options import Durable
from precede.protocols.outbox import RTO, Rto


class DirectPacket(EnvelopePacket, frozen=True, gc=False):
    """One message with its ordering's stamp, from its source to one addressee."""

    kind: ClassVar[str] = "direct"


class DirectOptions(Durable, frozen=True, kw_only=True):
    """The options of `direct`."""

    rto: Rto = RTO

"""The options that `prs`, `rst`, `ses` and `prs_mobile` share."""

from typing import Annotated, Final, TypeAlias

from precede.protocols.options import Durable, option
from precede.protocols.outbox import RTO, Rto

CHECKPOINT: Final = 64

Checkpoint: TypeAlias = Annotated[int, option("when durable: messages between two checkpoints of the state")]


class MulticastOptions(Durable, frozen=True, kw_only=True):
    """How a multicast node retransmits and persists."""

    rto: Rto = RTO
    checkpoint: Checkpoint = CHECKPOINT

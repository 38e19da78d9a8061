"""The options that `prs`, `rst`, `ses` and `prs_mobile` share."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from precede.core.instants import MILLISECOND, Duration
from precede.protocols.options import Durable, duration, option

RTO: Final[Duration] = 200 * MILLISECOND
CHECKPOINT: Final = 64

Rto: TypeAlias = Annotated[
    Duration, duration("retransmit after this time; 0s: links are reliable, no acknowledgements")
]
Checkpoint: TypeAlias = Annotated[int, option("when durable: messages between two checkpoints of the state")]


class MulticastOptions(Durable, frozen=True, kw_only=True):
    """How a multicast node retransmits and persists."""

    rto: Rto = RTO
    checkpoint: Checkpoint = CHECKPOINT

"""The options of `causal_barrier` and `delta_causal`."""

from typing import Annotated

from precede.core.instants import MINUTE, Duration
from precede.protocols.options import Durable, duration, option


class CausalBarrierOptions(Durable, frozen=True, kw_only=True):
    """The options of `causal_barrier`."""

    prune: Annotated[
        bool, option("drop barrier entries that a delivered message covers; false: as printed")
    ] = True


class DeltaCausalOptions(CausalBarrierOptions, frozen=True, kw_only=True):
    """The options of `delta_causal`."""

    lifetime: Annotated[Duration, duration("lifetime of a message that names none")] = 20 * MINUTE
    skew: Annotated[
        Duration, duration("largest difference of two clocks; predecessors are named this much longer")
    ] = MINUTE
    monotone: Annotated[bool, option("never expire before a predecessor: lengthens lifetimes")] = False
    lazy_expiry: Annotated[bool, option("no timers: notice expiry at the next input, as printed")] = False

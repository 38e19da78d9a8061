"""The options of reliable floods, which `flooding`, `drift` and `tof` share."""

from typing import Annotated

from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration
from precede.protocols.options import Durable, duration, option


class FloodOptions(Durable, frozen=True, kw_only=True):
    """How floods are relayed, requested again, kept and announced."""

    relay_wait: Annotated[Duration, duration("relay a flood after a random time up to this")] = 0
    ask_after: Annotated[Duration, duration("request a missing flood after this time; 0s: never")] = (
        100 * MILLISECOND
    )
    answer_within: Annotated[
        Duration, duration("answer a request within this time, unless a neighbour has")
    ] = 50 * MILLISECOND
    retention: Annotated[Duration, duration("keep floods this long for neighbours that missed them")] = (
        10 * MINUTE
    )
    keep_bytes: Annotated[
        int, option("keep at most this many payload bytes of delivered floods for neighbours; 0: unlimited")
    ] = 0
    beacon: Annotated[Duration, duration("shortest time between two digests of a node; 0s: no digests")] = (
        SECOND
    )
    beacon_longest: Annotated[Duration, duration("longest time between two digests while all agree")] = MINUTE
    beacon_redundancy: Annotated[int, option("skip a digest after this many equal ones from neighbours")] = 3

"""The options of WAS. The paper gives no values; papers/was2021/reading.md says which ones were fitted."""

from typing import Annotated, Final

from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration
from precede.protocols.options import Durable, duration, option

INCARNATION_STEP: Final = 1 << 32
"""The connection numbers of incarnation i start at i times this, above those of all earlier incarnations."""


class WasOptions(Durable, frozen=True, kw_only=True):
    """The times and limits of hosts and stations."""

    ack_interval: Annotated[Duration, duration("a host acknowledges at most this often")] = 750 * MILLISECOND
    gap_ack: Annotated[Duration, duration("a host reports a new gap within this time")] = 20 * MILLISECOND
    hole_ack: Annotated[Duration, duration("a host reports a gap that stays open this often")] = (
        60 * MILLISECOND
    )
    retransmit: Annotated[
        Duration, duration("a station retransmits an unacknowledged message after this time", least=1)
    ] = SECOND
    guard: Annotated[Duration, duration("a reported gap is not filled again within this time")] = (
        30 * MILLISECOND
    )
    private_window: Annotated[int, option("recovered messages in flight to one host at once", least=1)] = 128
    uplink_retransmit: Annotated[Duration, duration("a host retransmits its own message after this time")] = (
        300 * MILLISECOND
    )
    uplink_window: Annotated[int, option("own messages in flight to the station at once", least=1)] = 32
    station_ack_interval: Annotated[Duration, duration("a station acknowledges at most this often")] = (
        100 * MILLISECOND
    )
    connect_retry: Annotated[
        Duration, duration("a host repeats join, connect, recover and leave after this time", least=1)
    ] = 100 * MILLISECOND
    down_after: Annotated[
        Duration, duration("a host that is silent for this long is declared down", least=1)
    ] = MINUTE
    collision_limit: Annotated[
        float, option("share of retransmissions above which the longest silent host is declared down")
    ] = 1.0
    stations: Annotated[
        int, option("number of stations; a recovery waits until all of them are known (0: any)")
    ] = 0
    durable: Annotated[bool, option("persist the state that a host needs after a crash")] = False

"""The options that `ck` and `prs_mobile` share: stations act for their hosts."""

from typing import Annotated, Literal

from msgspec import Struct

from precede.core.instants import MILLISECOND, Duration
from precede.protocols.options import duration, option


class ProxyOptions(Struct, frozen=True, kw_only=True):
    """The times of hosts and stations, and how a station addresses the hosts of its cell."""

    frames: Annotated[
        Literal["cell", "host"], option("one frame for all hosts that may take a message, or one per host")
    ] = "cell"
    retransmit: Annotated[
        Duration, duration("a station retransmits an unacknowledged message after this time", least=MILLISECOND)
    ] = 25 * MILLISECOND
    batch: Annotated[Duration, duration("stations collect acknowledgements and deletions for this long")] = (
        20 * MILLISECOND
    )
    uplink_retransmit: Annotated[
        Duration, duration("a host retransmits its own message after this time", least=MILLISECOND)
    ] = 300 * MILLISECOND
    connect_retry: Annotated[
        Duration, duration("a host repeats its connect after this time", least=MILLISECOND)
    ] = 100 * MILLISECOND

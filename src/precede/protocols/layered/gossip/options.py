"""The options of `gossip`."""

from typing import Annotated, Literal, TypeAlias

from precede.core.instants import MILLISECOND, SECOND, Duration
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.options import duration, option

MediumName: TypeAlias = Literal["broadcast", "unicast", "links"]


class GossipOptions(EpidemicOptions, frozen=True, kw_only=True):
    """The cache of `epidemic`, and when digests are sent. `refresh` is for links, the others for broadcast."""

    medium: Annotated[
        MediumName,
        option(
            "broadcast: all neighbours hear a transmission; unicast: each gets a datagram of its own; "
            "links: contacts between two nodes"
        ),
    ] = "broadcast"
    digest: Annotated[Duration, duration("shortest interval of digests, after news", least=MILLISECOND)] = (
        60 * MILLISECOND
    )
    digest_longest: Annotated[
        Duration, duration("longest interval of digests, while all agree", least=MILLISECOND)
    ] = 8 * SECOND
    pace: Annotated[
        int, option("how many times slower than a LAN the medium is: waits for answers are multiplied", least=1)
    ] = 1
    relay_wait: Annotated[Duration, duration("relay a message after a random time up to this")] = (
        10 * MILLISECOND
    )
